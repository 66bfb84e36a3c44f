"""The parts of a recorder that need no run: they take out secrets, also those that come in pieces."""
# Private: sans-I/O. Thousands of texts are cut at every place: to record a run for each would take minutes.
# No run can be given a limit of ten bytes, or ends by an error that holds what is no JSON.

from __future__ import annotations

import base64
import json
import re
import time
import tomllib
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recording.test_recording import lines
from suite.tiers import few

import thinkwell
from thinkwell._recording._failures import failure_of
from thinkwell._recording._holding import Holder, Released
from thinkwell._recording._recorder import Recorder
from thinkwell._recording._redact import Redactor
from thinkwell._recording._table import looks
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.events import JsonValue

R = TypeVar("R")

REDACTED = "[redacted]"


def redactor_of(environment: Mapping[str, str] | None = None) -> Redactor:
    """Return one that knows the variables of the agent's process."""
    return Redactor(environment or {})


def remembered(holder: Holder[R]) -> int:
    """Return of how many texts something is remembered."""
    return len(holder._streams)


# Text: what is taken out, and what stays


SIZE = 1_000_000
KEY = "Zk3v9QpL7xWm2RtY"
PEM_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\nC7VJTUt9Us8cKj\nabc+/=="
PEM_TEXT = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n-----END RSA PRIVATE KEY-----"

SHAPES = [
    "sk-proj-abcDEF123456ghiJKL789",
    "sk-ant-api03-AbC_dEf-1234567890abcdefAA",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghij_klmnopqrstuvwxyz",
    "glpat-abcDEF1234567890abcd",
    "xox" + "b-123456789012-1234567890123-AbCdEfGhIjKlMnOp",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "ya29.a0AfH6SMBx1234567890abcdef",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "pypi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4",
    "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0",
    "sk" + "_live_abcdefghijklmnop",
    "SK" + "0123456789abcdef0123456789abcdef",
    "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789",
    "hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "/api/webhooks/123456789012345678/abcdefghijklmnopqrstuvwxyz",
    "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
]


@pytest.fixture
def plain() -> Redactor:
    return redactor_of()


@pytest.mark.parametrize("secret", SHAPES)
@pytest.mark.parametrize("around", ["{}", "use {} now", '{{"x": "{}"}}', "密钥{}。", "a\\n{}\\nb", "({})"])
def test_what_looks_like_a_key_is_replaced(plain: Redactor, secret: str, around: str) -> None:
    assert plain.text(around.format(secret)) == around.format(REDACTED)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abcdefgh1", "Authorization: [redacted]"),
        ('curl -H "Authorization: token abcdefghij" x', 'curl -H "Authorization: [redacted]" x'),
        ('{"authorization": "abc123def"}', '{"authorization": "[redacted]"}'),
        ("got Bearer b34b682da1b51c3c, fine", "got Bearer [redacted], fine"),
        ("Basic dXNlcjpwYXNzd29yZA== x", "Basic [redacted] x"),
        ("Basic abcdefghijklmnopqrstuvwxyz", "Basic [redacted]"),
        ("Cookie: sid=abc; theme=dark\nnext", "Cookie: [redacted]\nnext"),
        ("export MY_KEY=a,b;c$d)e\nX=1", "export MY_KEY=[redacted]\nX=1"),
        ("DB_PASSWORD=letmein", "DB_PASSWORD=[redacted]"),
        ("password: letmein now", "password: [redacted] now"),
        ("passwd: 1234", "passwd: [redacted]"),
        ("api_key = abc-def-ghi-jkl", "api_key = [redacted]"),
        ("apiKey: abc123", "apiKey: [redacted]"),
        ("The API key: abc123 works", "The API key: [redacted] works"),
        ("auth_token=12345678", "auth_token=[redacted]"),
        ("--token abc123 --verbose", "--token [redacted] --verbose"),
        ("--password=letmein x", "--password=[redacted] x"),
        ('{"password": "two words", "n": 1}', '{"password": "[redacted]", "n": 1}'),
        (r'"{\"api_key\": \"ab\\\"c12\", \"n\": 1}"', r'"{\"api_key\": \"[redacted]\", \"n\": 1}"'),
        (r'{"secret": "a\"b\\c1", "n": 1}', r'{"secret": "[redacted]", "n": 1}'),
        ("secret='abc 123' x", "secret='[redacted]' x"),
        ("secret=`abc 123` x", "secret=`[redacted]` x"),
        ('os.environ["API_KEY"] = "abc123"', 'os.environ["API_KEY"] = "[redacted]"'),
        ("postgres://joe:s3@cr%2Ft@host/db", "postgres://joe:[redacted]@host/db"),
        ("https://0123456789abcdef0123@github.com/a", "https://[redacted]@github.com/a"),
        ("https://h/p?token=abc123&page=2", "https://h/p?token=[redacted]&page=2"),
        ("https://h/p?a=1&key=abc123xyz#x", "https://h/p?a=1&key=[redacted]"),
        ('token: "' + "word " * 50 + '"', 'token: "[redacted]"'),
        (f"a {PEM_TEXT} b", "a [redacted] b"),
        (json.dumps({"x": PEM_TEXT}), '{"x": "[redacted]"}'),
        (f"a {PEM_TEXT[:90]}", "a [redacted]"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQOY", "[redacted]"),
    ],
)
def test_what_stands_behind_a_name_is_replaced(plain: Redactor, text: str, clean: str) -> None:
    assert plain.text(text) == clean
    assert plain.text(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "521c1646-bd25-44aa-a198-191367bbbf76",
        "e10c92ed14ac8a06d2b911dbd349b9e0c92ed14a",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "/usr/local/lib/python3.12/site-packages/sk-learn-extra-tools-for-all/x.py",
        "a very-long-kebab-case-name-of-something and some_long_snake_case_name",
        "input_tokens=12 max_tokens: 4096, totalTokens: 99, tokenCount=3",
        "Bearer tokens and Basic authentication, Token refresh logic",
        "password: required, token: string, api_key: None, secret: true",
        "token = get_token() ; key = keys[0] ; password = sha256(x)",
        'token = os.environ["TOKEN"]; API_KEY=$KEY; API_KEY=${KEY}; --token <token>',
        "API_KEY=xxxx TOKEN=**** SECRET=... token: <yours>",
        "token: 12345, next_token: abc123def, progressToken: a1b2c3d4",
        "SSH_AUTH_SOCK=/tmp/ssh-a1/agent.1 TOKEN_URL=https://a/b1 KEY_ID=ab12cd34",
        "CREDENTIALS=/home/joe/key1.json",
        "ssh://git@github.com/a/b.git and https://user@host/x and http://a:$PASS@b",
        "https://h/p?key=name&page=2",
        'the auth: "see the docs" and Cookie: none',
        "-----BEGIN RSA PRIVATE KEY----- is how such files begin",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE\n-----END CERTIFICATE-----",
        "AKIASHORT xSK0123 12:30:45 ghp_short https://medium.com/@user/x",
        "authorization: Bearer token",
        "SK0123456789abcdef0123456789abcdefghij and fooAKIAIOSFODNN7EXAMPLE",
        base64.b64encode(bytes(range(256)) * 40).decode(),
        "",
    ],
)
def test_what_is_no_secret_stays(plain: Redactor, text: str) -> None:
    assert plain.text(text) == text


