"""Secrets that come in pieces: records wait until no secret may go on, and come out in order."""

from __future__ import annotations

import base64
import json
import re
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recording.parts import REDACTED, Holder, Released, holder_of, redactor_of, remembered

KEY = "Zk3v9QpL7xWm2RtY"

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


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(st.lists(st.tuples(innocent, secrets)), innocent, places)
@example([("-----BEGIN", Secret(PEM, PEM[36:110]))], "-----", [15, 70, 140])
@example([('auth "', Secret("The API key: q7aaaaaaaaaaaaa", "q7aaaaaaaaaaaaa"))], "", list(range(40)))
def test_what_comes_in_pieces_is_redacted_like_the_whole(
    parts: list[tuple[str, Secret]], end: str, at: list[int]
) -> None:
    whole = "\n".join([f"{before}\n{secret.text}" for before, secret in parts] + [end])
    pieces = [Piece("s", text) for text in cut(whole, at)]
    released = run(holder_of(redactor_of(ENVIRONMENT)), pieces)
    out = "".join(each.text or "" for each in released)
    assert out == redactor_of(ENVIRONMENT).text(whole)
    for _, secret in parts:
        for start in range(len(secret.secret) - 7):
            assert secret.secret[start : start + 8] not in out


streams = st.sampled_from(["a", "b", "c"])


@settings(max_examples=50, deadline=None, database=None, derandomize=True)
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
    released = run(holder_of(redactor_of(ENVIRONMENT)), pieces)
    assert [each.record for each in released] == list(range(len(pieces)))
    for out in texts(pieces, released).values():
        for secret_text in found:
            assert all(secret_text[start : start + 8] not in out for start in range(len(secret_text) - 7))


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(st.lists(st.tuples(streams, st.text())), st.lists(st.booleans()))
def test_text_without_secrets_comes_out_as_it_was_cut(
    chunks: list[tuple[str, str]], between: list[bool]
) -> None:
    # A letter, and the words of English are left out that announce a secret.
    pieces = [Piece(name, re.sub("[a-zA-Z:@]", "", text)) for name, text in chunks]
    for place, other in enumerate(between[: len(pieces)]):
        if other:
            pieces.insert(place, Piece(None, None))
    released = run(holder_of(redactor_of()), pieces)
    assert [each.text for each in released] == [piece.text for piece in pieces]


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(secrets, innocent, places, st.integers(1, 400), st.integers(0, 100))
def test_nothing_leaks_when_the_limit_forces_a_release(
    secret: Secret, before: str, at: list[int], limit: int, size: int
) -> None:
    pieces = [Piece("s", text) for text in cut(f"{before}\n{secret.text} ?!\n", at)]
    released = run(holder_of(redactor_of(ENVIRONMENT), limit), pieces, size)
    assert [each.record for each in released] == list(range(len(pieces)))
    out = "".join(each.text or "" for each in released)
    assert all(secret.secret[start : start + 8] not in out for start in range(len(secret.secret) - 7))


@pytest.fixture
def holder() -> Holder[str]:
    return holder_of(redactor_of(ENVIRONMENT), 10_000)


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


def test_a_text_that_is_closed_waits_for_nothing(holder: Holder[str]) -> None:
    holder.add("a", "s", "one")
    assert holder.close("other") == []
    assert holder.close("s") == [("a", "one")]
    assert holder.close("s") == []


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
    holder: Holder[str] = holder_of(redactor_of(ENVIRONMENT), 20_000)
    giant = "x" * 30_000
    assert holder.add("a", "s", "it is " + giant) == [("a", "it is " + giant)]
    assert holder.add("b", "s", f"xyz{KEY} and more ") == [("b", "xyz[redacted:A_KEY] and more ")]


def test_the_rest_of_a_giant_value_is_left_out() -> None:
    holder: Holder[str] = holder_of(redactor_of(), 20_000)
    before = "x," * 20_000
    assert holder.add("a", "s", before + "token=" + "x1" * 15_000) == [("a", before + "token=" + REDACTED)]
    assert holder.add("b", "s", "xyz and more ") == [("b", " and more ")]


def test_the_rest_of_a_giant_private_key_is_left_out() -> None:
    holder: Holder[str] = holder_of(redactor_of(), 20_000)
    line = "b3BlbnNzaC1rZXktdjEA" * 3 + "\n"
    assert holder.add("a", "s", "see -----BEGIN PRIVATE KEY-----\n" + line * 500) == [("a", "see [redacted]")]
    assert holder.add("b", "s", line * 3 + "-----END PRIVATE KEY-----\nok ") == [("b", "\nok ")]


def test_a_long_open_text_is_not_gone_through_for_each_piece() -> None:
    holder: Holder[int] = holder_of(redactor_of(), 10_000_000)
    pieces = [Piece("s", 'password="'), *[Piece("s", "a b ")] * 20_000, Piece("s", '" done')]
    out = "".join(each.text or "" for each in run(holder, pieces))
    assert out == 'password="[redacted]" done'


def test_the_ends_of_many_texts_are_not_kept(holder: Holder[str]) -> None:
    for number in range(CONTEXTS * 3):
        holder.add("a", number, "word")
        holder.add("b", size=20_000)
    assert remembered(holder) == CONTEXTS
