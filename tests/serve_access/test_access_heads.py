"""Heads of requests, whatever is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st
from serve_access.guarded import access

from thinkwell.web._refusals import RequestMalformed, WrongHost
from thinkwell.web.access._head import HeadReader
from thinkwell.web.access._origins import read_authority, read_origin

if TYPE_CHECKING:
    from thinkwell.web.access._head import Asked

NAMES = ("localhost", "127.0.0.1", "::1", "think.example.org")
"""What the server is called."""

READER = HeadReader(access(hosts=["think.example.org"], origins=["https://app.example.org"]))

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
headers = st.lists(
    st.tuples(st.sampled_from([b"host", b"Host", b"origin", b"sec-fetch-site"]), texts), max_size=4
)


def read(given: list[tuple[bytes, str]], path: str = "/", method: str = "POST") -> Asked | None:
    """Read a head; ``None``: it is refused."""
    lines = [(name, value.encode("latin-1")) for name, value in given]
    scope = {"type": "http", "method": method, "scheme": "http", "path": path, "headers": lines}
    try:
        return READER.read(scope)
    except (RequestMalformed, WrongHost):
        return None


@given(texts)
@example("localhost")
def test_a_host_is_the_servers_or_is_refused(text: str) -> None:
    asked = read([(b"host", text)])
    named = read_authority(text.strip())
    if named is not None and named.host in NAMES:
        assert asked is not None
    elif asked is not None:
        assert asked.host.host.startswith("127."), "all of that are this machine"


@given(texts, texts)
@example("localhost", "http://localhost")
@example("localhost:80", "https://app.example.org")
def test_a_page_is_ours_only_from_where_the_server_was_asked(host: str, origin: str) -> None:
    asked = read([(b"host", host), (b"origin", origin)])
    if asked is None:
        return
    place = read_origin(origin.strip())
    if asked.page == "own":
        assert place is not None
        assert (place.scheme, place.host, place.port) == (
            "http",
            asked.host.host,
            asked.host.port_for("http"),
        )
    elif asked.page == "shared":
        assert place == read_origin("https://app.example.org")
    else:
        assert asked.page == "foreign"


@given(headers, texts)
def test_whatever_is_sent_is_judged_or_refused(given: list[tuple[bytes, str]], path: str) -> None:
    asked = read(given, path)
    hosts = [value for name, value in given if name.lower() == b"host"]
    if asked is None:
        return
    assert len(hosts) == 1
    assert asked.scope["path"].startswith("/")
    assert asked.path == asked.scope["path"]
    assert asked.page in (None, "own", "shared", "foreign")


@given(texts)
@example("http://localhost/api")
@example("http://evil.example.org/api")
def test_a_target_with_a_host_is_the_servers_or_is_refused(target: str) -> None:
    asked = read([(b"host", "localhost")], target)
    if target.startswith("/"):
        assert asked is not None
        assert asked.path == target
    elif asked is not None:
        named = read_authority(target.partition("://")[2].partition("/")[0])
        assert named is not None
        assert named.host in NAMES or named.host.startswith("127.")