def test_known_secrets_are_found_in_every_spelling() -> None:
    secret = 'p"ss/wörd+1?&x'
    redactor = redactor_of({"MY_TOKEN": secret})
    twice = json.dumps(json.dumps(secret)[1:-1])[1:-1]
    for form in (
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        twice,
        quote(secret, safe=""),
        quote(secret, safe="").lower().replace("w%c3%b6rd", "w%c3%b6rd"),
        base64.b64encode(secret.encode()).decode().rstrip("="),
    ):
        assert redactor.text(f"<{form}>") == "<[redacted:MY_TOKEN]>"


@pytest.mark.parametrize("user", ["", "a", "ab", "abc"])
def test_known_secrets_are_found_within_base64(user: str) -> None:
    encoded = base64.b64encode(f"{user}:{KEY}:rest".encode()).decode()
    clean = redactor_of({"A_KEY": KEY}).text(encoded)
    assert "[redacted:A_KEY]" in clean
    assert KEY[1:-1] not in base64.b64decode(clean.replace("[redacted:A_KEY]", "") + "==").decode(
        errors="replace"
    )


def test_known_secrets_with_white_space_and_odd_characters_are_found() -> None:
    redactor = redactor_of({"A_PASSPHRASE": "correct horse\nbattery", "B_KEY": "ab\udcffcdef"})
    assert redactor.text("say correct horse\nbattery twice") == "say [redacted:A_PASSPHRASE] twice"
    assert redactor.text("x ab\udcffcdef") == "x [redacted:B_KEY]"


def test_overlapping_secrets_become_one_with_the_variables_name() -> None:
    redactor = redactor_of({"A_KEY": KEY})
    assert redactor.text(f"token={KEY} and password={KEY}x") == (
        "token=[redacted:A_KEY] and password=[redacted:A_KEY]"
    )


def test_many_different_texts_do_not_fill_the_memory() -> None:
    redactor = redactor_of({"A_KEY": KEY})
    for number in range(6000):
        redactor.text(f"w{number}x and w{number}y")
        redactor.redact({f"k{number}": number})
    assert redactor.text(f"w1x {KEY}") == "w1x [redacted:A_KEY]"


