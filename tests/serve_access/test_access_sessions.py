"""Browsers that were given a secret, and those who guess one."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import anyio
import pytest
from serve_access.guarded import ADA, BOB, HOST, Guarded, access

from thinkwell.journal import JournalError, MemoryJournal
from thinkwell.web import Access, Limits

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send


pytestmark = pytest.mark.virtual_time

OWN = f"http://{HOST}"
KIND = "web-session"
"""What sessions are in the journal."""
OURS = [("origin", OWN)]


async def test_a_browser_is_known_by_its_cookie() -> None:
    guarded = Guarded()
    begun = await guarded.log_in(BOB, headers=OURS)
    assert (begun.status, begun.body) == (204, b"")
    text = begun.header("set-cookie")
    assert text is not None
    name, _, rest = text.partition("=")
    value, *attributes = rest.split("; ")
    assert name == "thinkwell-8283"
    assert len(value) == 43
    assert attributes == ["Path=/", "Max-Age=604800", "HttpOnly", "SameSite=Strict"]
    reply = await guarded.ask(cookie=f"other=1; {begun.cookie}; thinkwell-80=x")
    assert reply.json()["caller"] == "bob"


async def test_each_browser_has_a_value_of_its_own() -> None:
    guarded = Guarded()
    cookies = {(await guarded.log_in()).cookie for _ in range(3)}
    assert len(cookies) == 3
    for cookie in cookies:
        assert (await guarded.ask(cookie=cookie)).status == 200


async def test_a_value_that_the_server_has_not_chosen_is_never_known() -> None:
    guarded = Guarded()
    theirs = f"thinkwell-8283={'a' * 43}"
    begun = await guarded.log_in(cookie=theirs)
    assert begun.status == 204
    assert begun.cookie != theirs
    assert (await guarded.ask(cookie=theirs)).status == 401


async def test_over_https_the_cookie_is_for_https_alone() -> None:
    guarded = Guarded(who=access(hosts=["think.example.org"]))
    begun = await guarded.log_in(host="think.example.org", scheme="https")
    text = begun.header("set-cookie") or ""
    assert text.startswith("__Host-thinkwell-443=")
    assert text.endswith("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure")
    asked = await guarded.ask(host="think.example.org", scheme="https", cookie=begun.cookie)
    assert asked.status == 200
    assert (await guarded.ask(host="think.example.org", cookie=begun.cookie)).status == 401


async def test_where_it_is_mounted_the_cookie_is_for_that_alone() -> None:
    guarded = Guarded()
    for scheme, name in (("http", "thinkwell-8283"), ("https", "thinkwell-8283")):
        begun = await guarded.ask(
            "POST", "/think/api/session", sends={"secret": ADA}, root_path="/think", scheme=scheme
        )
        text = begun.header("set-cookie") or ""
        assert text.startswith(f"{name}=")
        assert "; Path=/think/; " in text
        assert (await guarded.ask(cookie=begun.cookie, root_path="/think", scheme=scheme)).status == 200


async def test_servers_on_other_ports_have_other_cookies() -> None:
    guarded = Guarded()
    begun = await guarded.log_in(host="localhost:9000")
    assert begun.cookie.startswith("thinkwell-9000=")
    assert (await guarded.ask(cookie=begun.cookie, host="localhost:9001")).status == 401
    assert (await guarded.ask(cookie=begun.cookie, host="localhost:9000")).status == 200


async def test_cookies_of_the_same_name_that_others_have_set() -> None:
    guarded = Guarded()
    right = (await guarded.log_in()).cookie
    wrong = "thinkwell-8283=" + "x" * 43
    assert (await guarded.ask(cookie=f"thinkwell-8283=short; {wrong}; {right}")).status == 200
    assert (await guarded.ask(cookie=wrong, headers=[("cookie", right), *OURS])).status == 200
    assert (await guarded.ask(cookie="; ".join([wrong] * 4 + [right]))).status == 401
    assert (await guarded.ask(cookie="thinkwell-8283")).status == 401


async def test_the_end_of_a_session() -> None:
    guarded = Guarded()
    cookie = (await guarded.log_in()).cookie
    other = (await guarded.log_in()).cookie
    ended = await guarded.ask("DELETE", "/api/session", cookie=cookie, headers=OURS)
    assert ended.status == 204
    assert ended.header("set-cookie") == "thinkwell-8283=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    assert (await guarded.ask(cookie=cookie)).status == 401
    assert (await guarded.ask(cookie=other)).status == 200
    assert (await guarded.ask("DELETE", "/api/session")).status == 204, "there is none to end"
    assert (
        await guarded.ask("DELETE", "/api/session", cookie="thinkwell-8283=x", headers=OURS)
    ).status == 204


async def test_a_new_session_ends_that_of_the_same_browser() -> None:
    guarded = Guarded()
    first = (await guarded.log_in()).cookie
    second = (await guarded.log_in(BOB, cookie=first)).cookie
    assert (await guarded.ask(cookie=first)).status == 401
    assert (await guarded.ask(cookie=second)).json()["caller"] == "bob"


async def test_a_session_ends_by_its_age() -> None:
    guarded = Guarded(who=access(session_age=1e-6))
    begun = await guarded.log_in()
    assert "; Max-Age=0; " in (begun.header("set-cookie") or "")
    assert (await guarded.ask(cookie=begun.cookie)).status == 401


async def test_the_oldest_of_too_many_sessions_ends() -> None:
    journal = MemoryJournal()
    guarded = Guarded(who=access(max_sessions=2), journal=journal)
    bob = (await guarded.log_in(BOB)).cookie
    cookies = [(await guarded.log_in(ADA)).cookie for _ in range(4)]
    statuses = [(await guarded.ask(cookie=cookie)).status for cookie in (*cookies, bob)]
    assert statuses == [401, 401, 200, 200, 200]
    assert len(await journal.pick_all(KIND)) == 3


async def test_a_session_outlives_its_server_and_is_known_to_others() -> None:
    journal = MemoryJournal()
    cookie = (await Guarded(journal=journal).log_in()).cookie
    another = Guarded(journal=journal)
    assert (await another.ask(cookie=cookie)).json()["caller"] == "ada"
    renamed = Guarded(who=Access({ADA: "countess"}), journal=journal)
    assert (await renamed.ask(cookie=cookie)).json()["caller"] == "countess"
    without = Guarded(who=Access({BOB: "ada"}), journal=journal)
    assert (await without.ask(cookie=cookie)).status == 401, "the token that began it is nobody's any more"
    kept = repr(await journal.pick_all(KIND))
    assert ADA not in kept
    assert cookie.partition("=")[2] not in kept
    await without.log_in(BOB)
    assert len(await journal.pick_all(KIND)) == 1, "what is nobody's is forgotten"


async def test_what_is_no_session_in_the_journal() -> None:
    journal = MemoryJournal()
    guarded = Guarded(journal=journal)
    cookie = (await guarded.log_in()).cookie
    ((name, _),) = await journal.pick_all(KIND)
    await journal.put(KIND, name, b'{"of": "another version"}')
    assert (await guarded.ask(cookie=cookie)).status == 401
    await guarded.log_in()
    assert name not in dict(await journal.pick_all(KIND))


async def test_a_journal_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryJournal):
        async def pick(self, kind: str, name: str) -> bytes | None:
            raise JournalError("/srv/runs.db", "the disk is full")

    guarded = Guarded(journal=Broken())
    cookie = (await guarded.log_in()).cookie
    reply = await guarded.ask(cookie=cookie)
    assert (reply.status, reply.code) == (503, "unavailable")
    assert reply.header("retry-after") == "5"
    assert "/srv" not in reply.body.decode()
    assert caplog.messages == ["Sessions of browsers cannot be read or kept: /srv/runs.db: the disk is full"]


# What a browser has to show


@pytest.mark.parametrize(
    "headers",
    [
        OURS,
        [("sec-fetch-site", "same-origin")],
        [("origin", "null"), ("sec-fetch-site", "same-origin")],
        [("referer", f"{OWN}/")],
    ],
)
async def test_our_own_page_is_served(headers: list[tuple[str, str]]) -> None:
    guarded = Guarded()
    cookie = (await guarded.log_in()).cookie
    for method in ("GET", "POST", "DELETE"):
        assert (await guarded.ask(method, cookie=cookie, headers=headers, sends={})).status == 200
        assert (await guarded.ask(method, cookie=cookie, headers=headers)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("sec-fetch-site", "none")],
        [("origin", "null")],
        [("origin", "http://127.0.0.1:3000")],
        [("origin", "null"), ("sec-fetch-site", "cross-site")],
        [("origin", "http://127.0.0.1:3000"), ("sec-fetch-site", "same-origin")],
        [("referer", "http://127.0.0.1:3000/")],
        [("referer", OWN), ("sec-fetch-site", "none")],
        [("referer", OWN), ("origin", "null")],
        [("referer", "about:client")],
    ],
)
async def test_a_cookie_counts_for_our_page_alone(headers: list[tuple[str, str]]) -> None:
    guarded = Guarded()
    cookie = (await guarded.log_in()).cookie
    for method, path in product(("GET", "POST", "DELETE"), ("/api/runs", "/api/session")):
        reply = await guarded.ask(method, path, cookie=cookie, headers=headers, sends={})
        if (method, path) != ("POST", "/api/session") or ("origin", "null") in headers:
            assert (reply.status, reply.code) in ((403, "forbidden"), (400, "malformed"))
    assert (await guarded.ask(cookie=cookie)).status == 200, "the session is still there"
    assert len(guarded.echo.scopes) == 1


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "multipart/form-data", "application/jsonx", "text/json"]
)
async def test_a_form_of_a_page_is_no_json(kind: str | None) -> None:
    guarded = Guarded()
    cookie = (await guarded.log_in()).cookie
    headers = [*OURS, *([] if kind is None else [("content-type", kind)])]
    reply = await guarded.ask("POST", cookie=cookie, headers=headers, body=b'{"a": 1}')
    assert (reply.status, reply.code) == (415, "not_json")
    chunked = [*headers, ("transfer-encoding", "chunked")]
    assert (await guarded.ask("POST", cookie=cookie, headers=chunked, body=[b"{}"])).status == 415
    reply = await guarded.ask("POST", "/api/session", headers=headers, body=b'{"secret": "x"}')
    assert reply.status == 415
    by_token = await guarded.ask("POST", token=ADA, headers=headers, body=b'{"a": 1}')
    assert by_token.status == 200, "no page can send a token by accident"


async def test_json_with_a_charset() -> None:
    headers = [("content-type", "Application/JSON; charset=utf-8"), *OURS]
    reply = await Guarded().ask(
        "POST", "/api/session", headers=headers, body=b'{"secret": "%s"}' % ADA.encode()
    )
    assert reply.status == 204


async def test_what_is_no_secret() -> None:
    headers = [("content-type", "application/json")]
    wrong = (
        b"",
        b"[]",
        b'"x"',
        b"{}",
        b'{"secret": 1}',
        b"{",
        b"\xff",
        b'{"secret": null}',
        b'{"a":' + b"[" * 4000,
    )
    for body in wrong:
        reply = await Guarded().ask("POST", "/api/session", headers=headers, body=body)
        assert (reply.status, reply.code) == (400, "malformed"), body


async def test_a_secret_is_not_long() -> None:
    reply = await Guarded().log_in("x" * 5000)
    assert (reply.status, reply.code) == (413, "too_large")
    headers = [("content-type", "application/json")]
    reply = await Guarded().ask("POST", "/api/session", headers=headers, body=[b"x" * 3000] * 2)
    assert (reply.status, reply.code) == (413, "too_large")


# Who guesses


async def test_only_a_caller_that_guesses_has_to_wait(caplog: pytest.LogCaptureFixture) -> None:
    guarded = Guarded()
    cookie = (await guarded.log_in()).cookie
    replies = [await guarded.log_in("not the secret") for _ in range(5)]
    replies += [await guarded.ask(token="not-the-secret") for _ in range(5)]
    assert [(reply.status, reply.code) for reply in replies] == [(401, "unauthorized")] * 10
    late = [await guarded.log_in("not the secret"), await guarded.ask(token="not-the-secret")]
    for reply in late:
        assert (reply.status, reply.code) == (429, "too_many_attempts")
        assert reply.header("retry-after") == "60"
    assert caplog.messages == ["A client at 127.0.0.1 guesses secrets, or has an old one"]
    assert (await guarded.log_in("not the secret", client=("10.0.0.8", 1))).status == 401
    # From the same place, as all who come by one proxy.
    assert (await guarded.ask(token=BOB)).status == 200
    assert (await guarded.ask(cookie=cookie)).status == 200
    assert (await guarded.log_in(BOB)).status == 204
    await anyio.sleep(59.5)
    again = await guarded.log_in("not the secret")
    assert again.header("retry-after") == "1"
    await anyio.sleep(1)
    assert (await guarded.log_in("not the secret")).status == 401


async def test_places_of_ipv6_are_networks() -> None:
    guarded = Guarded()
    for number in range(10):
        await guarded.ask(token="not-the-secret", client=(f"2001:db8::{number}", 1))
    assert (await guarded.ask(token="not-the-secret", client=("2001:db8::ffff", 1))).status == 429
    assert (await guarded.ask(token="not-the-secret", client=("2001:db8:1::1", 1))).status == 401
    assert (await guarded.ask(token="not-the-secret", client=None)).status == 401


async def test_not_every_place_is_remembered() -> None:
    guarded = Guarded()

    async def guess(number: int) -> int:
        client = (f"10.0.{number >> 8}.{number % 256}", 1)
        return (await guarded.ask(token="not-the-secret", client=client)).status

    for number in (*[0, 1] * 11, 0, *range(2, 4097)):
        await guess(number)
    assert await guess(0) == 429
    assert await guess(1) == 401, "it was quiet longest"


# Bodies


async def test_a_body_that_says_that_it_is_too_long_is_not_read() -> None:
    guarded = Guarded(limits=Limits(max_request=10))
    for length in ("11", "9" * 5000):
        reply = await guarded.ask("POST", token=ADA, headers=[("content-length", length)], body=())
        assert (reply.status, reply.code) == (413, "too_large")
        assert reply.json()["error"]["message"] == "the body of a request may have 10 bytes here"
        assert reply.header("connection") == "close"
        reply = await guarded.ask(
            "POST", token=ADA, headers=[("content-length", length)], body=(), http_version="2"
        )
        assert reply.status == 413
        assert reply.header("connection") is None, "there is no such header"
    assert (await guarded.ask("POST", token=ADA, body=b"x" * 10)).json()["length"] == 10
    assert (await guarded.ask("POST", headers=[("content-length", "11")])).status == 413
    assert (await guarded.ask("POST", token=ADA, headers=[("content-length", "-1")])).status == 200
    two = [("content-length", "1"), ("content-length", "2")]
    assert (await guarded.ask("POST", token=ADA, headers=two)).status == 400


async def test_a_body_that_does_not_say_how_long_it_is_is_read_up_to_a_length() -> None:
    guarded = Guarded(limits=Limits(max_request=10))
    assert (await guarded.ask("POST", token=ADA, body=[b"xxxxx", b"xxxxx", b""])).json()["length"] == 10
    reply = await guarded.ask("POST", token=ADA, body=[b"xxxxx", b"xxxxxx", b"never read"])
    assert (reply.status, reply.code) == (413, "too_large")
    lies = await guarded.ask("POST", token=ADA, headers=[("content-length", "1")], body=[b"x" * 11])
    assert lies.status == 413


async def test_who_sends_too_much_is_heard_out_for_a_while() -> None:
    guarded = Guarded(limits=Limits(max_request=10))
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {ADA}".encode())]
    scope = {"type": "http", "method": "POST", "scheme": "http", "path": "/api", "headers": headers}
    sent: list[Message] = []
    received = 0

    async def answered(pause: float, piece: bytes) -> float:
        nonlocal received
        received = 0
        sent.clear()
        begun = anyio.current_time()

        async def receive() -> Message:
            nonlocal received
            await anyio.sleep(pause)
            received += 1
            return {"type": "http.request", "body": piece, "more_body": received < 15}

        async def send(message: Message) -> None:
            sent.append(message)

        await guarded.guard(scope, receive, send)
        assert sent[0]["status"] == 413
        assert [message.get("more_body", False) for message in sent[1:]] == [True, False]
        return anyio.current_time() - begun

    assert await answered(0.1, b"x" * 20) == pytest.approx(1.5)
    assert received == 15, "all of it"
    assert await answered(0.3, b"x" * 20) == pytest.approx(2.3)
    assert received == 7, "so long"
    await answered(0.0, b"x" * 5_000_000)
    assert received == 5, "so much"


async def test_a_client_that_goes_has_no_body_any_more() -> None:
    received: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        received.append((await receive())["type"])
        received.append((await receive())["type"])

    guarded = Guarded(app)
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {ADA}".encode())]
    scope = {"type": "http", "method": "POST", "scheme": "http", "path": "/api", "headers": headers}

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        raise AssertionError(message)

    await guarded.guard(scope, receive, send)
    assert received == ["http.disconnect"] * 2
    headers.append((b"content-type", b"application/json"))
    await guarded.guard({**scope, "path": "/api/session"}, receive, send)  # in the middle of its login
