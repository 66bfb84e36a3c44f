"""Secrets that are cut: by other records, by the edges of a text; spellings, numbers, forms, large texts."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording.parts import REDACTED, Holder, Redactor, Released, holder_of, redactor_of, remembered

if TYPE_CHECKING:
    from thinkwell.events import JsonValue

KEY = "Zk3v9QpL7xWm2RtYb4Nc"
SHAPE = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"
LINES = [f"MIIEpAIBAAKCAQEA7Kq0{place}abcdefghijklmnopqrstuvwxyz" for place in range(4)]
PEM = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *LINES, "-----END RSA PRIVATE KEY-----"])
NAMED = "[redacted:A_KEY]"

BIG = 256 * 1024
"""Characters of a very large text."""

CONTEXTS = 64
"""Texts of which the end is remembered."""

MEGABYTES = 4_000_000


@pytest.fixture
def redactor() -> Redactor:
    return redactor_of(
        {"A_KEY": KEY, "DB_PASSWORD": "84736251", "RATE_TOKEN": "1234.5678", "A_PEM_KEY": PEM}, {}
    )


def shown(holder: Holder[int], pieces: list[str | None]) -> str:
    """Pieces of one text, interrupted where there is `None`; returned as they come out."""
    out: list[Released[int]] = []
    for number, piece in enumerate(pieces):
        out += holder.pause("s") if piece is None else holder.add(number, "s", piece)
    return "".join(each.text or "" for each in out + holder.flush())


@pytest.mark.parametrize(
    "secret", [KEY, SHAPE, JWT, f"https://joe:{KEY}x@h/", "Bearer b34b682da1b51c3c", PEM]
)
@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(st.lists(st.integers(0, 500), max_size=5), st.sampled_from(["", "the key is ", "a\n\n"]))
def test_what_comes_in_between_does_not_help_a_secret(secret: str, places: list[int], before: str) -> None:
    whole = f"{before}{secret} ok"
    edges = sorted({0, len(whole), *(place % len(whole) for place in places)})
    pieces: list[str | None] = []
    for start, end in pairwise(edges):
        pieces += [whole[start:end], None]
    out = shown(holder_of(redactor_of({"A_KEY": KEY})), pieces)
    tail = LINES[3] if secret == PEM else secret.split("@")[0]
    assert out.endswith(" ok")
    assert tail[-8:] not in out
    assert all(KEY[start : start + 8] not in out for start in range(13))


def test_what_was_paused_is_written_at_once_and_its_rest_is_known(redactor: Redactor) -> None:
    holder: Holder[int] = holder_of(redactor)
    assert holder.add(0, "s", "the key is " + KEY[:10]) == []
    assert holder.pause("s") == [(0, "the key is " + NAMED)]
    assert holder.pause("s") == []
    assert holder.pause("other") == []
    assert holder.add(1, "s", KEY[10:] + " ok ") == [(1, " ok ")]


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
    holder: Holder[int] = holder_of(redactor_of())
    holder.add(0, "s", end)
    assert [out.text for out in holder.pause("s")] == [clean]


def test_a_secret_in_two_lines_that_come_one_by_one(redactor: Redactor) -> None:
    out = shown(
        holder_of(redactor),
        [f"ends with half {KEY[:10]}\n", f"{KEY[10:]}\n", *[f"{line}\n" for line in LINES]],
    )
    assert out.split() == ["ends", "with", "half", NAMED, NAMED, *["[redacted:A_PEM_KEY]"] * 4]


def test_the_ends_of_paused_texts_are_not_kept_for_ever(redactor: Redactor) -> None:
    holder: Holder[int] = holder_of(redactor)
    holder.add(-1, "waits", "word")
    for number in range(CONTEXTS * 3):
        holder.add(number, number, "word")
        holder.pause(number)
    assert remembered(holder) == CONTEXTS + 1
    assert len(holder.flush()) == CONTEXTS * 3 + 1


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("curl " + KEY[:15], "curl " + NAMED),
        (KEY[5:], NAMED),
        (KEY[-6:] + " x", NAMED + " x"),
        ("x " + KEY[:5], "x " + KEY[:5]),
        (KEY[:6], NAMED),
        (f"\n {KEY[9:]} and {KEY[:9]} \n", f"\n {NAMED} and {NAMED} \n"),
        ("Zk3v9QZk3v9QZ", "Zk3v9QZk3v9QZ"),
        ("Yb4NcRtYb4Nc", "Yb4NcRtYb4Nc"),
    ],
)
def test_a_text_that_begins_or_ends_within_a_secret(redactor: Redactor, text: str, clean: str) -> None:
    assert redactor.text(text) == clean
    assert redactor.redact({"a": [text]}) == {"a": [clean]}


def test_words_that_secrets_begin_with_stay() -> None:
    redactor = redactor_of({"A_PASSWORD": "password-Q7x9"}, {"MODEL": "claude-sonnet-4-20250514"})
    for text in ("my password", "claude-sonnet-4", "sonnet-4-20250514", "x password-Q"[:10]):
        assert redactor.text(text) == text
    assert redactor.text("claude-sonn") == "[redacted:MODEL]"


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(st.integers(0, len(KEY)), st.sampled_from(["", "snapshot ", "a\n"]))
def test_growing_content_leaks_less_than_six_characters(size: int, before: str) -> None:
    redactor = redactor_of({"A_KEY": KEY})
    for text in (before + KEY[:size], KEY[size:] + " after"):
        clean = str(redactor.redact({"content": [{"text": text}]}))
        assert all(KEY[start : start + 6] not in clean for start in range(15))


def test_lines_of_secrets_are_known(redactor: Redactor) -> None:
    assert redactor.text("-----BEGIN RSA PRIVATE KEY-----") == "-----BEGIN RSA PRIVATE KEY-----"
    assert redactor.text(f"-----BEGIN RSA PRIVATE KEY-----\n{LINES[0][:4]}") == "[redacted:A_PEM_KEY]"
    for line in LINES:
        assert redactor.text(f"<{line}>") == "<[redacted:A_PEM_KEY]>"


@pytest.mark.parametrize(
    "form", [KEY.encode().hex(), KEY.encode().hex().upper(), "".join(f"%{ord(c):02X}" for c in KEY)]
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


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_in_large_texts_are_found_soon(redactor: Redactor, kind: str) -> None:
    filling = KINDS[kind] * (MEGABYTES // len(KINDS[kind]) // 2) + " "
    found = [KEY, SHAPE, JWT, "b34b682da1b51c3c", "sesame99", LINES[1]]
    secret = f"{KEY} a\\n{SHAPE} {JWT} Bearer b34b682da1b51c3c https://joe:sesame99@h/ {PEM} "
    began = time.process_time()
    clean = redactor.text(filling + secret + filling)
    assert time.process_time() - began < 3, "a second pass over names alone takes longer"
    assert not [each for each in found if each in clean]
    assert clean.startswith(filling), "none of it is a secret"
    assert clean.endswith(filling)


def test_the_end_of_a_large_text_is_open() -> None:
    redactor = redactor_of()
    filling = "the fox " * (BIG // 8)
    holder: Holder[int] = holder_of(redactor, 10 * BIG)
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
    assert shown(holder_of(redactor_of({"A_KEY": KEY})), pieces) == word