@pytest.mark.long
@pytest.mark.parametrize(
    "unit",
    [
        "sk-",
        "-eyJ",
        "eyJaaaaaaaaaaaaa.",
        "://a:b",
        "a.",
        "token=",
        '"password":"',
        "-----BEGIN A ",
        "1:",
        "SG.a",
        "\\",
    ],
)
def test_hostile_text_of_a_megabyte_is_gone_through_in_one_go(plain: Redactor, unit: str) -> None:
    text = unit * (SIZE // len(unit))
    assert len(plain.text(text)) <= len(text) + len(REDACTED) * text.count(unit)


# The table of secrets


TABLE: dict[str, Any] = tomllib.loads(
    Path(thinkwell.__file__).with_name("_recording").joinpath("secrets.toml").read_text()
)
ROWS: list[dict[str, Any]] = TABLE["row"]
by_row = pytest.mark.parametrize("row", ROWS, ids=[row["kind"] for row in ROWS])


@by_row
def test_each_row_says_where_it_is_from_and_finds_its_examples(plain: Redactor, row: dict[str, Any]) -> None:
    assert row["source"]
    assert isinstance(row["date"], date)
    assert len(row["true"]) >= 2 <= len(row["false"])
    for text in row["true"]:
        clean = plain.text(text)
        assert REDACTED in clean
        assert "hunter2" not in clean
        assert not [secret for secret in re.findall("[A-Za-z0-9]{20,}", text) if secret in clean]
        assert plain.text(clean) == clean
    for text in row["false"]:
        assert plain.text(text) == text


def test_no_group_is_possessive() -> None:
    # Python before 3.11.5 goes too far in one: https://github.com/python/cpython/issues/106052
    assert re.findall(r"\)(?:[?*+]|\{[0-9,]+\})\+.{0,20}", repr(TABLE)) == []


@pytest.mark.parametrize("row", TABLE["name"], ids=lambda row: row["true"][0])
def test_each_row_of_names_says_where_it_is_from_and_fits_its_examples(
    plain: Redactor, row: dict[str, Any]
) -> None:
    assert row["source"]
    assert isinstance(row["date"], date)
    assert len(row["true"]) >= 2 <= len(row["false"])
    promises = row["kind"] != "plain"
    for name, fits in [*((name, True) for name in row["true"]), *((name, False) for name in row["false"])]:
        assignment = f"{name}={'sid=' * (row['kind'] == 'cookie')}Qm7xV2pLr9sT4"
        assert (plain.text(assignment) != assignment) is (fits is promises), name


@by_row
def test_the_examples_are_found_in_pieces_too(plain: Redactor, row: dict[str, Any]) -> None:
    for text in row["true"]:
        whole = f"see: {text}\n\nok "
        clean = plain.text(whole)
        for places in (range(len(whole)), *([place] for place in range(len(whole)))):
            pieces = [Piece("s", piece) for piece in cut(whole, list(places))]
            assert "".join(out.text or "" for out in run(Holder(plain), pieces)) == clean


@pytest.mark.long
@by_row
def test_hostile_text_costs_no_more_than_its_length(plain: Redactor, row: dict[str, Any]) -> None:
    words = [*row.get("after", ("",)), *row.get("begins", ("a1:", "M."))]
    for unit in (
        *words,
        *(f"{words[0]} {word} " for word in words),
        *(f"{words[0]} {word}x:y:" for word in words),
    ):
        text = unit * (SIZE // 100 // len(unit or "a"))
        assert len(plain.text(text)) <= len(text) + len(REDACTED) * len(text)
        assert len(plain.text(words[0] + unit + "x" * (SIZE // 100))) > 0


@pytest.mark.parametrize("name", [name for name, part in TABLE["part"].items() if "true" in part])
def test_each_look_tells_its_examples_apart(name: str) -> None:
    part = TABLE["part"][name]
    assert len(part["true"]) >= 2 <= len(part["false"])
    assert [text for text in part["true"] if not looks(name, text)] == []
    assert [text for text in part["false"] if looks(name, text)] == []


# Messages: what is taken out by the names in them; which values of variables are secrets


DEPTH = 100
"""Levels of lists and objects that are looked into."""

LEARNED = 64
"""Secrets found under their names that are remembered."""


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "MY_KEY",
        "KEY",
        "GITHUB_TOKEN",
        "TOKEN2",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "SMTP_PASS",
        "PGPASSWORD",
        "MYSQL_PWD",
        "pwd",
        "passphrase",
        "NPM_CONFIG__AUTH",
        "AWS_CREDENTIALS",
        "SENTRY_DSN",
        "COOKIE",
        "authorization",
        "Proxy-Authorization",
        "x-api-key",
        "X-Goog-Api-Key",
        "apiKey",
        "api_key",
        "apikey",
        "access_token",
        "refreshToken",
        "accessTokens",
        "client_secret",
        "Set-Cookie",
        "private_key",
        "privateKeyPem",
        "secret_id",
        "totp",
        "mnemonic",
        "connectionString",
        "githubtoken",
        "idToken",
        "AZURE_PAT",
        "CI_JOB_JWT",
    ],
)
def test_names_that_promise_a_secret(name: str) -> None:
    long = ("X" if name.isupper() else "x") * 5000 + "_" + name
    for each in (name, long):
        assert redactor_of().redact({each: KEY}) == {each: REDACTED}
    text = f"{name}: a={KEY}" if "cookie" in name.lower() else f"{name}={KEY}"
    assert KEY not in redactor_of().text(text)


@pytest.mark.parametrize(
    "name",
    [
        "PWD",
        "OLDPWD",
        "SSH_AUTH_SOCK",
        "GPG_KEY",
        "PAT",
        "file_pat",
        "JWT_ISSUER",
        "SSH_PUBLIC_KEY",
        "PRIMARY_KEY",
        "AWS_ACCESS_KEY_ID",
        "TOKEN_URL",
        "PASSWORD_FILE",
        "XDG_SESSION_ID",
        "sessionId",
        "GIT_AUTHOR_NAME",
        "XAUTHORITY",
        "key",
        "keys",
        "sortKey",
        "input_tokens",
        "totalTokens",
        "tokenCount",
        "max_tokens",
        "tokens",
        "nextToken",
        "progressToken",
        "authMethods",
        "MONKEY",
        "keyboard",
        "pass",
        "bypass",
        "author",
        "123",
        "",
    ],
)
def test_names_that_promise_none(name: str) -> None:
    assert redactor_of().redact({name: KEY}) == {name: KEY}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A_KEY", KEY),
        ("DB_PASSWORD", "12345678"),
        ("A_TOKEN", "hunter2\n"),
        ("AUTH", f"Bearer {KEY}"),
        ("DATABASE_URL", f"postgres://joe:{KEY}@host/db"),
    ],
)
def test_secret_variables_of_the_environment_are_known(name: str, value: str) -> None:
    redactor = redactor_of({name: value})
    secret = KEY if KEY in value else value.strip()
    assert redactor.redact([f"-{secret}-", {f"{secret}": 1}]) == [
        f"-[redacted:{name}]-",
        {f"[redacted:{name}]": 1},
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A_NAME", KEY),
        ("A_KEY", "short"),
        ("A_TOKEN", "disabled"),
        ("CREDENTIALS", "/home/joe/k.json"),
        ("A_URL", "http://joe@host/path1234"),
        ("B_URL", "http://joe:x@host"),
    ],
)
def test_other_variables_of_the_environment_are_not(name: str, value: str) -> None:
    assert redactor_of({name: value}).text(f"-{value[-8:]}-") == f"-{value[-8:]}-"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODEL", "claude-sonnet-4-20250514"),
        ("MODE", KEY),
        ("AUTHOR", "two words"),
        ("LANG", "en_US.UTF-8"),
        ("API_KEY", "production"),
        ("API_KEY", "PRODUCTION"),
        ("API_TOKEN", "true"),
        ("DB_PASSWORD", "aaaaaaaa"),
        ("DB_PASSWORD", "11112222"),
        ("MY_SECRET", "/usr/bin/more"),
        ("MY_TOKEN", "http://127.0.0.1:4000/v1"),
    ],
)
def test_a_variable_is_known_only_by_a_secret_name_and_an_unguessable_value(name: str, value: str) -> None:
    redactor = redactor_of({name: value})
    redactor.redact({"env": {name: value}})
    assert redactor.text(f"it is {value} here") == f"it is {value} here"


SERVERS = [
    (
        {"headers": [{"name": "Authorization", "value": "Bearer b34b682da1b51c3c"}]},
        {"headers": [{"name": "Authorization", "value": "Bearer [redacted]"}]},
    ),
    (
        {"headers": {"X-Mine": "abc", "Content-Type": "application/json", "n": 1}},
        {"headers": {"X-Mine": REDACTED, "Content-Type": "application/json", "n": 1}},
    ),
    (
        {
            "env": [
                {"name": "A", "value": "abc"},
                {"name": "B", "value": "yes"},
                {"name": "C", "value": "/a/b"},
            ]
        },
        {
            "env": [
                {"name": "A", "value": REDACTED},
                {"name": "B", "value": "yes"},
                {"name": "C", "value": "/a/b"},
            ]
        },
    ),
    ({"env": {"A": "abc", "N": "8080"}}, {"env": {"A": REDACTED, "N": "8080"}}),
    (
        {"env": ["A=abc", "B", 1, {"name": 3, "value": "x"}]},
        {"env": ["A=[redacted]", "B", 1, {"name": 3, "value": "x"}]},
    ),
    (
        {"properties": {"env": {"type": "object", "description": "Its environment"}}},
        {"properties": {"env": {"type": "object", "description": "Its environment"}}},
    ),
    (
        {"args": ["x", "--api-key", "abc", "--token", "-v", "y"]},
        {"args": ["x", "--api-key", REDACTED, "--token", "-v", "y"]},
    ),
    ({"args": ["--token=abc", "z"]}, {"args": ["--token=abc", "z"]}),
]


