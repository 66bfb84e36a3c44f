"""Texts that are too long for a message: where they are cut, and what is left out there."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thinkwell.channels._pieces import pieces, ranges

WHITE = " \t\n\r\f\v"

LETTERS = (
    "ab.! \n\t\r。\u0301\u200d\u200c\u093e\u094d\u0915\U0001f1e6\U0001f1e7👩\U0001f3fd각\u11a8\ud83d\ude00"
)
TEXTS = st.text(st.sampled_from(LETTERS) | st.characters(), max_size=120)
LIMITS = st.integers(1, 40)
EXAMPLES = settings(max_examples=300, deadline=None, database=None, derandomize=True)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t "])
def test_of_white_space_there_is_no_piece(text: str) -> None:
    assert pieces(text, 2) == []


@pytest.mark.parametrize("text", ["a", "\n a \n", "x" * 20])
def test_a_text_that_fits_is_one_piece_as_it_is(text: str) -> None:
    assert pieces(text, 20) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a paragraph, where the piece is half full
        ("One. Two, too.\n\nA\nfour five six", ["One. Two, too.", "A\nfour five six"]),
        # else a line
        ("One.\n\nTwo three\nfour five six", ["One.\n\nTwo three", "four five six"]),
        # else a sentence
        ("One.\nTwo three. four five six", ["One.\nTwo three.", "four five six"]),
        ('He said: "Go now!" And then I', ['He said: "Go now!"', "And then I"]),
        (
            "一二三四五六。七八九十。一二三四五六七八九十",
            ["一二三四五六。七八九十。", "一二三四五六七八九十"],
        ),
        # else a word
        ("One two three four five six", ["One two three four", "five six"]),
        ("One\ttwo\tthree\tfour\tfive\tsix", ["One\ttwo\tthree\tfour", "five\tsix"]),
        # else anywhere
        ("One " + "x" * 30, ["One " + "x" * 16, "x" * 14]),
        ("x" * 45, ["x" * 20, "x" * 20, "x" * 5]),
        # just behind the limit
        ("x" * 20 + "\n\nyz", ["x" * 20, "yz"]),
        ("x" * 19 + ". yz", ["x" * 19 + ".", "yz"]),
        ("x" * 20 + " yz", ["x" * 20, "yz"]),
        ("一" * 20 + "。二三", ["一" * 20, "。二三"]),
    ],
)
def test_where_a_text_is_cut(text: str, expected: list[str]) -> None:
    assert pieces(text, 20) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * 15 + " \n\n \n  indented, and more", ["x" * 15, "  indented, and more"]),
        ("x" * 15 + "\n" + " " * 11 + "not indented", ["x" * 15, "not indented"]),
        ("x" * 15 + "    words that go on", ["x" * 15, "words that go on"]),
        ("x" * 20 + " \n" * 50, ["x" * 20]),
        ("\n" * 50 + "  a" + "\n" * 50, ["  a"]),
        (" " * 50 + "a", ["a"]),
        ("  indented, and more words", ["  indented, and more", "words"]),
    ],
)
def test_what_is_left_out(text: str, expected: list[str]) -> None:
    assert pieces(text, 20) == expected


@pytest.mark.parametrize(
    "shown",
    [
        "e\u0301\u0323",
        "👨\u200d👩\u200d👧\u200d👦",
        "👍\U0001f3fd",
        "1\ufe0f\u20e3",
        "\U0001f1e9\U0001f1ea",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "\u1100\u1161\u11a8",
        "क्षि",
        "\uff76\uff9e",
        "\ud83d\ude00",
        " \u0301",
    ],
)
def test_what_is_shown_as_one_is_kept_together(shown: str) -> None:
    for before in range(20 - len(shown), 21):
        text = "x" * before + shown + "y" * 20
        cut = pieces(text, 20)
        assert "".join(cut) == text, (before, cut)
        assert any(shown in piece for piece in cut), (before, cut)


def test_flags_are_not_divided() -> None:
    flags = "\U0001f1e9\U0001f1ea" * 20
    assert pieces(f"x{flags}", 10) == [
        f"x{flags[:8]}",
        flags[:10],
        flags[:10],
        flags[:10],
        flags[:2],
    ]


def test_what_would_be_endless_is_divided_all_the_same() -> None:
    heap = "a" + "\u0301" * 500
    assert pieces(heap, 100) == [heap[start : start + 100] for start in range(0, 501, 100)]
    assert pieces("क्षि", 1) == list("क्षि")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_positive(limit: int) -> None:
    with pytest.raises(ValueError, match=f"a piece cannot have {limit} characters; .* at least 1"):
        pieces("", limit)


def _unspaced(text: str) -> str:
    return re.sub(f"[{WHITE}]", "", text)


@EXAMPLES
@given(TEXTS, LIMITS)
@example("a\u200d", 1)
def test_nothing_but_white_space_is_lost(text: str, limit: int) -> None:
    cut = pieces(text, limit)
    assert all(0 < len(piece) <= limit for piece in cut)
    assert _unspaced("".join(cut)) == _unspaced(text)
    if len(text) <= limit:
        assert cut == [text] * bool(text.strip(WHITE))
        return
    at = 0
    for piece in cut:
        assert piece.strip(WHITE)
        assert piece == piece.rstrip(WHITE)
        start = text.index(piece, at)
        left_out = text[at:start]
        assert not left_out.strip(WHITE)
        indents = left_out.endswith("\n") or not start
        assert indents or piece[0] not in WHITE or unicodedata.category(piece[1])[0] in "MC"
        at = start + len(piece)
    assert not text[at:].strip(WHITE)


@EXAMPLES
@given(TEXTS, st.integers(20, 60))
def test_no_piece_begins_with_what_belongs_to_the_one_before(text: str, limit: int) -> None:
    text = re.sub("[^\x00-\u02ff](?:[^\x00-\u02ff]{10})+", "", text)  # heaps
    for piece in pieces(text, limit)[1:]:
        assert not unicodedata.category(piece[0]).startswith("M"), piece


@EXAMPLES
@given(TEXTS, LIMITS, LIMITS, st.integers(0, 120))
def test_of_a_text_that_grows_all_pieces_but_the_last_stay(
    text: str, limit: int, first: int, size: int
) -> None:
    whole = list(ranges(text, limit, first))
    so_far = list(ranges(text[:size], limit, first))
    joins = unicodedata.category(text[size : size + 1] or "x")[0] in "MC"
    assert joins or so_far[:-1] == whole[: max(len(so_far) - 1, 0)]
