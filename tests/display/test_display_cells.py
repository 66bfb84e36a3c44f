"""Widths in cells of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thinkwell._display.cells import cells, clip, cut, pad, wrap
from thinkwell._display.text import clean, line

FAMILY = "👨\u200d👩\u200d👧"
LINES = st.text(alphabet=st.sampled_from("ab 数据é\u0301👩\u200d\ufe0f")).map(line)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("数据", 4),
        ("e\u0301", 1),
        (FAMILY, 2),
        ("❤\ufe0f", 2),
        ("", 0),
        ("a\u200cb", 2),
        ("ｱ", 1),
    ],
)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("数据库", 6, "数据库"),
        ("数据库", 5, "数据…"),
        ("数据库", 4, "数…"),
        (f"{FAMILY}ab", 3, f"{FAMILY}…"),
        ("数", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_clip(text: str, width: int, shown: str) -> None:
    assert clip(text, width) == shown


@given(LINES, st.integers(1, 30))
def test_what_is_clipped_fits(text: str, width: int) -> None:
    assert cells(clip(text, width)) <= width


def test_rows_that_are_found_fast_take_as_much_as_others() -> None:
    for char in map(chr, [*range(0x20, 0xD800), *range(0xE000, 0x20000)]):
        if char != "\u200d":  # joins what follows
            assert cells(char) == cells(f"{char}中") - 2, ascii(char)


def test_pad() -> None:
    assert pad("数", 4) == "数  "
    assert pad("long", 2) == "long"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("one\n\ntwo", 8, ["one", "", "two"]),
        ("  indented text goes on", 12, ["  indented", "  text goes", "  on"]),
        ("a unbreakable", 6, ["a unbr", "eakabl", "e"]),
        ("abc unbreakable", 4, ["abc", "unbr", "eaka", "ble"]),
        ("读 数据库迁移", 6, ["读 数", "据库迁", "移"]),
        ("      deep", 6, ["deep"]),
        ("x   ", 9, ["x"]),
    ],
)
def test_wrap(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


@example(" ⺀", 2)
@given(st.text().map(clean), st.integers(2, 30))
def test_nothing_but_white_space_is_lost(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cells(each) <= width for each in lines)


@given(LINES, st.integers(2, 30))
def test_pieces_are_the_whole(text: str, width: int) -> None:
    pieces = cut(text, width)
    assert "".join(pieces) == text
    assert all(cells(piece) <= width for piece in pieces)