@pytest.mark.parametrize(("message", "clean"), SERVERS)
def test_headers_variables_and_arguments_of_servers(message: JsonValue, clean: JsonValue) -> None:
    assert redactor_of().redact(message) == clean


@pytest.mark.parametrize(
    ("message", "clean"),
    [
        ({"apiKey": "abc", "n": 1}, {"apiKey": REDACTED, "n": 1}),
        ({"token": 5, "password": None, "secret": True}, {"token": 5, "password": None, "secret": True}),
        (
            {"password": "", "auth": "none", "token": "[redacted:A]"},
            {"password": "", "auth": "none", "token": "[redacted:A]"},
        ),
        ({"usage": {"inputTokens": 3, "tokens": "1.2k"}}, {"usage": {"inputTokens": 3, "tokens": "1.2k"}}),
        (
            {"tokenList": 1, "authTokens": ["a", "b", 1]},
            {"tokenList": 1, "authTokens": [REDACTED, REDACTED, 1]},
        ),
        (
            {"api-key": {"provider": "openai", "key": "abc"}},
            {"api-key": {"provider": "openai", "key": REDACTED}},
        ),
        ({"name": "API Key", "value": "api-key1"}, {"name": "API Key", "value": REDACTED}),
        ({"name": "API Key", "value": "apikey"}, {"name": "API Key", "value": "apikey"}),
        ({"name": "Mode", "value": "default"}, {"name": "Mode", "value": "default"}),
        ({"password": {"type": "string"}}, {"password": {"type": "string"}}),
        ((1, "a"), [1, "a"]),
        ({1: "a", None: "b", b"x": "c"}, {1: "a", None: "b", REDACTED: "c"}),
        (b"bytes", REDACTED),
        (float("inf"), float("inf")),
    ],
)
def test_values_under_a_secrets_name(message: JsonValue, clean: JsonValue) -> None:
    redactor = redactor_of()
    assert redactor.redact(message) == clean
    assert redactor.redact(clean) == clean


@pytest.mark.parametrize(
    "message",
    [
        {"headers": [{"name": "X-Any", "value": f"Bearer {KEY}"}]},
        {"env": [{"name": "ANY_KEY", "value": KEY}]},
        {"config": {"clientSecret": KEY}},
        {"Cookie": f"sid={KEY}; a=b"},
        {"args": ["--token", KEY]},
    ],
)
def test_a_secret_seen_under_its_name_is_known_from_then_on(message: JsonValue) -> None:
    redactor = redactor_of()
    assert redactor.text(f"it is {KEY}!") == f"it is {KEY}!"
    assert KEY not in str(redactor.redact(message))
    assert redactor.text(f"it is {KEY}!") == "it is [redacted]!"


@pytest.mark.parametrize(
    "value", ["short", "application/json", "required", "/usr/bin/x", "12345678", "assistant"]
)
def test_usual_values_are_not_learnt(value: str) -> None:
    redactor = redactor_of()
    redactor.redact({"env": {"A": value}, "token": value})
    assert redactor.text(f"it is {value}!") == f"it is {value}!"


def test_the_last_secrets_are_remembered() -> None:
    redactor = redactor_of()
    for number in range(LEARNED + 1):
        redactor.learn(f"secret-{number:04}")
    redactor.learn(f"secret-{LEARNED:04}")
    assert redactor.text("x secret-0000 y") == "x secret-0000 y"
    assert redactor.text("x secret-0001 y") == "x [redacted] y"
    assert redactor.text(f"x secret-{LEARNED:04} y") == "x [redacted] y"


def test_what_lies_too_deep_is_replaced() -> None:
    message: JsonValue = "end"
    for _ in range(DEPTH):
        message = [message]
    assert "end" in str(redactor_of().redact(message))
    for _ in range(50_000):
        message = {"headers": [message]}
    assert "end" not in str(redactor_of().redact(message))


keys = st.text() | st.sampled_from(["env", "token", "name", "value", "headers"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner),
    max_leaves=20,
)


@settings(max_examples=few(50))
@given(json_values)
def test_every_message_is_taken_and_redacted_once(message: JsonValue) -> None:
    clean = redactor_of().redact(message)
    assert redactor_of().redact(clean) == clean


# Secrets that come in pieces: records wait until no secret may go on, and come out in order


CONTEXTS = 64
"""Texts of which the end is remembered."""

PHRASE = "My dog eats\n9 purple figs"
ENVIRONMENT = {"A_KEY": KEY, "A_PASSPHRASE": PHRASE}
PEM = "\n".join(
    [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "b3BlbnNzaC1rZXktdjEA" * 3,
        "QyNTUxOQAAACB9",
        "-----END OPENSSH PRIVATE KEY-----",
    ]
)
ENCODED = base64.b64encode(b"u:" + KEY.encode()).decode()


class Piece(NamedTuple):
    """A record of a test."""

    stream: str | None
    text: str | None


def run(holder: Holder[int], pieces: list[Piece], size: int = 0) -> list[Released[int]]:
    out: list[Released[int]] = []
    for number, piece in enumerate(pieces):
        out += holder.add(number, piece.stream, piece.text, size)
    return out + holder.flush()


def texts(pieces: list[Piece], released: list[Released[int]]) -> dict[str | None, str]:
    joined: dict[str | None, str] = {}
    for piece, out in zip(pieces, released, strict=True):
        joined[piece.stream] = joined.get(piece.stream, "") + (out.text or "")
    return joined


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(edges)]


alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
body = st.text(alphabet, min_size=40, max_size=60).map(lambda text: "x9" + text)
value = st.text(alphabet + "-_.!%", min_size=12, max_size=40).map(lambda text: "q7" + text)


class Secret(NamedTuple):
    """A secret in what makes it one."""

    text: str
    secret: str


def _named(form: str) -> st.SearchStrategy[Secret]:
    return value.map(lambda secret: Secret(form.replace("SECRET", secret), secret))


def _shaped(prefix: str) -> st.SearchStrategy[Secret]:
    return body.map(lambda tail: Secret(prefix + tail, tail))


