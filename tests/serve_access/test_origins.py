"""Names of servers and places of pages, as headers have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serve_access.guarded import access, is_shared

from thinkwell.web.access import read_authority

if TYPE_CHECKING:
    from ipaddress import IPv6Address

labels = st.from_regex(r"[a-z]([a-z0-9_-]{0,10}[a-z0-9_])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=5).map(".".join)
v4 = st.ip_addresses(v=4).map(str)
v6 = st.ip_addresses(v=6)
hosts = st.one_of(names, v4, v6.map(lambda address: f"[{address}]"))
ports = st.integers(1, 65_535)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost", "localhost", None),
        ("LOCALHOST.:8283", "localhost", 8283),
        ("localhost:", "localhost", None),
        ("127.0.0.1:80", "127.0.0.1", 80),
        ("127.0.0.1.", "127.0.0.1", None),
        ("[::1]:8283", "::1", 8283),
        ("[0:0::0001]", "::1", None),
        ("[::ffff:127.0.0.1]", "127.0.0.1", None),
        ("[::FFFF:7f00:1]", "127.0.0.1", None),
        ("a_b.xn--mnchen-3ya.example", "a_b.xn--mnchen-3ya.example", None),
    ],
)
def test_what_is_one(text: str, host: str, port: int | None) -> None:
    found = read_authority(text)
    assert found is not None
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "a..b", "-a", "a-", "a b", "a,b", "a/b", "a?b", "a#b", "a%62", "\N{KELVIN SIGN}"),
        *(
            "ada@localhost",
            "localhost:65536",
            "localhost:0",
            "localhost:123456",
            "localhost:+1",
            "localhost:１",
        ),
        *("::1", "[::1", "::1]", "[::1]x", "[1.2.3.4]", "[fe80::1%25eth0]", "[v1.a]", "[]", "[::1]:8283:1"),
        *("127.1", "127.0.0.01", "256.0.0.1", "1.2.3.4.5", "2130706433", "a.1", "*", "*.example.org"),
        *("a" * 64, ".".join(["a" * 60] * 5), "localhost\n", "localhost\x00", "localhost\r\nX: y"),
    ],
)
def test_what_is_none(text: str) -> None:
    assert read_authority(text) is None
    with pytest.raises(ValueError, match=r"^origins: "):
        access(origins=[f"http://{text}"])


@given(hosts, st.one_of(st.none(), ports), st.sampled_from(["", "."]))
def test_one_form_of_each(host: str, port: int | None, dot: str) -> None:
    tail = "" if port is None else f":{port}"
    dot = "" if host.startswith("[") else dot
    found = read_authority(f"{host}{tail}")
    assert found is not None
    assert found.port == port
    assert read_authority(f"{host.upper()}{dot}{tail}") == found
    again = f"[{found.host}]" if ":" in found.host else found.host
    assert read_authority(f"{again}{tail}") == found


@given(st.text(max_size=300))
def test_whatever_is_said_is_understood_or_not(text: str) -> None:
    found = read_authority(text)
    assert found is None or found.host.isascii()
    assert found is None or not set(found.host) & set("/\\@?#%,; \t\r\n[]")
    assert found is None or found.port is None or 0 < found.port < 65_536


@given(v6)
def test_addresses_of_ipv6_are_written_in_one_way(address: IPv6Address) -> None:
    who, expected = access(), str(address.ipv4_mapped or address)
    for text in (str(address), address.exploded, address.compressed.upper()):
        found = read_authority(f"[{text}]")
        assert found is not None
        assert found.host == expected
        assert who.is_name(found, text), "it was connected to"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("http://localhost", "http://localhost:80"),
        ("HTTP://LocalHost.:80", "http://localhost"),
        ("https://think.example.org", "https://think.example.org:443"),
        ("https://[::1]:8283", "https://[0::1]:8283"),
        ("tauri://localhost", "tauri://localhost"),
        ("chrome-extension://abcdef", "Chrome-Extension://ABCDEF"),
    ],
)
def test_places_of_pages(text: str, place: str) -> None:
    assert is_shared(access(origins=[place]), text)
    assert is_shared(access(origins=[text]), place)
    for other in (f"x{text}", text.replace("://", "://x.").replace("[", ""), "tauri://localhost:80"):
        assert not is_shared(access(origins=[place]), other)


NO_PLACES = (
    *("null", "", "localhost", "//localhost", "://localhost", "http:/localhost", "1http://localhost", "*"),
    *("http://localhost/path", "file://", "http://a@localhost", "http://a http://b"),
)


@pytest.mark.parametrize("text", NO_PLACES)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"^origins: "):
        access(origins=[text])
    assert not is_shared(access(origins=["http://localhost"]), text)


def test_browsers_end_a_place_with_nothing() -> None:
    assert is_shared(access(origins=["http://localhost/"]), "http://localhost")
    assert not is_shared(access(origins=["http://localhost/"]), "http://localhost/")


@given(hosts, st.sampled_from(["http", "https"]))
def test_a_port_that_is_meant_anyway(host: str, scheme: str) -> None:
    who, port = access(origins=[f"{scheme}://{host}"]), {"http": 80, "https": 443}[scheme]
    assert is_shared(who, f"{scheme}://{host}:{port}")
    assert not is_shared(who, f"{scheme}://{host}:81")
