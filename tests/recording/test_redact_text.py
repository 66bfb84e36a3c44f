"""What is taken out of text, and what stays."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from recording.parts import REDACTED, Redactor, memory_of, redactor_of

SIZE = 1_000_000
KEY = "Zk3v9QpL7xWm2RtY"
PEM_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\nC7VJTUt9Us8cKj\nabc+/=="
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n-----END RSA PRIVATE KEY-----"

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
        (f"a {PEM} b", "a [redacted] b"),
        (json.dumps({"x": PEM}), '{"x": "[redacted]"}'),
        (f"a {PEM[:90]}", "a [redacted]"),
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


def test_a_line_that_is_no_message_is_text() -> None:
    assert redactor_of().raw(b"\xff password=letmein") == "\\xff password=[redacted]"


def test_many_different_texts_do_not_fill_the_memory() -> None:
    redactor = redactor_of({"A_KEY": KEY})
    for number in range(6000):
        redactor.text(f"w{number}x and w{number}y")
        redactor.redact({f"k{number}": number})
    assert redactor.text(f"w1x {KEY}") == "w1x [redacted:A_KEY]"
    assert memory_of(redactor) < 5000


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