secrets = st.one_of(
    st.just(Secret(KEY, KEY)),
    st.just(Secret(PHRASE, PHRASE)),
    st.just(Secret(json.dumps(PHRASE), json.dumps(PHRASE)[1:-1])),
    st.just(Secret(ENCODED, ENCODED[4:-4])),
    st.just(Secret(PEM, PEM[36:110])),
    st.sampled_from(
        ["sk-", "sk-ant-", "ghp_", "github_pat_", "glpat-", "hf_", "npm_", "AIza", "xai-"]
    ).flatmap(_shaped),
    st.sampled_from(
        [
            "MY_TOKEN=SECRET",
            "password: SECRET",
            'password = "SECRET"',
            '{"api_key": "SECRET"}',
            "--token SECRET",
            r"{\"client_secret\": \"SECRET\"}",
            "Authorization: Bearer SECRET",
            "Cookie: sid=SECRET; b=SECRET",
            "https://joe:SECRET@host/x",
            "https://host/?a=b&access_token=SECRET",
            "The API key: SECRET",
            'password: "SECRET SECRET"',
        ]
    ).flatmap(_named),
)

innocent = st.lists(
    st.sampled_from(
        [
            "the",
            "file",
            "token",
            "password",
            "is",
            "key",
            "API",
            "Bearer",
            "of",
            "sk-learn",
            "-----",
            "-----BEGIN",
            "a:b",
            "=",
            ":",
            '"',
            "My",
            "dog",
            "https://x.y/z",
            "--flag",
            "auth",
            "\n",
            "\n\n",
            "  ",
            "ü",
            "\\",
            "521c1646",
        ]
    )
).map(" ".join)
places = st.lists(st.integers(0, 10_000), max_size=30)


@settings(max_examples=few(100))
@given(st.lists(st.tuples(innocent, secrets)), innocent, places)
@example([("-----BEGIN", Secret(PEM, PEM[36:110]))], "-----", [15, 70, 140])
@example([('auth "', Secret("The API key: q7aaaaaaaaaaaaa", "q7aaaaaaaaaaaaa"))], "", list(range(40)))
def test_what_comes_in_pieces_is_redacted_like_the_whole(
    parts: list[tuple[str, Secret]], end: str, at: list[int]
) -> None:
    whole = "\n".join([f"{before}\n{secret.text}" for before, secret in parts] + [end])
    pieces = [Piece("s", text) for text in cut(whole, at)]
    released = run(Holder(redactor_of(ENVIRONMENT)), pieces)
    out = "".join(each.text or "" for each in released)
    assert out == redactor_of(ENVIRONMENT).text(whole)
    for _, secret in parts:
        for start in range(len(secret.secret) - 7):
            assert secret.secret[start : start + 8] not in out


streams = st.sampled_from(["a", "b", "c"])


@settings(max_examples=few(50))
@given(st.data())
def test_any_interleaving_leaks_nothing_and_keeps_order(data: st.DataObject) -> None:
    found: list[str] = []
    queues: dict[str, list[str]] = {}
    for name in ("a", "b", "c"):
        before, secret, after = data.draw(st.tuples(innocent, secrets, innocent))
        found.append(secret.secret)
        queues[name] = cut(f"{before}\n{secret.text}\n{after}", data.draw(places))
    pieces: list[Piece] = []
    while any(queues.values()):
        name = data.draw(st.sampled_from([name for name, queue in queues.items() if queue]))
        pieces.append(Piece(name, queues[name].pop(0)))
        if data.draw(st.booleans()):
            pieces.append(Piece(None, None))
    released = run(Holder(redactor_of(ENVIRONMENT)), pieces)
    assert [each.record for each in released] == list(range(len(pieces)))
    for out in texts(pieces, released).values():
        for secret_text in found:
            assert all(secret_text[start : start + 8] not in out for start in range(len(secret_text) - 7))


@settings(max_examples=few(100))
@given(st.lists(st.tuples(streams, st.text())), st.lists(st.booleans()))
def test_text_without_secrets_comes_out_as_it_was_cut(
    chunks: list[tuple[str, str]], between: list[bool]
) -> None:
    # A letter, and the words of English are left out that announce a secret.
    pieces = [Piece(name, re.sub("[a-zA-Z:@]", "", text)) for name, text in chunks]
    for place, other in enumerate(between[: len(pieces)]):
        if other:
            pieces.insert(place, Piece(None, None))
    released = run(Holder(redactor_of()), pieces)
    assert [each.text for each in released] == [piece.text for piece in pieces]


@settings(max_examples=few(100))
@given(secrets, innocent, places, st.integers(1, 400), st.integers(0, 100))
def test_nothing_leaks_when_the_limit_forces_a_release(
    secret: Secret, before: str, at: list[int], limit: int, size: int
) -> None:
    pieces = [Piece("s", text) for text in cut(f"{before}\n{secret.text} ?!\n", at)]
    released = run(Holder(redactor_of(ENVIRONMENT), limit), pieces, size)
    assert [each.record for each in released] == list(range(len(pieces)))
    out = "".join(each.text or "" for each in released)
    assert all(secret.secret[start : start + 8] not in out for start in range(len(secret.secret) - 7))


@pytest.fixture
def holder() -> Holder[str]:
    return Holder(redactor_of(ENVIRONMENT), 10_000)


def test_records_without_text_pass_through(holder: Holder[str]) -> None:
    assert holder.add("a") == [("a", None)]
    assert holder.add("b", "s", "") == [("b", "")]
    assert holder.add("c", "s", " \n") == [("c", " \n")]


def test_the_last_word_is_held_and_what_is_behind_it(holder: Holder[str]) -> None:
    assert holder.add("a", "s", "one two") == []
    assert holder.add("b") == []
    assert holder.add("c", "t", "three ") == []
    assert holder.add("d", "s", "three") == []
    assert holder.add("e", "s", " four") == [("a", "one two"), ("b", None), ("c", "three "), ("d", "three")]
    assert holder.flush() == [("e", " four")]
    assert holder.flush() == []


def test_the_replacement_is_where_the_secret_begins(holder: Holder[str]) -> None:
    released: list[Released[str]] = []
    for text in ["the ", KEY[:5], KEY[5:9], KEY[9:] + " is", " it "]:
        released += holder.add("a", "s", text)
    assert [each.text for each in released] == ["the ", "[redacted:A_KEY]", "", " is", " it "]


def test_a_name_waits_for_its_value(holder: Holder[str]) -> None:
    assert holder.add("a", "s", "my password: ") == []
    assert holder.add("b", "s", "letmein") == []
    assert holder.add("c", "s", "\n") == [("a", "my password: "), ("b", REDACTED), ("c", "\n")]


@pytest.mark.parametrize(
    "pieces",
    [["The API ", "key: abc123xyz"], ["The API", " ", "key: abc123xyz"], ["The API k", "ey: abc123xyz"]],
)
def test_a_name_of_two_words_is_one_name_when_it_is_cut(pieces: list[str]) -> None:
    released = run(Holder(redactor_of()), [Piece("s", piece) for piece in pieces])
    assert "".join(each.text or "" for each in released) == "The API key: [redacted]"


