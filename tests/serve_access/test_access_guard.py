"""Who comes in, and what the others are told."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from serve_access.guarded import ADA, BOB, HOST, Guarded, Reply, access
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, StreamingResponse

from thinkwell.web import Limits, RunNotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Receive, Scope, Send

OWN = f"http://{HOST}"
EVIL = "http://evil.example.org"


async def test_a_token_says_who_asks() -> None:
    guarded = Guarded()
    for token, caller in ((ADA, "ada"), (BOB, "bob")):
        reply = await guarded.ask(token=token)
        assert reply.status == 200
        assert reply.json()["caller"] == caller


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
async def test_how_a_token_is_said(scheme: str) -> None:
    reply = await Guarded().ask(headers=[("authorization", f"{scheme} {ADA}")])
    assert reply.json()["caller"] == "ada"


async def test_a_refusal_does_not_say_how_to_be_known() -> None:
    guarded = Guarded()
    reply = await guarded.ask()
    assert (reply.status, reply.code) == (401, "unauthorized")
    assert reply.header("www-authenticate") == "Bearer"
    assert reply.header("content-type") == "application/json"
    assert guarded.echo.scopes == []
    head = await guarded.ask("HEAD")
    assert (head.status, head.body) == (401, b"")
    assert head.header("content-length") == reply.header("content-length")


@pytest.mark.parametrize(
    "authorization",
    [f"Bearer {ADA}x", "Bearer", "Bearer ", f"Basic {ADA}", ADA, "", f"Bearer {ADA} {ADA}", "Bearer \xe4"],
)
async def test_a_wrong_token(authorization: str) -> None:
    guarded = Guarded()
    cookie = (await guarded.log_in()).cookie
    reply = await guarded.ask(headers=[("authorization", authorization)], cookie=cookie)
    assert reply.status == 401, "a cookie does not make up for it"
    assert reply.header("www-authenticate") == 'Bearer error="invalid_token"'
    assert guarded.echo.scopes == []


async def test_a_token_without_its_scheme() -> None:
    reply = await Guarded().ask(headers=[("authorization", ADA)])
    assert reply.status == 401
    assert b"send one so: Authorization: Bearer" in reply.body


async def test_two_tokens_are_none() -> None:
    reply = await Guarded().ask(token=ADA, headers=[("authorization", f"Bearer {BOB}")])
    assert (reply.status, reply.code) == (400, "malformed")


@pytest.mark.parametrize("path", ["/", "/page.js", "/server.js", "/healthz"])
async def test_what_is_served_without_a_token(path: str) -> None:
    guarded = Guarded()
    for method in ("GET", "HEAD"):
        assert (await guarded.ask(method, path, token="wrong")).status == 200
    assert [scope["state"]["caller"] for scope in guarded.echo.scopes] == ["", ""]
    assert (await guarded.ask("POST", path)).status == 401
    assert (await guarded.ask("GET", path, root_path="/think")).status == 200
    assert (await guarded.ask("GET", f"/think{path}", root_path="/think")).status == 200
    assert (await guarded.ask("GET", f"/other{path}", root_path="/think")).status == 401


@pytest.mark.parametrize(
    "path",
    [
        *("", "//", "/api", "/page.js/", "/PAGE.JS", "/page.html", "/other.js", "/page/page.js"),
        *("/healthz/x", "/api/../healthz", "/v1/runs", "/docs"),
    ],
)
async def test_what_is_served_only_to_known_callers(path: str) -> None:
    assert (await Guarded().ask(path=path)).status in (400, 401)


async def test_clients_of_letta_are_told_in_their_way() -> None:
    reply = await Guarded().ask(path="/v1/agents/")
    assert reply.status == 401
    assert reply.json() == {
        "detail": "the caller is unknown; give a token (Authorization: Bearer …), or log in"
    }
    mounted = await Guarded().ask(path="/think/v1/agents", root_path="/think")
    assert "detail" in mounted.json()
    assert "error" in (await Guarded().ask(path="/v1")).json()


async def test_what_a_caller_is_called_is_not_said_to_others() -> None:
    guarded = Guarded()
    state = {"server": "kept"}
    await guarded.ask(token=ADA, state=state)
    assert state == {"server": "kept"}
    assert guarded.echo.scopes[0]["state"] == {"server": "kept", "caller": "ada"}
    scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": [(b"Host", b"localhost")]}
    assert (await guarded.raw({**scope, "scheme": "http"})).status == 200, "servers may say less"


# What is said to browsers


async def test_every_answer_keeps_browsers_from_more() -> None:
    async def teapot(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("short and stout", 418)(scope, receive, send)

    guarded = Guarded(teapot)
    replies = [
        await guarded.ask(token=ADA),
        await guarded.ask(),
        await guarded.ask(host="evil.example.org"),
        await guarded.log_in(),
        await guarded.log_in("wrong"),
        await guarded.ask("POST", headers=[("origin", EVIL)]),
    ]
    assert [reply.status for reply in replies] == [418, 401, 421, 204, 401, 403]
    for reply in replies:
        assert reply.header("x-content-type-options") == "nosniff"
        assert reply.header("x-frame-options") == "DENY"
        assert reply.header("referrer-policy") == "no-referrer"
        assert reply.header("cache-control") == "no-store"
        assert reply.header("cross-origin-resource-policy") == "same-origin"
        assert reply.header("cross-origin-opener-policy") == "same-origin"
        assert reply.header("content-security-policy") == "default-src 'none'; frame-ancestors 'none'"
        assert reply.header("access-control-allow-origin") is None
        assert reply.header("vary") is None


async def test_what_the_application_says_itself_stands() -> None:
    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"Content-Security-Policy": "default-src 'self'", "Cache-Control": "max-age=60"}
        await PlainTextResponse("hello", headers=headers)(scope, receive, send)

    reply = await Guarded(page).ask(path="/")
    assert reply.header("content-security-policy") == "default-src 'self'"
    assert reply.header("cache-control") == "max-age=60"


# Hosts


@pytest.mark.parametrize(
    "host", ["localhost:8283", "LOCALHOST", "localhost.", "127.0.0.1", "[::1]:8283", "think.example.org:443"]
)
async def test_names_of_the_server(host: str) -> None:
    assert (await Guarded(who=access(hosts=["think.example.org"])).ask(token=ADA, host=host)).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example.org", "localhost.evil.example.org", "0.0.0.0:8283", "10.0.0.8", "[::2]"]
)
async def test_names_of_others(host: str) -> None:
    guarded = Guarded()
    forged = [("x-forwarded-host", "localhost"), ("forwarded", "host=localhost"), ("x-host", "localhost")]
    for path in ("/", "/api"):
        reply = await guarded.ask(path=path, token=ADA, host=host, headers=forged)
        assert (reply.status, reply.code) == (421, "wrong_host"), path
        assert host not in reply.body.decode()
    assert guarded.echo.scopes == []


async def test_the_address_that_was_connected_to_is_a_name() -> None:
    guarded = Guarded()
    for address, host in (
        ("10.0.0.8", "10.0.0.8:8283"),
        ("::ffff:10.0.0.8", "10.0.0.8"),
        ("fd00::8", "[fd00::8]"),
    ):
        assert (await guarded.ask(token=ADA, host=host, server=(address, 8283))).status == 200
        assert (await guarded.ask(token=ADA, host=host, server=None)).status == 421


@pytest.mark.parametrize(
    "host", [None, "", "localhost, evil.example.org", "ada@localhost", "localhost/", "[::1"]
)
async def test_no_name(host: str | None) -> None:
    reply = await Guarded().ask(token=ADA, host=host)
    assert (reply.status, reply.code) == (400, "malformed")


async def test_two_lengths() -> None:
    headers = [("content-length", "5"), ("transfer-encoding", "chunked")]
    guarded = Guarded()
    reply = await guarded.ask("POST", token=ADA, headers=headers)
    assert (reply.status, reply.code) == (400, "malformed")
    assert reply.header("connection") == "close"
    assert guarded.echo.scopes == []


@pytest.mark.parametrize("second", ["evil.example.org", HOST])
async def test_two_names(second: str) -> None:
    for headers in ([("host", second)], [("Host", second)]):
        assert (await Guarded().ask(token=ADA, headers=headers)).status == 400


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (f"http://{HOST}/api/runs", "/api/runs"),
        ("HTTP://LocalHost/api", "/api"),
        ("https://localhost", "/"),
        ("http://localhost:1//api", "//api"),
    ],
)
async def test_a_target_with_a_host(target: str, path: str) -> None:
    guarded = Guarded()
    assert (await guarded.ask(path=target, token=ADA)).json()["path"] == path
    assert "raw_path" not in guarded.echo.scopes[0]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://evil.example.org/", 421),
        ("http://evil.example.org@localhost/", 400),
        ("http:///", 400),
        ("ftp://localhost/", 400),
        ("localhost:80", 400),
        ("*", 400),
        ("healthz", 400),
    ],
)
async def test_a_target_of_others(target: str, status: int) -> None:
    assert (await Guarded().ask(path=target, token=ADA)).status == status


async def test_the_host_counts_beside_the_target() -> None:
    reply = await Guarded().ask(path="http://localhost/", token=ADA, host="evil.example.org")
    assert reply.status == 421


# Pages of others


@pytest.mark.parametrize(
    "origin",
    [
        EVIL,
        "null",
        "",
        f"https://{HOST}",
        "http://localhost:8283",
        "http://127.0.0.1:8284",
        f"{OWN}/",
        f"{OWN} {EVIL}",
    ],
)
async def test_pages_of_others_change_nothing(origin: str) -> None:
    guarded = Guarded()
    for method in ("POST", "PUT", "PATCH", "DELETE", "BREW"):
        reply = await guarded.ask(method, token=ADA, headers=[("origin", origin)])
        assert (reply.status, reply.code) == (403, "forbidden"), method
        assert reply.header("access-control-allow-origin") is None
    assert guarded.echo.scopes == []


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
async def test_pages_of_others_that_do_not_say_where_they_are_from(site: str) -> None:
    guarded = Guarded()
    cookie = (await guarded.log_in()).cookie
    reply = await guarded.ask("POST", token=ADA, headers=[("sec-fetch-site", site)])
    assert reply.status == 403
    reply = await guarded.ask("GET", cookie=cookie, headers=[("sec-fetch-site", site)])
    assert reply.status == 403, "another program on this machine has the same cookies"
    assert (await guarded.ask("GET", "/", headers=[("sec-fetch-site", site)])).status == 200, "a link"


async def test_two_origins() -> None:
    reply = await Guarded().ask(token=ADA, headers=[("origin", OWN), ("origin", EVIL)])
    assert reply.status == 400


@pytest.mark.parametrize(
    ("host", "scheme", "origin"),
    [
        (HOST, "http", OWN),
        ("LocalHost.:8283", "http", "http://localhost:8283"),
        ("localhost", "http", "http://localhost:80"),
        ("localhost:443", "https", "https://localhost"),
        ("[::1]:8283", "http", "http://[0::1]:8283"),
    ],
)
async def test_our_own_page(host: str, scheme: str, origin: str) -> None:
    guarded = Guarded()
    reply = await guarded.ask("POST", token=ADA, host=host, scheme=scheme, headers=[("origin", origin)])
    assert reply.status == 200
    assert reply.header("access-control-allow-origin") is None


async def test_programs_may_read_whatever_they_say() -> None:
    reply = await Guarded().ask(token=ADA, headers=[("origin", EVIL)])
    assert reply.status == 200
    assert reply.header("access-control-allow-origin") is None, "so no browser shows it to the page"


# Pages of places that the operator has named

APP = "https://app.example.org"


async def test_a_place_that_was_named() -> None:
    guarded = Guarded(who=access(origins=[APP]))
    for method in ("GET", "POST"):
        reply = await guarded.ask(method, token=ADA, headers=[("origin", APP)])
        assert reply.status == 200
        assert reply.header("access-control-allow-origin") == APP
        assert reply.header("access-control-allow-credentials") == "true"
        assert reply.header("access-control-expose-headers") == "Location, Retry-After"
        assert reply.header("vary") == "Origin"
    refused = await guarded.ask(headers=[("origin", APP)])
    assert refused.status == 401
    assert refused.header("access-control-allow-origin") == APP, "or the page could not read why"
    other = await guarded.ask(token=ADA, headers=[("origin", EVIL)])
    assert other.header("access-control-allow-origin") is None
    assert other.header("vary") == "Origin"


async def preflight(guarded: Guarded, origin: str, *names: str) -> Reply:
    asked = [("access-control-request-headers", name) for name in names]
    return await guarded.ask(
        "OPTIONS", headers=[("origin", origin), ("access-control-request-method", "POST"), *asked]
    )


async def test_a_browser_asks_before() -> None:
    guarded = Guarded(who=access(origins=[APP]))
    reply = await preflight(guarded, APP, "authorization,content-type", "idempotency-key")
    assert (reply.status, reply.body) == (204, b"")
    assert reply.header("access-control-allow-origin") == APP
    assert reply.header("access-control-allow-headers") == "authorization,content-type, idempotency-key"
    assert reply.header("access-control-allow-methods") == "GET, POST, PUT, PATCH, DELETE"
    assert reply.header("access-control-max-age") == "600"
    assert (await preflight(guarded, APP)).header("access-control-allow-headers") is None
    assert (await preflight(guarded, APP, "a: b\r\nc")).header("access-control-allow-headers") is None
    assert (await preflight(guarded, OWN)).status == 204
    assert guarded.echo.scopes == []


@pytest.mark.parametrize("origin", [EVIL, "null", "*"])
async def test_a_browser_asks_for_a_page_of_others(origin: str) -> None:
    reply = await preflight(Guarded(who=access(origins=[APP])), origin, "authorization")
    assert reply.status == 403
    assert [name for name, _ in reply.headers if name.startswith("access-control")] == []
    nobody = await Guarded().ask("OPTIONS", headers=[("access-control-request-method", "POST")])
    assert nobody.status == 403


async def test_options_that_no_browser_asks_for() -> None:
    guarded = Guarded()
    assert (await guarded.ask("OPTIONS")).status == 401
    assert (await guarded.ask("OPTIONS", token=ADA)).status == 200


# Proxies

FORWARDED = [("x-forwarded-for", "10.9.9.9"), ("x-forwarded-proto", "https")]


async def test_forwarding_headers_from_no_proxy_are_not_believed(caplog: pytest.LogCaptureFixture) -> None:
    guarded = Guarded()
    for _ in range(2):
        await guarded.ask(token=ADA, headers=FORWARDED)
    await guarded.ask(token=ADA, headers=FORWARDED, client=None)
    for scope in guarded.echo.scopes:
        assert scope["scheme"] == "http"
        assert scope["client"] in (None, ("127.0.0.1", 50_000))
    (told,) = caplog.messages
    assert told.startswith("A request from 127.0.0.1 says that it was forwarded, which is not believed.")


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (["10.9.9.9"], "10.9.9.9"),
        (["1.1.1.1, 10.9.9.9"], "10.9.9.9"),
        (["1.1.1.1", "10.9.9.9"], "10.9.9.9"),
        (["1.1.1.1, 10.9.9.9, 10.1.0.3"], "10.9.9.9"),
        (["10.1.0.3, 10.1.0.4"], "10.1.0.3"),
        (["10.9.9.9, unknown"], "127.0.0.1"),
        (["10.9.9.9, unknown, 10.1.0.3"], "10.1.0.3"),
        (["2001:DB8::1"], "2001:db8::1"),
        ([""], "127.0.0.1"),
        ([], "127.0.0.1"),
    ],
)
async def test_what_a_proxy_says_of_a_client(forwarded: list[str], client: str) -> None:
    guarded = Guarded(who=access(proxies=["127.0.0.1", "10.1.0.0/16"]))
    await guarded.ask(token=ADA, headers=[("x-forwarded-for", text) for text in forwarded])
    assert guarded.echo.scopes[0]["client"][0] == client
    assert guarded.echo.scopes[0]["scheme"] == "http"


@pytest.mark.parametrize(
    ("proto", "scheme"), [("https", "https"), ("http, HTTPS ", "https"), ("gopher", "http")]
)
async def test_what_a_proxy_says_of_the_way(proto: str, scheme: str) -> None:
    guarded = Guarded(who=access(proxies=["127.0.0.1"], hosts=["think.example.org"]))
    reply = await guarded.log_in(host="think.example.org", headers=[("x-forwarded-proto", proto)])
    assert ("Secure" in (reply.header("set-cookie") or "")) == (scheme == "https")
    same = await guarded.ask(
        "POST",
        token=ADA,
        host="think.example.org",
        headers=[("x-forwarded-proto", proto), ("origin", f"{scheme}://think.example.org")],
    )
    assert same.status == 200
    assert guarded.echo.scopes[0]["scheme"] == scheme


# What goes wrong


async def test_a_mistake_of_the_application_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("/home/ada/secret")

    guarded = Guarded(breaks)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {ADA}".encode())]
    scope = {"type": "http", "method": "GET", "scheme": "http", "path": "/api", "headers": headers}
    with pytest.raises(RuntimeError, match="secret"):
        await guarded.guard(scope, receive, send)
    assert sent[0]["status"] == 500
    assert (
        sent[1]["body"]
        == b'{"error":{"code":"server_error","message":"the server has failed; its log says more"}}'
    )
    assert (b"x-content-type-options", b"nosniff") in sent[0]["headers"]


async def test_a_refusal_of_the_application_is_told() -> None:
    async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
        raise RunNotFound

    reply = await Guarded(refuses).ask(token=ADA)
    assert (reply.status, reply.code) == (404, "run_not_found")


@pytest.mark.parametrize("error", [RunNotFound(), HTTPException(404)])
async def test_what_goes_wrong_behind_the_head_is_the_servers(error: Exception) -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error

    with pytest.raises(type(error)):
        await Guarded(breaks).ask(token=ADA)


async def test_there_are_no_websockets() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    guarded = Guarded()
    await guarded.guard({"type": "websocket", "path": "/", "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert guarded.echo.scopes == []


async def test_the_lifespan_is_the_applications() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError

    await Guarded(app).guard({"type": "lifespan"}, receive, send)
    assert seen == [{"type": "lifespan"}]


async def test_no_log_has_a_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    guarded = Guarded()
    wrong = "this-is-a-wrong-token"
    for _ in range(30):
        await guarded.ask(token=wrong)
        await guarded.log_in(wrong)
    await guarded.ask(token=ADA)
    await guarded.log_in(ADA)
    assert wrong not in caplog.text
    assert ADA not in caplog.text


async def test_streams_of_events_are_counted() -> None:
    begun = 0
    over = anyio.Event()

    async def events(scope: Scope, receive: Receive, send: Send) -> None:
        async def source() -> AsyncIterator[bytes]:
            nonlocal begun
            begun += 1
            yield b": hello\n\n"
            await over.wait()

        await StreamingResponse(source(), media_type="text/event-stream")(scope, receive, send)

    guarded = Guarded(events, limits=Limits(max_watchers=3, max_watchers_per_caller=2))
    replies: list[Reply] = []

    async def watch(token: str) -> None:
        replies.append(await guarded.ask(token=token))

    async with anyio.create_task_group() as tasks:
        for count, token in enumerate((ADA, ADA, BOB), 1):
            tasks.start_soon(watch, token)
            with anyio.fail_after(30):
                while begun < count:
                    await anyio.lowlevel.checkpoint()
        mine = await guarded.ask(token=ADA)
        assert (mine.status, mine.code) == (429, "too_many_watchers")
        assert "you watch as many runs as you may" in mine.json()["error"]["message"]
        assert mine.header("retry-after") == "5"
        others = await guarded.ask(token=BOB, path="/v1/x")
        assert others.status == 429
        assert "the server has as many watchers as it may" in others.json()["detail"]
        over.set()
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert (await guarded.ask(token=ADA)).status == 200, "they have left"


async def test_a_refused_caller_sends_nothing_more() -> None:
    failed: list[Exception] = []

    async def stubborn(scope: Scope, receive: Receive, send: Send) -> None:
        start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"Content-Type", b"text/event-stream")],
        }
        for message in (start, {"type": "http.response.body", "body": b"data: x"}, start):
            try:
                await send(message)
            except OSError as exc:
                failed.append(exc)
        raise RuntimeError

    reply = await Guarded(stubborn, limits=Limits(max_watchers=0)).ask(token=ADA)
    assert (reply.status, reply.code) == (429, "too_many_watchers")
    assert len(failed) == 3
