"""What an operator can say of who may use his server."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest
from serve_access.guarded import ADA, BOB, access, is_shared

from thinkwell.web import Access
from thinkwell.web.access import read_authority

SECRET = "a secret\twith blanks"


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        ({}, "tokens: there is none; no one could use the server"),
        ({"short": "ada"}, "the token of 'ada' has 5 characters; it needs 16 to 512"),
        ({"x1y2z3" * 100: "ada"}, "the token of 'ada' has 600 characters"),
        ({SECRET: "ada"}, "has blanks or characters that are not ASCII"),
        ({"ångström-ångström-1": "ada"}, "has blanks or characters that are not ASCII"),
        ({"abcabcabcabcabcabcabc": "ada"}, "can be guessed"),
        ({ADA: ""}, "a caller's name has 1 to 100 characters"),
        ({ADA: "a\nb"}, "a caller's name has 1 to 100 characters"),
        ({ADA: "a" * 101}, "a caller's name has 1 to 100 characters"),
    ],
)
def test_tokens_that_cannot_be_used(tokens: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=r"^t") as caught:
        Access(tokens)
    assert told in str(caught.value)
    assert not any(token in str(caught.value) for token in tokens if len(token) > 5)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"hosts": ["https://think.example.org"]}, "hosts: 'https://think.example.org' is not a name"),
        ({"hosts": ["*"]}, "hosts: '*' is not a name"),
        ({"hosts": ["münchen.example"]}, "and other letters as xn--"),
        ({"origins": ["*"]}, "There is no wildcard"),
        ({"origins": ["null"]}, "origins: 'null' is not an origin"),
        ({"origins": ["think.example.org"]}, "give each as https://app.example.org"),
        ({"origins": ["https://think.example.org/path"]}, "without a path"),
        ({"proxies": ["proxy"]}, "proxies: 'proxy' is not an address"),
        ({"proxies": ["10.0.0.1/8"]}, "proxies: '10.0.0.1/8' is not an address"),
        ({"session_age": 0}, "session_age: it is 0; give seconds above 0"),
        ({"session_age": math.inf}, "session_age: it is inf"),
        ({"session_age": math.nan}, "session_age: it is nan"),
        ({"max_sessions": 0}, "max_sessions: it is 0; give 1 or more"),
    ],
)
def test_settings_that_cannot_be_used(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=r"^\w+: ") as caught:
        access(**options)
    assert told in str(caught.value)


def test_whose_a_token_is() -> None:
    who = Access({ADA: "ada", BOB: "bob", "ada-has-another-3": "ada"})
    assert who.tokens.callers == ("ada", "bob")
    assert [who.tokens.caller(token) for token in (ADA, BOB, "ada-has-another-3")] == ["ada", "bob", "ada"]
    for wrong in ("", "ada", ADA[:-1], f"{ADA} ", ADA.upper(), "\udc80", "ä"):
        assert who.tokens.caller(wrong) is None


def test_a_token_that_is_just_good_enough() -> None:
    for token in ("abcdef" + "a" * 10, "abcdef" + "a" * 506):
        assert Access({token: "a" * 100}).tokens.caller(token) == "a" * 100


def test_what_is_said_of_it_has_no_token() -> None:
    who = access(origins=["https://app.example.org"])
    assert repr(who) == "<Access for ada, bob>"
    for told in (repr(who), repr(vars(who)), repr(vars(who.tokens)), repr(pickle.dumps(who))):
        assert ADA not in told
    assert copy.deepcopy(who).tokens.caller(ADA) == "ada"


def test_names() -> None:
    who = access(hosts=["Think.Example.org.", "other.example.org:8443", "[2001:db8::1]"])

    def goes_by(text: str, local: str | None = "10.0.0.7") -> bool:
        asked = read_authority(text)
        assert asked is not None
        return who.is_name(asked, local)

    for name in ("localhost", "LOCALHOST.:1", "127.0.0.1", "127.0.0.2:80", "[::1]", "[::ffff:127.0.0.1]"):
        assert goes_by(name)
        assert goes_by(name, None)
    assert goes_by("think.example.org")
    assert goes_by("THINK.example.org:9000")
    assert goes_by("other.example.org:8443")
    assert not goes_by("other.example.org")
    assert not goes_by("other.example.org:8444")
    assert goes_by("[2001:DB8:0::1]:80")
    assert goes_by("10.0.0.7:8283")
    assert not goes_by("10.0.0.8")
    assert not goes_by("10.0.0.7", None)
    assert not goes_by("10.0.0.7", "/run/socket")
    assert goes_by("[fe80::1]", "fe80::1%eth0")
    assert goes_by("10.0.0.9", "::ffff:10.0.0.9")
    for name in (
        "localhost.example.org",
        "evil.example.org",
        "a.localhost",
        "0.0.0.0",
        "[::]",
        "127.0.0.1.nip",
    ):
        assert not goes_by(name)


def test_places_of_pages() -> None:
    who = access(origins=["https://app.example.org/", "HTTP://localhost:5173", "tauri://localhost"])
    assert who.shares
    assert not access().shares
    for text in ("https://app.example.org", "https://app.example.org:443", "http://LOCALHOST:5173"):
        assert is_shared(who, text)
    assert is_shared(who, "tauri://localhost")
    for text in (
        "http://app.example.org",
        "https://app.example.org:8443",
        "https://x.app.example.org",
        "null",
    ):
        assert not is_shared(who, text)


def test_proxies() -> None:
    who = access(proxies=["127.0.0.1", "10.1.0.0/16", "2001:db8::/32"])
    for host in ("127.0.0.1", "::ffff:127.0.0.1", "10.1.2.3", "2001:db8::7"):
        assert who.is_proxy(host)
    for host in ("127.0.0.2", "10.2.0.1", "::1", "unix", ""):
        assert not who.is_proxy(host)