def test_the_rest_of_a_secret_of_several_words_is_known_as_a_whole() -> None:
    redactor = redactor_of({"A_PASSPHRASE": PHRASE})
    assert redactor.text("9 purple figs") == "[redacted:A_PASSPHRASE]"
    held = Holder[int](redactor)
    assert "".join(
        out.text or "" for out in run(held, [Piece("s", "9 purple figs, "), Piece("s", "ok")])
    ) == ("[redacted:A_PASSPHRASE], ok")


def test_at_the_end_nothing_waits(holder: Holder[str]) -> None:
    holder.add("a", "s", "one")
    assert holder.flush() == [("a", "one")]
    assert holder.flush() == []


def test_short_words_are_released_by_force_and_their_secret_is_known_all_the_same(
    holder: Holder[str],
) -> None:
    assert holder.add("a", "s", "it is " + KEY[:5]) == []
    assert holder.add("b", size=20_000) == [("a", "it is " + KEY[:5]), ("b", None)]
    assert holder.add("c", "s", KEY[5:] + " done ") == [("c", " done ")]


def test_half_a_secret_is_replaced_when_released_by_force(holder: Holder[str]) -> None:
    holder.add("a", "s", "it is " + KEY[:12])
    assert holder.add("b", size=20_000) == [("a", "it is [redacted:A_KEY]"), ("b", None)]
    assert holder.add("c", "s", KEY[12:] + " done ") == [("c", " done ")]


def test_values_that_seem_harmless_count_as_secrets_when_released_by_force(holder: Holder[str]) -> None:
    holder.add("a", "s", 'token: "correct ho')
    assert holder.add("b", size=20_000) == [("a", 'token: "[redacted]'), ("b", None)]


def test_phrases_count_as_secrets_when_released_by_force(holder: Holder[str]) -> None:
    holder.add("a", "s", "it is My dog eats")
    assert holder.add("b", size=20_000) == [("a", "it is [redacted:A_PASSPHRASE]"), ("b", None)]
    assert holder.add("c", "s", PHRASE[11:] + " done ") == [("c", " done ")]


def test_a_giant_word_is_no_secret() -> None:
    holder: Holder[str] = Holder(redactor_of(ENVIRONMENT), 20_000)
    giant = "x" * 30_000
    assert holder.add("a", "s", "it is " + giant) == [("a", "it is " + giant)]
    assert holder.add("b", "s", f"xyz{KEY} and more ") == [("b", "xyz[redacted:A_KEY] and more ")]


def test_the_rest_of_a_giant_value_is_left_out() -> None:
    holder: Holder[str] = Holder(redactor_of(), 20_000)
    before = "x," * 20_000
    assert holder.add("a", "s", before + "token=" + "x1" * 15_000) == [("a", before + "token=" + REDACTED)]
    assert holder.add("b", "s", "xyz and more ") == [("b", " and more ")]


def test_the_rest_of_a_giant_private_key_is_left_out() -> None:
    holder: Holder[str] = Holder(redactor_of(), 20_000)
    line = "b3BlbnNzaC1rZXktdjEA" * 3 + "\n"
    assert holder.add("a", "s", "see -----BEGIN PRIVATE KEY-----\n" + line * 500) == [("a", "see [redacted]")]
    assert holder.add("b", "s", line * 3 + "-----END PRIVATE KEY-----\nok ") == [("b", "\nok ")]


def test_a_long_open_text_is_not_gone_through_for_each_piece() -> None:
    holder: Holder[int] = Holder(redactor_of(), 10_000_000)
    pieces = [Piece("s", 'password="'), *[Piece("s", "a b ")] * 20_000, Piece("s", '" done')]
    out = "".join(each.text or "" for each in run(holder, pieces))
    assert out == 'password="[redacted]" done'


def test_the_ends_of_many_texts_are_not_kept(holder: Holder[str]) -> None:
    for number in range(CONTEXTS * 3):
        holder.add("a", number, "word")
        holder.add("b", size=20_000)
    assert remembered(holder) == CONTEXTS


# Secrets that are cut: by other records, by the edges of a text; spellings, numbers, forms, large texts


LONG_KEY = "Zk3v9QpL7xWm2RtYb4Nc"
SHAPE = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"
LINES = [f"MIIEpAIBAAKCAQEA7Kq0{place}abcdefghijklmnopqrstuvwxyz" for place in range(4)]
PEM_LINES = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *LINES, "-----END RSA PRIVATE KEY-----"])
NAMED = "[redacted:A_KEY]"

BIG = 256 * 1024
"""Characters of a very large text."""

MEGABYTES = 4_000_000


@pytest.fixture
def redactor() -> Redactor:
    return redactor_of(
        {"A_KEY": LONG_KEY, "DB_PASSWORD": "84736251", "RATE_TOKEN": "1234.5678", "A_PEM_KEY": PEM_LINES}
    )


def shown(holder: Holder[int], pieces: list[str | None]) -> str:
    """Pieces of one text, interrupted where there is `None`; returned as they come out."""
    out: list[Released[int]] = []
    for number, piece in enumerate(pieces):
        out += holder.pause("s") if piece is None else holder.add(number, "s", piece)
    return "".join(each.text or "" for each in out + holder.flush())


@pytest.mark.parametrize(
    "secret", [LONG_KEY, SHAPE, JWT, f"https://joe:{LONG_KEY}x@h/", "Bearer b34b682da1b51c3c", PEM_LINES]
)
@settings(max_examples=few(40))
@given(st.lists(st.integers(0, 500), max_size=5), st.sampled_from(["", "the key is ", "a\n\n"]))
def test_what_comes_in_between_does_not_help_a_secret(secret: str, places: list[int], before: str) -> None:
    whole = f"{before}{secret} ok"
    edges = sorted({0, len(whole), *(place % len(whole) for place in places)})
    pieces: list[str | None] = []
    for start, end in pairwise(edges):
        pieces += [whole[start:end], None]
    out = shown(Holder(redactor_of({"A_KEY": LONG_KEY})), pieces)
    tail = LINES[3] if secret == PEM_LINES else secret.split("@")[0]
    assert out.endswith(" ok")
    assert tail[-8:] not in out
    assert all(LONG_KEY[start : start + 8] not in out for start in range(13))


