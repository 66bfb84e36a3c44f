"""What is taken out of messages, by the names in them; and which values of variables are secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording.parts import REDACTED, redactor_of

if TYPE_CHECKING:
    from thinkwell.events import JsonValue

KEY = "Zk3v9QpL7xWm2RtY"

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


@pytest.mark.parametrize("value", [KEY, "value-of-mine", "two words", "https://h/p?x=abcdef", "a/b/c/d"])
def test_what_the_caller_gives_is_known_whatever_its_name(value: str) -> None:
    assert redactor_of({}, {"MODE": value}).text(f"-{value}-") == "-[redacted:MODE]-"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A", "abc12"),
        ("A", "production"),
        ("A", "true"),
        ("A", "12345678"),
        ("A", "/some/where/else"),
        ("A", "~/x/y"),
        ("A", "/usr/bin:/bin/more"),
        ("A", "http://127.0.0.1:4000/v1"),
        ("LANG", "en_US.UTF-8"),
        ("LC_ALL", "C.UTF-8x"),
    ],
)
def test_trivial_values_that_the_caller_gives_stay(name: str, value: str) -> None:
    assert redactor_of({}, {name: value}).text(f"-{value}-") == f"-{value}-"


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
        {"env": [{"name": "ANY", "value": KEY}]},
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


@settings(max_examples=50, deadline=None, database=None, derandomize=True)
@given(json_values)
def test_every_message_is_taken_and_redacted_once(message: JsonValue) -> None:
    clean = redactor_of().redact(message)
    assert redactor_of().redact(clean) == clean
