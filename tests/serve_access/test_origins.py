"""Names of servers and places of pages, as headers have them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.web.access._origins import Authority, Origin, address_of, read_authority, read_origin, unmapped

labels = st.from_regex(r"[a-z]([a-z0-9_-]{0,10}[a-z0-9_])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=5).map(".".join)
v4 = st.ip_addresses(v=4).map(str)
v6 = st.ip_addresses(v=6)
hosts = st.one_of(names, v4, v6.map(lambda address: f"[{address}]"))
ports = st.integers(1, 65_535)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("localhost", Authority("localhost")),
        ("LOCALHOST.:8283", Authority("localhost", 8283)),
        ("localhost:", Authority("localhost")),
        ("127.0.0.1:80", Authority("127.0.0.1", 80)),
        ("127.0.0.1.", Authority("127.0.0.1")),
        ("[::1]:8283", Authority("::1", 8283)),
        ("[0:0::0001]", Authority("::1")),
        ("[::ffff:127.0.0.1]", Authority("127.0.0.1")),
        ("[::FFFF:7f00:1]", Authority("127.0.0.1")),
        ("a_b.xn--mnchen-3ya.example", Authority("a_b.xn--mnchen-3ya.example")),
    ],
)
def test_what_is_one(text: str, found: Authority) -> None:
    assert read_authority(text) == found


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
    assert read_origin(f"http://{text}") is None


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
    for found in (read_authority(text), read_origin(text)):
        assert found is None or found.host.isascii()
        assert found is None or not set(found.host) & set("/\\@?#%,; \t\r\n[]")
        assert found is None or found.port is None or 0 < found.port < 65_536


@given(v6)
def test_addresses_of_ipv6_are_written_in_one_way(address: IPv6Address) -> None:
    expected = str(address.ipv4_mapped or address)
    for text in (str(address), address.exploded, address.compressed.upper()):
        found = read_authority(f"[{text}]")
        assert found is not None
        assert found.host == expected
        assert str(unmapped(text)) == expected


def test_addresses() -> None:
    assert address_of("127.0.0.1") == IPv4Address("127.0.0.1")
    assert address_of("::1") == IPv6Address("::1")
    assert address_of("localhost") is None
    assert unmapped("fe80::1%eth0") == IPv6Address("fe80::1")
    assert unmapped("::ffff:10.0.0.7") == IPv4Address("10.0.0.7")
    assert unmapped("/run/socket") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("http://localhost", Origin("http", "localhost", 80)),
        ("HTTP://LocalHost.:80", Origin("http", "localhost", 80)),
        ("https://think.example.org", Origin("https", "think.example.org", 443)),
        ("https://[::1]:8283", Origin("https", "::1", 8283)),
        ("tauri://localhost", Origin("tauri", "localhost", None)),
        ("chrome-extension://abcdef", Origin("chrome-extension", "abcdef", None)),
    ],
)
def test_places_of_pages(text: str, found: Origin) -> None:
    assert read_origin(text) == found


@pytest.mark.parametrize(
    "text",
    [
        *(
            "null",
            "",
            "localhost",
            "//localhost",
            "://localhost",
            "http:/localhost",
            "1http://localhost",
            "*",
        ),
        *("http://localhost/", "http://localhost/path", "file://", "http://a@localhost", "http://a http://b"),
    ],
)
def test_what_is_no_place(text: str) -> None:
    assert read_origin(text) is None


@given(hosts, st.sampled_from(["http", "https"]))
def test_a_port_that_is_meant_anyway(host: str, scheme: str) -> None:
    port = {"http": 80, "https": 443}[scheme]
    assert read_origin(f"{scheme}://{host}") == read_origin(f"{scheme}://{host}:{port}") is not None
    assert read_origin(f"{scheme}://{host}:81") != read_origin(f"{scheme}://{host}")