def test_what_was_paused_is_written_at_once_and_its_rest_is_known(redactor: Redactor) -> None:
    holder: Holder[int] = Holder(redactor)
    assert holder.add(0, "s", "the key is " + LONG_KEY[:10]) == []
    assert holder.pause("s") == [(0, "the key is " + NAMED)]
    assert holder.pause("s") == []
    assert holder.pause("other") == []
    assert holder.add(1, "s", LONG_KEY[10:] + " ok ") == [(1, " ok ")]


@pytest.mark.parametrize(
    ("end", "clean"),
    [
        ("password: letm", "password: [redacted]"),
        ("token: required", "token: required"),
        ("uses Basic authentication.", "uses Basic authentication."),
        ("Basic dXNlcj", "Basic [redacted]"),
        ("--token abc", "--token [redacted]"),
        ("x ghp_16C7e4", "x [redacted]"),
        ("x 123456789:AAHdqT", "x [redacted]"),
        ("x eyJhbGciOi", "x [redacted]"),
        ("x hf_transfer sk-learning", "x hf_transfer sk-learning"),
        ("x taskghp_16C7e4", "x taskghp_16C7e4"),
        ("https://joe:sesame9", "https://joe:[redacted]"),
        ("https://0123456789abcdef0", "https://[redacted]"),
        ("http://localhost:808080", "http://localhost:808080"),
        ("https://internationalization", "https://internationalization"),
    ],
)
def test_the_end_of_a_paused_text(end: str, clean: str) -> None:
    holder: Holder[int] = Holder(redactor_of())
    holder.add(0, "s", end)
    assert [out.text for out in holder.pause("s")] == [clean]


@pytest.mark.parametrize(
    ("pieces", "clean"),
    [
        (["run curl -u joe:hun", "ter2-more https://h/ ok"], "run curl -u joe:[redacted] https://h/ ok"),
        (["run curl -u", " joe:hunter2 ok"], "run curl -u joe:[redacted] ok"),
        (["machine h login joe", " password hunter2 ok"], "machine h login joe password [redacted] ok"),
        (["MTk4w77C9HehwTp0136uXT3yq.h7n-5", "q.r7FlCxvnNGdcmyHc7E4nSmwfIpq ok"], "[redacted] ok"),
        (["abc8Q~0123456", "78901234567890123456789012 ok"], "[redacted] ok"),
    ],
)
def test_a_secret_that_was_interrupted_is_known_by_what_stood_before(pieces: list[str], clean: str) -> None:
    assert shown(Holder(redactor_of()), [pieces[0], None, pieces[1]]) == clean


def test_a_secret_in_two_lines_that_come_one_by_one(redactor: Redactor) -> None:
    out = shown(
        Holder(redactor),
        [f"ends with half {LONG_KEY[:10]}\n", f"{LONG_KEY[10:]}\n", *[f"{line}\n" for line in LINES]],
    )
    assert out.split() == ["ends", "with", "half", NAMED, NAMED, *["[redacted:A_PEM_KEY]"] * 4]


def test_the_ends_of_paused_texts_are_not_kept_for_ever(redactor: Redactor) -> None:
    holder: Holder[int] = Holder(redactor)
    holder.add(-1, "waits", "word")
    for number in range(CONTEXTS * 3):
        holder.add(number, number, "word")
        holder.pause(number)
    assert remembered(holder) == CONTEXTS + 1
    assert len(holder.flush()) == CONTEXTS * 3 + 1


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("curl " + LONG_KEY[:15], "curl " + NAMED),
        (LONG_KEY[5:], NAMED),
        (LONG_KEY[-6:] + " x", NAMED + " x"),
        ("x " + LONG_KEY[:5], "x " + LONG_KEY[:5]),
        (LONG_KEY[:6], NAMED),
        (f"\n {LONG_KEY[9:]} and {LONG_KEY[:9]} \n", f"\n {NAMED} and {NAMED} \n"),
        ("Zk3v9QZk3v9QZ", "Zk3v9QZk3v9QZ"),
        ("Yb4NcRtYb4Nc", "Yb4NcRtYb4Nc"),
    ],
)
def test_a_text_that_begins_or_ends_within_a_secret(redactor: Redactor, text: str, clean: str) -> None:
    assert redactor.text(text) == clean
    assert redactor.redact({"a": [text]}) == {"a": [clean]}


def test_words_that_secrets_begin_with_stay() -> None:
    redactor = redactor_of({"A_PASSWORD": "password-Q7x9"})
    for text in ("my password", "x password-Q"[:10]):
        assert redactor.text(text) == text


@settings(max_examples=few(60))
@given(st.integers(0, len(LONG_KEY)), st.sampled_from(["", "snapshot ", "a\n"]))
def test_growing_content_leaks_less_than_six_characters(size: int, before: str) -> None:
    redactor = redactor_of({"A_KEY": LONG_KEY})
    for text in (before + LONG_KEY[:size], LONG_KEY[size:] + " after"):
        clean = str(redactor.redact({"content": [{"text": text}]}))
        assert all(LONG_KEY[start : start + 6] not in clean for start in range(15))


def test_lines_of_secrets_are_known(redactor: Redactor) -> None:
    assert redactor.text("-----BEGIN RSA PRIVATE KEY-----") == "-----BEGIN RSA PRIVATE KEY-----"
    assert redactor.text(f"-----BEGIN RSA PRIVATE KEY-----\n{LINES[0][:4]}") == "[redacted:A_PEM_KEY]"
    for line in LINES:
        assert redactor.text(f"<{line}>") == "<[redacted:A_PEM_KEY]>"


@pytest.mark.parametrize(
    "form",
    [LONG_KEY.encode().hex(), LONG_KEY.encode().hex().upper(), "".join(f"%{ord(c):02X}" for c in LONG_KEY)],
)
def test_more_spellings(redactor: Redactor, form: str) -> None:
    assert redactor.text(f"<{form}>") == f"<{NAMED}>"


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        (
            {"n": 84736251, "m": [84736251.0]},
            {"n": "[redacted:DB_PASSWORD]", "m": ["[redacted:DB_PASSWORD]"]},
        ),
        ({"n": 1234.5678}, {"n": "[redacted:RATE_TOKEN]"}),
        ({"password": 4711, "pin_passcode": 12.34}, {"password": REDACTED, "pin_passcode": REDACTED}),
        ({"password": 471, "token": 123456, "pwd": True}, {"password": 471, "token": 123456, "pwd": True}),
    ],
)
def test_numbers(redactor: Redactor, value: JsonValue, clean: JsonValue) -> None:
    assert redactor.redact(value) == clean


