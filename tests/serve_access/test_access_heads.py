"""Heads of requests, whatever is in them."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from serve_access.guarded import ADA, Guarded, Reply, access, asked

from thinkwell.web.access import read_authority

NAMES = ("localhost", "127.0.0.1", "::1", "think.example.org")
"""What the server is called."""

MARKS = (
    ":",
    "80",
    "443",
    "8283",
    ".",
    "/",
    "@",
    "#",
    "?",
    ",",
    " ",
    "\t",
    "*",
    "%00",
    "\x00",
    "\xa0",
    "\xe9",
)
pieces = st.sampled_from(
    (
        *NAMES,
        *MARKS,
        "[::1]",
        "LOCALHOST",
        "evil.example.org",
        "app.example.org",
        "http://",
        "https://",
        "null",
    )
)
texts = st.lists(pieces, max_size=6).map("".join) | st.text(st.characters(max_codepoint=255), max_size=40)
names = st.sampled_from(["host", "Host", "origin", "sec-fetch-site"])
heads = st.lists(st.tuples(names, texts), max_size=4)

GUARDED = Guarded(who=access(hosts=["think.example.org"], origins=["https://app.example.org"]))


def read(headers: list[tuple[str, str]], path: str = "/", method: str = "POST") -> Reply | None:
    """Send a request of a caller; ``None``: it cannot be understood, or is for somebody else."""
    reply = asked(GUARDED, method=method, path=path, host=None, token=ADA, headers=headers)
    assert reply.status in (200, 400, 403, 421)
    return None if reply.status in (400, 421) else reply


@given(texts)
@example("localhost")
def test_a_host_is_the_servers_or_is_refused(text: str) -> None:
    reply = read([("host", text)])
    named = read_authority(text.strip())
    if named is not None and named.host in NAMES:
        assert reply is not None
    elif reply is not None:
        assert named is not None
        assert named.host.startswith("127."), "all of that are this machine"


@given(texts, texts)
@example("localhost", "http://localhost")
@example("localhost:80", "https://app.example.org")
def test_a_page_is_ours_only_from_where_the_server_was_asked(host: str, origin: str) -> None:
    reply = read([("host", host), ("origin", origin)])
    if reply is None or reply.status == 403:  # of a page of others
        return
    scheme, _, rest = origin.strip().partition("://")
    place, named = read_authority(rest), read_authority(host.strip())
    assert place is not None
    assert named is not None
    found = (scheme.lower(), place.host, place.port_for(scheme.lower()))
    if reply.header("access-control-allow-origin") is None:
        assert found == ("http", named.host, named.port_for("http"))
    else:
        assert found == ("https", "app.example.org", 443)


@given(heads, texts)
def test_whatever_is_sent_is_judged_or_refused(headers: list[tuple[str, str]], path: str) -> None:
    reply = read(headers, path)
    if reply is not None:
        assert [name.lower() for name, _ in headers].count("host") == 1
    if reply is not None and reply.status == 200:
        assert reply.json()["path"].startswith("/")


@given(texts)
@example("http://localhost/api")
@example("http://evil.example.org/api")
def test_a_target_with_a_host_is_the_servers_or_is_refused(target: str) -> None:
    reply = read([("host", "localhost")], target)
    if target.startswith("/"):
        assert reply is not None
        assert reply.json()["path"] == target
    elif reply is not None:
        named = read_authority(target.partition("://")[2].partition("/")[0])
        assert named is not None
        assert named.host in NAMES or named.host.startswith("127.")
