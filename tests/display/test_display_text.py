"""Texts that are fit to be shown, whatever an agent sends; in chunks, in cells of a terminal; and numbers."""

# Private: rules of texts, sans I/O: every display goes by them, and they are told character by character

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thinkwell import RunView, TokenCounts
from thinkwell import events as ev
from thinkwell._display.cells import cells, clip, cut, pad, wrap
from thinkwell._display.chunks import CleanChunks
from thinkwell._display.numbers import clock, count, money, plural, seconds
from thinkwell._display.text import MARKS, SEQUENCE, clean, exact, in_json, is_clean, line
from thinkwell._display.usage import context_share, usage_words
from thinkwell.events import Cost

HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "\x1b\x9b\x9d\x90\x9c[];?0123mHJP(\\\x07\r\n\t\x08\u200b\u200d\ufe0f\u0301 "
            "\u202e\u2066\U000e0041ea界👩"
        ),
        st.characters(),
    )
)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("plain, as nearly all", "plain, as nearly all"),
        ("two\nlines", "two\nlines"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b[38;2;1;2;3mx\x1b[?25l\x1b[2 qy", "xy"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        ("\x9d0;title\x9cx", "x"),
        ("\x1bPsixel\x1b\\\x1b_kitty\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\y", "y"),
        ("\x90sixel\x9c\x9ekitty\x1b\\y", "y"),
        ("\x1b(B\x1bc\x1b=\x1b#8x", "x"),
        ("\x1b]never ends", "␛]never ends"),
        ("\x1b[never\nends\x1b", "ever\nends␛"),
        ("\x1b]0;a\x1b[31mb", "␛]0;ab"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\tb\n\tc", "a   b\n    c"),
        ("\x00\x07\x08\x7f", "␀␇␈␡"),
        ("\x85\x80", "\\u0085\\u0080"),
        ("a\u202eb\u202c\u2066c\u2069", "a\\u202eb\\u202c\\u2066c\\u2069"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("a\U000e0041b\U000e0100", "a\\U000e0041b\\U000e0100"),
        ("a\xa0b\u202fc\u3000d", "a b c\u3000d"),
        ("so\xadft\u200b\u200e\u200f\u2060\ufeff\u061c", "soft"),
        ("\ud800x", "\ufffdx"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨\u200d👩\u200d👧 ❤\ufe0f"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\ue0b0 \U0001fae8 \U0001faff", "\ue0b0 \U0001fae8 \U0001faff"),
        ("\U000e1000\u2065", "\\U000e1000\\u2065"),
        ("e\u0301", "e\u0301"),
        ("\u0301e", "◌\u0301e"),
        ("Z" + "\u0301" * 50 + "a", "Z" + "\u0301" * MARKS + "a"),
        ("Z" + "\u0301" * 50, "Z" + "\u0301" * MARKS),
    ],
)
def test_clean(sent: str, shown: str) -> None:
    assert clean(sent) == shown


def test_a_string_for_a_device_that_is_too_long_is_shown() -> None:
    whole = "\x1b]0;" + "x" * (SEQUENCE - 2) + "\x07"
    assert clean(whole) == ""
    assert clean(whole.replace("x", "xx", 1)).startswith("␛]0;xx")


@given(HOSTILE)
def test_nothing_controls_a_terminal(sent: str) -> None:
    for char in clean(sent).replace("\n", "") + line(sent):
        assert (
            char.isprintable() or char in "\u200c\u200d\u3000" or unicodedata.category(char) in ("Co", "Cn")
        )
    assert all(char.isprintable() for char in exact(sent).replace("\n", ""))


@given(HOSTILE)
def test_what_is_clean_stays(sent: str) -> None:
    once = clean(sent)
    assert clean(once) == once


@given(HOSTILE, st.integers(1, 40))
def test_a_line_is_one_and_bounded(sent: str, limit: int) -> None:
    shown = line(sent, limit)
    assert "\n" not in shown
    assert "  " not in shown
    assert len(shown) <= limit


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (" a  b\n\tc ", "a b c"),
        ("short", "short"),
        (" x ", "x"),
        ("0123456789", "0123456789"),
        ("0123456789a", "012345678…"),
        ("\n" * 100 + "x", "…"),
        ("\x1b[31m" * 5 + "x" * 5, "xxxxx"),
    ],
)
def test_line(sent: str, shown: str) -> None:
    assert line(sent, 10) == shown


@given(HOSTILE)
def test_exact_drops_nothing(sent: str) -> None:
    shown = exact(sent.replace("\\", "/").replace('"', "'"))
    lines = [json.loads(f'"{each}"') for each in shown.split("\n")]
    assert "\n".join(lines) == sent.replace("\\", "/").replace('"', "'")


def test_exact_shows_what_does_not_show() -> None:
    assert exact("rm\t\u200b\u3164\ufe0f x\n\x1b[8m") == "rm\\u0009\\u200b\\u3164\\ufe0f x\n\\u001b[8m"
    assert exact("\U000e0041") == "\\udb40\\udc41"
    assert exact("a\u034fb\ufffc") == "a\\u034fb\\ufffc"


@given(HOSTILE)
def test_json_means_the_same(sent: str) -> None:
    shown = in_json(json.dumps(sent, ensure_ascii=False))
    assert json.loads(shown) == sent
    assert not set(shown) & set("\x7f\x80\x9b\u202e\u2066\u2028\U000e0041")


@pytest.mark.parametrize(
    "piece",
    [
        "\x1b",
        "\x1b[",
        "\x1b[0",
        "\x1b]",
        "\x1b]0;",
        "\x1bP",
        "\x9b",
        "\x9b;",
        "\x90",
        "0;",
        "\x1b(",
        "\x1b ",
        "\u0301",
        "\r",
    ],
)
def test_megabytes_take_no_longer_than_their_length(piece: str) -> None:
    for sent in (piece * 50_000, "\x1b[" + piece * 50_000, "\x1b]" + piece * 50_000):
        clean(sent)  # quadratic time would take minutes


def test_is_clean() -> None:
    assert is_clean("a b")
    assert not is_clean("a\nb")
    assert not is_clean("é")


# In chunks


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


# In cells

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


# Numbers


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0.0s"),
        (-1, "0.0s"),
        (3.21, "3.2s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (37.4, "37s"),
        (59.4, "59s"),
        (59.6, "1:00"),
        (102, "1:42"),
        (605, "10:05"),
        (3723, "1:02:03"),
        (360_000, "100:00:00"),
        (float("nan"), "?"),
        (float("inf"), "?"),
    ],
)
def test_seconds(value: float, shown: str) -> None:
    assert seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "00:00"), (102, "01:42"), (3723, "1:02:03"), (-5, "00:00"), (float("inf"), "00:00")],
)
def test_clock(value: float, shown: str) -> None:
    assert clock(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (18_234, "18.2k"),
        (99_949, "99.9k"),
        (99_960, "100k"),
        (200_000, "200k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (1_500_000, "1.5M"),
        (2_000_000_000, "2G"),
        (10**15, "1.0e+15"),
    ],
)
def test_count(value: int, shown: str) -> None:
    assert count(value) == shown


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        (0.0612, "USD", "$0.06"),
        (0.0012, "USD", "$0.0012"),
        (0, "EUR", "€0.00"),
        (1234.5, "CHF", "1,234.50 CHF"),
        (1, "", "1.00"),
        (1, "\x1b[2Jx\n", "1.00 x"),
        (float("inf"), "GBP", "£?"),
    ],
)
def test_money(amount: float, currency: str, shown: str) -> None:
    assert money(Cost(amount=amount, currency=currency)) == shown


def test_plural() -> None:
    assert (plural(1, "file"), plural(0, "file"), plural(1_200, "file")) == (
        "1 file",
        "0 files",
        "1,200 files",
    )
    assert plural(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("used", "size", "share"),
    [
        (10**400, 10, 1.0),
        (5, 10**400, 0.0),
        (-(10**400), 10, 0.0),
        (10**400, 2 * 10**400, 0.5),
        (1, -5, None),
    ],
)
def test_numbers_that_are_none(used: int, size: int, share: float | None) -> None:
    usage = ev.UsageUpdate(used=used, size=size, cost=ev.Cost(amount=float("nan"), currency="\x1b[2J"))
    view = RunView(usage=usage)
    assert context_share(view) == share
    assert "\x1b" not in usage_words(view)


@pytest.mark.parametrize(("input_", "cached"), [(-3, 3), (-7, 3), (5, -3)])
def test_negative_tokens_have_no_share(input_: int, cached: int) -> None:
    view = RunView(tokens=TokenCounts(input=input_, output=-1, cached_read=cached))
    assert usage_words(view) == f"{input_} in · -1 out"