FORM = {
    "properties": {
        "f1": {"type": "string", "title": "Which?", "format": "password"},
        "f2": {"type": "string", "title": "API key"},
        "api_key": {"type": "string"},
        "name": {"type": "string", "title": 3},
        "list": {"type": "array"},
    }
}


def test_answers_of_a_form_are_taken_out_and_secrets_are_learnt() -> None:
    redactor = redactor_of()
    content: JsonValue = {
        "f1": "correct-horse-1",
        "f2": "correct-horse-2",
        "api_key": "correct-horse-3",
        "name": "correct-horse-4",
        "other": "correct-horse-5",
        "list": ["a", 1, None, True],
    }
    clean = redactor.answers(content, FORM)
    assert clean == {
        **dict.fromkeys(["f1", "f2", "api_key", "name", "other"], REDACTED),
        "list": [REDACTED, 1, None, True],
    }
    assert (
        redactor.text("it is correct-horse-1 2 correct-horse-2 correct-horse-3 ")
        == "it is [redacted] 2 [redacted] [redacted] "
    )
    assert redactor.text("it is correct-horse-4 ") == "it is correct-horse-4 "


def test_answers_to_what_is_no_form() -> None:
    redactor = redactor_of()
    deep: JsonValue = "x"
    for _ in range(5000):
        deep = [deep]
    assert "x" not in str(redactor.answers(deep, None))
    assert redactor.answers("x", FORM) == REDACTED
    assert redactor.answers({"a": "x"}, {"properties": 3}) == {"a": REDACTED}
    assert redactor.answers(None, None) is None


KINDS = {
    "words": "the quick brown fox ",
    "base64": "QUJD",
    "hints": "token key auth pass ",
    "identifiers": "some_identifier_long.x ",
    "dashes": "-----BEGIN ",
    "pairs": "password: none\n",
    "other": "密钥 ü ",
}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_secrets_in_large_texts_are_found_soon(redactor: Redactor, kind: str) -> None:
    filling = KINDS[kind] * (MEGABYTES // len(KINDS[kind]) // 2) + " "
    found = [LONG_KEY, SHAPE, JWT, "b34b682da1b51c3c", "sesame99", LINES[1]]
    secret = f"{LONG_KEY} a\\n{SHAPE} {JWT} Bearer b34b682da1b51c3c https://joe:sesame99@h/ {PEM_LINES} "
    began = time.process_time()
    clean = redactor.text(filling + secret + filling)
    assert time.process_time() - began < 3, "a second pass over names alone takes longer"
    assert not [each for each in found if each in clean]
    assert clean.startswith(filling), "none of it is a secret"
    assert clean.endswith(filling)


def test_the_end_of_a_large_text_is_open() -> None:
    redactor = redactor_of()
    filling = "the fox " * (BIG // 8)
    holder: Holder[int] = Holder(redactor, 10 * BIG)
    assert (
        shown(holder, [filling + "Bearer b34b682da1b51c3c", "fff and"]) == filling + "Bearer [redacted] and"
    )
    assert redactor.text(filling + "Bearer tokenization") == filling + "Bearer tokenization"


def test_a_text_is_gone_through_once_and_again_when_more_is_known() -> None:
    redactor = redactor_of()
    text = "the fox is correct-horse-1 " * 1000
    assert redactor.scan(text) is redactor.scan(str(text))
    assert redactor.text(text) == text
    redactor.learn("correct-horse-1")
    assert redactor.text(text) == "the fox is [redacted] " * 1000


def test_a_giant_word_in_pieces_is_written_as_it_is() -> None:
    word = "data:image/png;base64," + "QUJD" * 100_000
    pieces: list[str | None] = [word[start : start + 70_000] for start in range(0, len(word), 70_000)]
    assert shown(Holder(redactor_of({"A_KEY": LONG_KEY})), pieces) == word


# What is held back is written when nothing goes on, as far as that is safe


SECRET = "hunter2-correct"


def password_holder() -> Holder[int]:
    return Holder(redactor_of({"DB_PASSWORD": SECRET}))


def fed(held: Holder[int], *pieces: str) -> str:
    """Feed pieces of one text and return what comes out."""
    return "".join(
        out.text or "" for number, piece in enumerate(pieces) for out in held.add(number, "s", piece)
    )


@pytest.mark.parametrize("end", ["see", "Done.", "it", "h", "abcdefgh1", "v1.2.3", "x" * 5000, "", "sk"])
def test_a_plain_word_is_written(end: str) -> None:
    held = password_holder()
    assert fed(held, "Let me ", end) == "Let me "
    assert "".join(out.text or "" for out in held.settle()) == end
    assert not held.holds


@pytest.mark.parametrize(
    "end", ["hunt", "x=hunter2", "password: ab", "ghp_16C7e42F", "https://joe:sesame", "eyJhbGciOiJI"]
)
def test_what_may_become_a_secret_is_not(end: str) -> None:
    held = password_holder()
    fed(held, "Let me ", end)
    assert held.settle() == []
    assert held.holds


def test_what_was_written_is_context() -> None:
    held = password_holder()
    assert fed(held, "the ", "pass") == "the "
    assert held.settle()[0].text == "pass"
    assert held.settle() == []
    rest = fed(held, "word: sesame99", " and on ", "it goes") + "".join(
        out.text or "" for out in held.flush()
    )
    assert "sesame" not in rest
    assert rest.endswith(" and on it goes")


def test_settling_twice_and_other_records() -> None:
    held = password_holder()
    fed(held, "see")
    assert held.add(9) == []
    assert [out.record for out in held.settle()] == [0, 9]
    assert fed(held, "ing is ") == "ing is "


# The connection and errors


async def test_a_line_that_is_too_long_ends_the_connection_and_not_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    ours, theirs = memory_transport_pair()
    recorder = Recorder(path, redactor_of(), lambda: 0.0)
    with recorder:
        tapped = recorder.tapped(ours, 10)
        await theirs.send(b"x" * 100)
        assert await tapped.receive() == b"x" * 100
        await theirs.aclose()
        for _ in range(2):
            with pytest.raises(anyio.EndOfStream):
                await tapped.receive()
        await tapped.aclose()
    assert [entry["type"] for entry in lines(path)] == ["gone", "end"]


def test_errors_that_carry_what_is_no_json() -> None:
    class OddError(Exception):
        def __init__(self) -> None:
            super().__init__("odd")
            self._hidden = 1
            self.thing = object
            self.number = 5

    assert failure_of(OddError()).fields == {"thing": repr(object), "number": 5}
