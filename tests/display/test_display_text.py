"""Texts that are fit to be shown, whatever an agent sends."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell._display import text as t

HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "\x1b\x9b\x9d\x90\x9c[];?0123mHJ\\\x07\r\n\t\x08\u200d\ufe0f\u0301 \u202e\u2066\U000e0041a界👩"
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
        ("Z" + "\u0301" * 50 + "a", "Z" + "\u0301" * t.MARKS + "a"),
        ("Z" + "\u0301" * 50, "Z" + "\u0301" * t.MARKS),
    ],
)
def test_clean(sent: str, shown: str) -> None:
    assert t.clean(sent) == shown


def test_a_string_for_a_device_that_is_too_long_is_shown() -> None:
    whole = "\x1b]0;" + "x" * (t.SEQUENCE - 2) + "\x07"
    assert t.clean(whole) == ""
    assert t.clean(whole.replace("x", "xx", 1)).startswith("␛]0;xx")


@given(HOSTILE)
def test_nothing_controls_a_terminal(sent: str) -> None:
    for char in t.clean(sent).replace("\n", "") + t.line(sent):
        assert (
            char.isprintable() or char in "\u200c\u200d\u3000" or unicodedata.category(char) in ("Co", "Cn")
        )
    assert all(char.isprintable() for char in t.exact(sent).replace("\n", ""))


@given(HOSTILE)
def test_what_is_clean_stays(sent: str) -> None:
    once = t.clean(sent)
    assert t.clean(once) == once


@given(HOSTILE, st.integers(1, 40))
def test_a_line_is_one_and_bounded(sent: str, limit: int) -> None:
    shown = t.line(sent, limit)
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
    assert t.line(sent, 10) == shown


@given(HOSTILE)
def test_exact_drops_nothing(sent: str) -> None:
    shown = t.exact(sent.replace("\\", "/").replace('"', "'"))
    lines = [json.loads(f'"{each}"') for each in shown.split("\n")]
    assert "\n".join(lines) == sent.replace("\\", "/").replace('"', "'")


def test_exact_shows_what_does_not_show() -> None:
    assert t.exact("rm\t\u200b\u3164\ufe0f x\n\x1b[8m") == "rm\\u0009\\u200b\\u3164\\ufe0f x\n\\u001b[8m"
    assert t.exact("\U000e0041") == "\\udb40\\udc41"
    assert t.exact("a\u034fb\ufffc") == "a\\u034fb\\ufffc"


@given(HOSTILE)
def test_json_means_the_same(sent: str) -> None:
    shown = t.in_json(json.dumps(sent, ensure_ascii=False))
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
        t.clean(sent)  # quadratic time would take minutes


def test_is_clean() -> None:
    assert t.is_clean("a b")
    assert not t.is_clean("a\nb")
    assert not t.is_clean("é")
