"""Texts that come in chunks: whatever is cut in two is shown as it would be whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell._display.chunks import CleanChunks
from thinkwell._display.text import MARKS, SEQUENCE, clean

HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "\x1b\x9b\x9d\x90\x9c[];?0123mHJP(\\\x07\r\n\t\x08\u200b\u200d\ufe0f\u0301 \u202ea界👩"
        ),
        st.characters(),
    )
)


def shown(*chunks: str) -> list[str]:
    """Return what is shown with each chunk, and what is left at the end."""
    text = CleanChunks()
    return [*(text.take(chunk) for chunk in chunks), text.rest()]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (("plain ", "text"), ["plain ", "text", ""]),
        (("a\x1b", "[31mred"), ["a", "red", ""]),
        (("a\x1b[3", "1", "mred"), ["a", "", "red", ""]),
        (("\x9b", "31mred"), ["", "red", ""]),
        (("\x1b]0;ti", "tle", "\x1b", "\\x"), ["", "", "", "x", ""]),
        (("\x90six", "el\x9cx"), ["", "x", ""]),
        (("\x1b(", "Bx"), ["", "x", ""]),
        (("\x1b]0;a", "\x1b[31mb"), ["", "␛]0;ab", ""]),
        (("a\x1b",), ["a", "␛"]),
        (("a\r", "\nb"), ["a", "\nb", ""]),
        (("a\r", "b\r"), ["a", "\nb", "\n"]),
        (("a\r\x1b[0m", "\nb"), ["a", "\nb", ""]),
        (("e", "\u0301!"), ["e", "\u0301!", ""]),
        (("\u0301", "e"), ["◌\u0301", "e", ""]),
        (("a\n", "\u0301"), ["a\n", "\u0301", ""]),
        (("\u200b", "\u0301"), ["", "◌\u0301", ""]),
        (("ab", "\tc", "\t"), ["ab", "  c", "   ", ""]),
        (("Z" + "\u0301" * 5, "\u0301" * 5), ["Z" + "\u0301" * 5, "\u0301" * (MARKS - 5), ""]),
    ],
)
def test_chunks(chunks: tuple[str, ...], expected: list[str]) -> None:
    assert shown(*chunks) == expected
    assert "".join(expected) == clean("".join(chunks))


@given(st.lists(HOSTILE))
def test_chunks_are_shown_as_the_whole_is(chunks: list[str]) -> None:
    assert "".join(shown(*chunks)) == clean("".join(chunks))


@given(HOSTILE)
def test_so_are_single_characters(text: str) -> None:
    assert "".join(shown(*text)) == clean(text)


@pytest.mark.parametrize("begin", ["\x1b]", "\x1b[", "\x1b", "\x1bP", "\x9b"])
@pytest.mark.parametrize("filling", ["1", " ", "\r"])
def test_what_never_ends_is_not_kept_for_ever(begin: str, filling: str) -> None:
    text = CleanChunks()
    returned = "".join(text.take(filling * 1_000) for _ in range(5))
    returned += text.take(begin) + "".join(text.take(filling * 1_000) for _ in range(50))
    assert len(returned) > 50_000 - 3 * SEQUENCE
    assert "\x1b" not in returned
