"""Answers as messages in Telegram's HTML: always valid, never too long, and nothing of the text is lost."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telegram_html import LONGEST_REQUEST, Parsed, below_quote, misnested, parse, received, told

from thinkwell.channels import ChannelCapabilities
from thinkwell.channels._html import _SHOWN, HtmlPiece, carried, compose, escape, exactly, live, tail

TELEGRAM = ChannelCapabilities(edits=True, max_length=4096, html=True, expandable_quote=True)
SMALL = ChannelCapabilities(edits=True, max_length=120, html=True, expandable_quote=True)
PLAIN_QUOTES = ChannelCapabilities(edits=True, max_length=120, html=True)
TINY = ChannelCapabilities(edits=True, max_length=20, html=True, expandable_quote=True)
EXAMPLES = settings(max_examples=300, deadline=None, database=None, derandomize=True)

BITS = st.sampled_from(
    [
        "words that go on ",
        "End. ",
        "\n",
        "\n\n",
        "\t",
        "\r\n",
        "<b>",
        "</b>",
        "&amp;",
        "<",
        "&",
        '"',
        "**",
        "*",
        "`",
        "```",
        "```py\n",
        "\n```\n",
        "# ",
        "[a](http://b)",
        "[",
        "](",
        "\\",
        "😀",
        "👨\u200d👩\u200d👧",
        "e\u0301",
        "a\u030a",
        "\u202e",
        "\u200f",
        "\u200e",
        "\u200b",
        "\u00a0",
        "\x00",
        "\x1b[31m",
        "\x1b",
        "\x9b",
        "\ud800",
        "\u2028",
    ]
)
TEXTS = st.lists(BITS | st.text(max_size=5), max_size=60).map("".join)


def _texts(pieces: list[HtmlPiece]) -> list[str]:
    return [piece.text for piece in pieces]


def _held(piece: HtmlPiece) -> Parsed:
    """Return what a message holds, as Telegram reads it."""
    assert len(piece.html.encode()) <= LONGEST_REQUEST
    parsed = parse(piece.html)
    assert misnested(parsed) == ""
    return received(parsed)


def _entities(piece: HtmlPiece) -> list[tuple[str, str]]:
    held = _held(piece)
    return [(entity.type, held.of(entity)) for entity in held.entities]


def _shown(text: str) -> str:
    return "".join(_SHOWN.findall(text))


# What is said


def test_an_answer_is_escaped_and_nothing_else() -> None:
    text = 'if a < b && c > d: "<b>" **bold** `code`'
    (piece,) = compose(text, capabilities=TELEGRAM)
    assert piece == HtmlPiece(
        'if a &lt; b &amp;&amp; c &gt; d: "&lt;b&gt;" **bold** `code`',
        text,
    )
    assert _held(piece) == Parsed(text)
    assert escape("&<>'\"") == "&amp;&lt;&gt;'\""


def test_a_long_answer_is_several_messages() -> None:
    paragraphs = [f"{number}: " + "<&> " * 700 for number in range(10)]
    pieces = compose("\n\n".join(paragraphs), capabilities=TELEGRAM)
    assert _texts(pieces) == [paragraph.rstrip() for paragraph in paragraphs]
    assert [_held(piece).text for piece in pieces] == _texts(pieces)


def test_a_message_is_as_long_as_may_be() -> None:
    pieces = compose("&" * 8200, capabilities=TELEGRAM)
    assert [len(_held(piece).text) for piece in pieces] == [4096, 4096, 8]


def test_a_channel_without_a_limit_gets_one_message() -> None:
    text = "Words. " * 10_000
    capabilities = ChannelCapabilities(html=True)
    assert _texts(compose(text, capabilities=capabilities)) == [text.rstrip()]


@pytest.mark.parametrize("text", ["", " \n", "\u200b\u00a0\u3000\ufeff", "\x1b[31m", "\u202e"])
def test_what_does_not_show_is_not_sent(text: str) -> None:
    assert compose(text, capabilities=TELEGRAM) == []
    assert live(text, capabilities=TELEGRAM) == []


def test_a_message_of_which_nothing_shows_is_left_out() -> None:
    pieces = compose("\u200b" * 25 + " words", capabilities=TINY)
    assert _texts(pieces) == ["\u200b\u200b\u200b\u200b\u200b words"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\tb\n\tc", "a   b\n    c"),
        ("a\r\nb\rc\u2028d\u2029e\x0bf\x0cg\x85h", "a\nb\nc\nd\ne\nf\ng\nh"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07x", "red x"),
        ("a\x00b\x1b\nc\x7f\x9c", "a␀b␛\nc␡\ufffd"),
        ("\ud83d\ude00 \ud83d \ude00", "😀 \ufffd \ufffd"),
        ("A\u030arhus, u\u030a, x\u030a, b\u0333\u033f", "Århus, ů, x, b"),
        ("a\u202eb\u202a\u202cc", "abc"),
        ("\u200e\u200f\u200ex\u200e", "\u200ex\u200e"),
        ("a\u2067b\u2069\u00a0\u00ad\u200b🇩🇪", "a\u2067b\u2069\u00a0\u00ad\u200b🇩🇪"),
    ],
)
def test_what_a_message_cannot_carry(text: str, expected: str) -> None:
    assert carried(text) == expected
    assert received(parse(escape(f"[{carried(text)}]"))).text == f"[{expected}]"


@EXAMPLES
@given(TEXTS)
def test_what_a_message_carries_arrives(text: str) -> None:
    fits = carried(text)
    assert carried(fits) == fits
    assert received(parse(escape(f"[{fits}]"))).text == f"[{fits}]"


def test_what_is_to_be_approved_is_shown_to_the_last_character() -> None:
    assert exactly("rm a\u030a\u0333 å") == "rm a\\u030a\\u0333 å"


# What was thought


def test_what_was_thought_stands_above() -> None:
    (piece,) = compose("Yes.", thinking="It <is>.\nIt is.", seconds=12.7, capabilities=TELEGRAM)
    assert piece == HtmlPiece(
        "<blockquote expandable><b>thought for 12s</b>\nIt &lt;is&gt;.\nIt is.</blockquote>\nYes.", "Yes."
    )
    assert _entities(piece) == [
        ("expandable_blockquote", "thought for 12s\nIt <is>.\nIt is."),
        ("bold", "thought for 12s"),
    ]


def test_only_the_end_of_long_thinking_is_kept() -> None:
    (piece,) = compose("Yes.", thinking="No. " * 5_000 + "Yes!", seconds=100, capabilities=TELEGRAM)
    quote = _held(piece).text.removesuffix("\nYes.")
    assert quote.startswith("thought for 1:40\n…No. No. ")
    assert quote.endswith(" No. Yes!")
    assert 980 < len(quote) <= 1_024


def test_it_stands_above_the_first_message_only() -> None:
    first, second = compose("x" * 4096, thinking="y" * 100, seconds=3, capabilities=TELEGRAM)
    assert len(first.text) == 4096 - 100 - 24
    assert _entities(first)[0][0] == "expandable_blockquote"
    assert _entities(second) == []


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 5.9, 1e300, float("inf")])
def test_durations_are_bounded(seconds: float) -> None:
    pieces = compose("x" * 120, thinking="Hm.", seconds=seconds, capabilities=SMALL)
    assert len(_held(pieces[0]).text) <= 120
    assert re.search(r"<b>thought for (0s|5s|100:00:00)</b>", pieces[0].html)


def test_an_answer_of_which_nothing_shows_has_what_was_thought() -> None:
    (piece,) = compose("\u200b", thinking="Hm.", seconds=3, capabilities=TELEGRAM)
    assert piece == HtmlPiece("<blockquote expandable><b>thought for 3s</b>\nHm.</blockquote>", "")


def test_where_quotes_do_not_fold_only_the_time_is_told() -> None:
    (piece,) = compose("Yes.", thinking="Hm.", seconds=3, capabilities=PLAIN_QUOTES)
    assert piece.html == "<blockquote><b>thought for 3s</b></blockquote>\nYes."
    (piece,) = live("", thinking="Hm.", capabilities=PLAIN_QUOTES)
    assert piece.html == "<blockquote><b>thinking…</b></blockquote>"


@pytest.mark.parametrize("thinking", ["", " \n", "\u200b"])
def test_thinking_that_does_not_show_is_left_out(thinking: str) -> None:
    assert compose("x", thinking=thinking, seconds=3, capabilities=TELEGRAM) == [HtmlPiece("x", "x")]


def test_where_messages_are_tiny_it_is_left_out() -> None:
    assert compose("x", thinking="Hm.", seconds=3, capabilities=TINY) == [HtmlPiece("x", "x")]


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 10, "short"),
        (" \nshort \n", 5, "short"),
        ("one two three", 10, "…two three"),
        ("one two three", 9, "…three"),
        ("x" * 100, 10, "…" + "x" * 9),
        ("x" * 30 + " y" * 5, 20, "…y y y y y"),
        ("words " * 100 + "\U0001f1e9\U0001f1ea" * 4, 9, "…" + "\U0001f1e9\U0001f1ea" * 4),
        ("words " * 100 + "👨\u200d👩\u200d👧\u200d👦!", 5, "…!"),
        ("x" + "\u0301" * 100, 5, "…"),
        ("x" + " " * 100, 5, "…"),
        ("\x1b[31m" * 100, 20, "…"),
        ("a\tb", 3, "…b"),
    ],
)
def test_the_end_of_a_text(text: str, limit: int, expected: str) -> None:
    assert tail(text, limit) == expected


@EXAMPLES
@given(TEXTS, st.integers(1, 40))
def test_an_end_is_bounded(text: str, limit: int) -> None:
    assert len(tail(text, limit)) <= limit
    text = carried(text)
    assert text.rstrip(" \n").endswith(tail(text, limit).removeprefix("…"))


# While it is written


def test_thinking_goes_by() -> None:
    thinking = "First I look. " * 50 + "Now I <see>."
    (piece,) = live("", thinking=thinking, capabilities=TELEGRAM)
    assert piece.text == ""
    assert piece.html.startswith("<blockquote expandable><b>thinking…</b>\n…")
    assert piece.html.endswith("First I look. Now I &lt;see&gt;.</blockquote>")
    assert 390 < len(_held(piece).text) <= 400 + 10


def test_an_answer_that_is_written_has_a_cursor() -> None:
    (piece,) = live("Yes, \n", thinking="Hm.", seconds=2.0, capabilities=TELEGRAM)
    assert piece.html == "<blockquote expandable><b>thought for 2s</b>\nHm.</blockquote>\nYes,▌"
    assert piece.text == "Yes,"
    (piece,) = live("Yes", cursor="<", capabilities=TELEGRAM)
    assert piece.html == "Yes&lt;"


def test_the_cursor_stands_in_the_last_message_only() -> None:
    first, second = live("x" * 25, capabilities=TINY)
    assert (first.html, second.html) == ("x" * 20, "xxxxx▌")


def test_where_there_is_no_room_there_is_no_cursor() -> None:
    (piece,) = live("x" * 20, capabilities=TINY)
    assert piece.html == "x" * 20


@EXAMPLES
@given(TEXTS, st.lists(st.integers(0, 60)), st.booleans(), st.booleans())
def test_what_is_full_stays(text: str, sizes: list[int], thinks: bool, markdown: bool) -> None:
    thinking = "Hm. " * 10 if thinks else ""
    if markdown:  # a mark that gets its end later changes its line, and may so change a message
        text = re.sub(r"[*`\[\\#~]", "", text)
    text = carried(text)
    whole = compose(text, thinking=thinking, seconds=3, capabilities=SMALL, markdown=markdown)
    at = 0
    for size in sizes:
        at += size
        now = live(text[:at], thinking=thinking, seconds=3, capabilities=SMALL, markdown=markdown)
        assert now[:-1] == whole[: max(len(now) - 1, 0)] or unicodedata.category(text[at : at + 1])[0] in "MC"
        for piece in now:
            assert len(_held(piece).text) <= 120


# Whatever it is


@EXAMPLES
@given(TEXTS, TEXTS, st.booleans(), st.sampled_from([TELEGRAM, SMALL, PLAIN_QUOTES, TINY]))
def test_messages_are_valid_and_lose_nothing(
    text: str, thinking: str, markdown: bool, capabilities: ChannelCapabilities
) -> None:
    pieces = compose(text, thinking=thinking, seconds=3, capabilities=capabilities, markdown=markdown)
    for number, piece in enumerate(pieces):
        held = _held(piece)
        assert len(held.text) <= (capabilities.max_length or 0)
        assert below_quote(held).strip(" \n") == piece.text.strip(" \n")
        assert any(one.type.endswith("blockquote") for one in held.entities) <= (number == 0)
    if not markdown:
        assert _shown("".join(_texts(pieces))) == _shown(carried(text))


@EXAMPLES
@given(TEXTS, TEXTS, st.sampled_from([TELEGRAM, SMALL, PLAIN_QUOTES, TINY]))
def test_messages_tell_the_text(text: str, thinking: str, capabilities: ChannelCapabilities) -> None:
    text = "".join(char for char in carried(text) if char in " \n" or _shown(char))
    pieces = compose(text, thinking=thinking, seconds=3, capabilities=capabilities)
    assert told(text, [said for piece in pieces if (said := below_quote(_held(piece)))])


@EXAMPLES
@given(TEXTS, TEXTS, st.none() | st.just(3.0), st.booleans())
def test_what_is_being_written_is_valid_too(
    text: str, thinking: str, seconds: float | None, markdown: bool
) -> None:
    for piece in live(text, thinking=thinking, seconds=seconds, capabilities=SMALL, markdown=markdown):
        assert len(_held(piece).text) <= 120
