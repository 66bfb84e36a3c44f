"""Answers as messages: where a long text is cut, what becomes of marks, and HTML as Telegram reads it.

Messages are always valid, never too long, and nothing of the text is lost.
"""

# Private: texts in, messages out, sans I/O: tried on thousands of texts and of their beginnings

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace
from telegram_html import LONGEST_REQUEST, Parsed, below_quote, misnested, parse, received, told
from tried import tried

from thinkwell.channels import ChannelCapabilities
from thinkwell.channels._html import _SHOWN, HtmlPiece, carried, compose, escape, exactly, live, tail
from thinkwell.channels._marks import read_marks
from thinkwell.channels._pieces import pieces, ranges

if TYPE_CHECKING:
    from markdown_it.token import Token

TELEGRAM = ChannelCapabilities(edits=True, max_length=4096, html=True, expandable_quote=True)
SMALL = ChannelCapabilities(edits=True, max_length=120, html=True, expandable_quote=True)
PLAIN_QUOTES = ChannelCapabilities(edits=True, max_length=120, html=True)
TINY = ChannelCapabilities(edits=True, max_length=20, html=True, expandable_quote=True)

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


@tried(TEXTS)
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


@tried(TEXTS, st.integers(1, 40))
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


@tried(TEXTS, st.lists(st.integers(0, 60)), st.booleans(), st.booleans())
def test_what_is_full_stays(text: str, sizes: list[int], thinks: bool, markdown: bool) -> None:
    thinking = "Hm. " * 10 if thinks else ""
    if markdown:  # in a paragraph that is longer than a message, a mark that gets its end later changes one
        text = re.sub(r"[*`\[\\#~]", "", text)
    text = carried(text)
    whole = compose(text, thinking=thinking, seconds=3, capabilities=replace(SMALL, markdown=markdown))
    at = 0
    for size in sizes:
        at += size
        now = live(text[:at], thinking=thinking, seconds=3, capabilities=replace(SMALL, markdown=markdown))
        assert now[:-1] == whole[: max(len(now) - 1, 0)] or unicodedata.category(text[at : at + 1])[0] in "MC"
        for piece in now:
            assert len(_held(piece).text) <= 120


PARAGRAPHS = st.lists(
    BITS | st.sampled_from(["words that go on ", "|", "|-", "- ", "> ", "===", "1. ", "~~"]), max_size=20
).map(lambda bits: "".join(bits)[:110])


@tried(st.lists(PARAGRAPHS), st.lists(st.integers(1, 60)))
def test_what_is_full_stays_whatever_marks_come(paragraphs: list[str], sizes: list[int]) -> None:
    text = carried("\n\n".join(paragraphs))
    whole = compose(text, capabilities=replace(SMALL, markdown=True))
    at = 0
    for size in sizes:
        at += size
        now = live(text[:at], capabilities=replace(SMALL, markdown=True))
        assert now[:-1] == whole[: max(len(now) - 1, 0)] or unicodedata.category(text[at : at + 1])[0] in "MC"


def test_a_message_waits_for_the_end_of_a_mark_unless_that_is_far() -> None:
    def now(text: str) -> list[str]:
        return _texts(live(f"One.\n\n**{text}", capabilities=replace(SMALL, markdown=True)))

    assert now("two " * 30) == ["One.\n\n**" + "two " * 27 + "two"]
    assert now("two " * 30 + "three**\n\n.\n\n.") == [
        "One.\n\n" + "two " * 27 + "two",
        "two two three\n\n.\n\n.",
    ]
    assert len(now("two " * 90)) == 3


# Whatever it is


@tried(TEXTS, TEXTS, st.booleans(), st.sampled_from([TELEGRAM, SMALL, PLAIN_QUOTES, TINY]))
def test_messages_are_valid_and_lose_nothing(
    text: str, thinking: str, markdown: bool, capabilities: ChannelCapabilities
) -> None:
    pieces = compose(
        text, thinking=thinking, seconds=3, capabilities=replace(capabilities, markdown=markdown)
    )
    for number, piece in enumerate(pieces):
        held = _held(piece)
        assert len(held.text) <= (capabilities.max_length or 0)
        assert below_quote(held).strip(" \n") == piece.text.strip(" \n")
        assert any(one.type.endswith("blockquote") for one in held.entities) <= (number == 0)
    if not markdown:
        assert _shown("".join(_texts(pieces))) == _shown(carried(text))


@tried(TEXTS, TEXTS, st.sampled_from([TELEGRAM, SMALL, PLAIN_QUOTES, TINY]))
def test_messages_tell_the_text(text: str, thinking: str, capabilities: ChannelCapabilities) -> None:
    text = "".join(char for char in carried(text) if char in " \n" or _shown(char))
    pieces = compose(text, thinking=thinking, seconds=3, capabilities=capabilities)
    assert told(text, [said for piece in pieces if (said := below_quote(_held(piece)))])


@tried(TEXTS, TEXTS, st.none() | st.just(3.0), st.booleans())
def test_what_is_being_written_is_valid_too(
    text: str, thinking: str, seconds: float | None, markdown: bool
) -> None:
    for piece in live(
        text, thinking=thinking, seconds=seconds, capabilities=replace(SMALL, markdown=markdown)
    ):
        assert len(_held(piece).text) <= 120


# Marks

NARROW = ChannelCapabilities(edits=True, max_length=40, html=True, expandable_quote=True)


def _html(text: str) -> str:
    return "".join(piece.html for piece in compose(text, capabilities=replace(TELEGRAM, markdown=True)))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        # bold and italic
        ("**bold** and *italic*", "<b>bold</b> and <i>italic</i>"),
        ("***both***", "<b><i>both</i></b>"),
        ("**a *b* c** *d **e***", "<b>a <i>b</i> c</b> <i>d </i><b><i>e</i></b>"),
        ("***a* b** ***c** d*", "<b><i>a</i> b</b> <b><i>c</i></b><i> d</i>"),
        ("**a *b c**", "*<i>a b c</i>"),
        ("**a **b c**", "**a <b>b c</b>"),
        ("2*3*4 a**b**c x * y", "2<i>3</i>4 a<b>b</b>c x * y"),
        ("__init__ and _x_ ~~y~~", "<b>init</b> and <i>x</i> <s>y</s>"),
        ("a_b_c ~d~ **~~*e*~~**", "a_b_c ~d~ <b><i><s>e</s></i></b>"),
        ("*a\nb* c  \nd\\\ne", "<i>a\nb</i> c\nd\ne"),
        ("这是**重点**内容", "这是<b>重点</b>内容"),
        ("**a** **b**", "<b>a</b> <b>b</b>"),
        # no marks
        ("2 * 3 * 4 a_b_c", "2 * 3 * 4 a_b_c"),
        ("**open", "**open"),
        ("closed**", "closed**"),
        ("** a ** *\n*", "** a ** *\n*"),
        ("****a**** *****", "<b>a</b> *****"),
        # what is escaped
        (r"\*a\* \`b\` \[c](d) \# \q \\", r"*a* `b` [c](d) # \q " + "\\"),
        ("a < b & **c > d**", "a &lt; b &amp; <b>c &gt; d</b>"),
        # code
        ("`a < b`", "<code>a &lt; b</code>"),
        ("`**a** *b* [c](d)`", "<code>**a** *b* [c](d)</code>"),
        ("`` a`b `` ` ` `  c  `.", "<code>a`b</code> <code> </code> <code> c </code>."),
        ("``a` b", "``a` b"),
        ("`a\nb`", "<code>a b</code>"),
        ("**a `b` c**", "<b>a </b><code>b</code><b> c</b>"),
        ("*`b`*", "<code>b</code>"),
        ("`a **b` c**", "<code>a **b</code> c**"),
        # fences
        ("```\na < b\n```", "<pre>a &lt; b</pre>"),
        ("```py\na\n\n  b\n```", '<pre><code class="language-py">a\n\n  b</code></pre>'),
        ("a\n```c++ title=x\nb\n```\nc", 'a\n<pre><code class="language-c++">b</code></pre>\nc'),
        ('```"><b>\nx\n```', "<pre>x</pre>"),
        ("```\na\n```\n```\nb\n```", "<pre>a</pre>\n<pre>b</pre>"),
        ("````\n```\n**a**\n````", "<pre>```\n**a**</pre>"),
        ("~~~js\n```\n~~~", '<pre><code class="language-js">```</code></pre>'),
        ("```\nstill written", "<pre>still written</pre>"),
        (
            "1. One\n   ```sh\n   ls\n     -l\n   ```\n2. Two",
            '1. One\n<pre><code class="language-sh">ls\n  -l</code></pre>\n2. Two',
        ),
        ("- ```sh\n  ls\n  ```\n- b", '-\n<pre><code class="language-sh">ls</code></pre>\n- b'),
        ("```\n```\na", "a"),
        ("a\n```py", "a"),
        ("```inline``` a", "<code>inline</code> a"),
        ("```\n  indented\n```", "<pre>  indented</pre>"),
        # headings
        ("# Title", "<b>Title</b>"),
        ("### Title ###\ntext", "<b>Title</b>\ntext"),
        ("# C#", "<b>C#</b>"),
        ("## A `b` **c** *d*", "<b>A </b><code>b</code><b> c <i>d</i></b>"),
        ("#hashtag\n####### seven\n    # code", "#hashtag\n####### seven\n    # code"),
        ("> # a\n- # b", "&gt; <b>a</b>\n- <b>b</b>"),
        ("> a\n> *b*\n> ===", "&gt; <b>a\n&gt; <i>b</i></b>"),
        ("# #", "# #"),
        ("#", "#"),
        # links, which say where they go
        ("[a](http://b/?c&d)", "a (http://b/?c&amp;d)"),
        ("![a](b.png)", "a (b.png)"),
        ("[a](<b>)", "a (b)"),
        ('[a](b "title")', "a (b)"),
        ("[a](https://b/c_(d))", "a (https://b/c_(d))"),
        ("[http://b](http://b)", "http://b"),
        ("**[`a`](b)**", "<code>a</code><b> (b)</b>"),
        ("[**a** b](c)", "<b>a</b> b (c)"),
        ("[`a](b)`]", "<code>a](b)</code>]".replace("<code>", "[<code>")),
        ("<https://b> <c@d.e>", "https://b c@d.e"),
        ("[a] (b) [c][d] [](e) [f]() [g](h i)", "[a] (b) [c][d] e f [g](h i)"),
        ("[a]: https://b\n[a]", "[a]: https://b\n[a]"),
        ("[[a](b)](c)", "[a (b)](c)"),
        ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
    ],
)
def test_marks(text: str, html: str) -> None:
    assert _html(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "* one\n* two\n  * three\n1. four\n- [ ] five",
        "> quoted\n> more",
        "| a | b |\n|---|---|\n| c | d |",
        "---\n***\n___",
        "<b>html</b>",
        "> - a\n>   b\nc\n\n    code\n\u3000d",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert received(parse(_html(text))).text == text
    assert read_marks(text)[:2] == (text, [])


def test_a_line_beyond_all_bounds_has_no_marks() -> None:
    line = "**a** " * 4_000
    assert read_marks(f"> {line}\n\n**c**")[0] == f"> {line.strip()}\n\nc"


def test_a_fence_that_is_cut_is_two_fences() -> None:
    code = "\n".join(f"{'  ' * (number in (3, 4))}line_{number}  # <>" for number in range(6))
    pieces = compose(f"**Code:**\n```py\n{code}\n```\nDone.", capabilities=replace(NARROW, markdown=True))
    assert [piece.html for piece in pieces] == [
        '<b>Code:</b>\n<pre><code class="language-py">line_0  # &lt;&gt;\nline_1  # &lt;&gt;</code></pre>',
        '<pre><code class="language-py">line_2  # &lt;&gt;\n  line_3  # &lt;&gt;</code></pre>',
        '<pre><code class="language-py">  line_4  # &lt;&gt;\nline_5  # &lt;&gt;</code></pre>\nDone.',
    ]


def test_bold_that_is_cut_is_bold_twice() -> None:
    text = "**Some words in bold, *and others, in italic* besides.**"
    assert [piece.html for piece in compose(text, capabilities=replace(NARROW, markdown=True))] == [
        "<b>Some words in bold, <i>and others, in</i></b>",
        "<b><i>italic</i> besides.</b>",
    ]


def test_a_mark_of_what_is_left_out_at_a_cut_is_left_out_too() -> None:
    pieces = compose("x" * 40 + " ` ` y", capabilities=replace(NARROW, markdown=True))
    assert [piece.html for piece in pieces] == ["x" * 40, "y"]


def test_a_message_keeps_as_many_marks_as_telegram_reads() -> None:
    (piece,) = compose(
        "**a** *b* `c`\n" * 200, thinking="Hm.", seconds=2, capabilities=replace(TELEGRAM, markdown=True)
    )
    parsed = parse(piece.html)
    assert misnested(parsed) == ""
    assert len(parsed.entities) == 92
    assert below_quote(received(parsed)) == "a b c\n" * 199 + "a b c"


def test_what_is_written_is_marked_too() -> None:
    (piece,) = live("**a** and **b\n```\nc", capabilities=replace(TELEGRAM, markdown=True))
    assert piece.html == "<b>a</b> and **b\n<pre>c</pre>▌"


# Against another reader of Markdown

WORDS = st.sampled_from(["ab", "c.", "(d)", "e&f", "<g", "h:", "“i”", "重点", "2 + 2"])


def _inline(words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    spoken = st.lists(words, min_size=1, max_size=3).map(" ".join)
    code = spoken.map("`{}`".format)
    italic = spoken.map("*{}*".format)
    inner = st.lists(spoken | code | italic, min_size=1, max_size=3).map(" ".join)
    bold = inner.filter(lambda text: text[0] != "*" != text[-1]).map("**{}**".format)
    return st.lists(spoken | code | italic | bold, min_size=1, max_size=4).map(" ".join)


INLINE = _inline(WORDS)
BLOCKS = st.one_of(
    INLINE,
    INLINE.map("## {}".format),
    st.tuples(
        st.sampled_from(["", "py", "c++"]), st.lists(WORDS | st.just("**x**") | st.just(""), min_size=1)
    ).map(lambda fence: f"```{fence[0]}\n" + "\n".join(fence[1]) + "\n```"),
)
DOCUMENTS = st.lists(BLOCKS, min_size=1, max_size=5).map("\n\n".join)


@tried(DOCUMENTS)
def test_another_reader_reads_the_same(text: str) -> None:
    parsed = parse(_html(text))
    ours: dict[str, list[str]] = {}
    for entity in parsed.entities:
        ours.setdefault(entity.type, []).append(parsed.of(entity))
    assert _words(ours) == _words(_read_by_another(text))


def _words(said: dict[str, list[str]]) -> dict[str, str]:
    together = ((kind, re.sub(r"\s", "", "".join(texts))) for kind, texts in said.items())
    return {kind: text for kind, text in together if text}


def _read_by_another(text: str) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    heading = False
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "fence" and token.content.strip():
            said.setdefault("pre", []).append(token.content)
        elif token.type in ("heading_open", "heading_close"):
            heading = token.type == "heading_open"
        else:
            _note(token.children or [], said, {"bold"} if heading else set())
    return said


def _note(tokens: list[Token], said: dict[str, list[str]], always: set[str]) -> None:
    kinds = {"strong": "bold", "em": "italic"}
    styles: set[str] = set()
    for token in tokens:
        name, _, change = token.type.partition("_")
        if change == "open":
            styles = styles | {kinds[name]}
        elif change == "close":
            styles = styles - {kinds[name]}
        else:
            for style in {"code"} if token.type == "code_inline" else styles | always:
                said.setdefault(style, []).append(token.content)


# Where a text is cut

WHITE = " \t\n\r\f\v"

LETTERS = (
    "ab.! \n\t\r。\u0301\u200d\u200c\u093e\u094d\u0915\U0001f1e6\U0001f1e7👩\U0001f3fd각\u11a8\ud83d\ude00"
)
CUTTABLE = st.text(st.sampled_from(LETTERS) | st.characters(), max_size=120)
LIMITS = st.integers(1, 40)


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


@pytest.mark.long
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
    assert pieces("a\u200d", 1) == ["a", "\u200d"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_positive(limit: int) -> None:
    with pytest.raises(ValueError, match=f"a piece cannot have {limit} characters; .* at least 1"):
        pieces("", limit)


def _unspaced(text: str) -> str:
    return re.sub(f"[{WHITE}]", "", text)


@tried(CUTTABLE, LIMITS)
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


@tried(CUTTABLE, st.integers(20, 60))
def test_no_piece_begins_with_what_belongs_to_the_one_before(text: str, limit: int) -> None:
    text = re.sub("[^\x00-\u02ff](?:[^\x00-\u02ff]{10})+", "", text)  # heaps
    for piece in pieces(text, limit)[1:]:
        assert not unicodedata.category(piece[0]).startswith("M"), piece


@tried(CUTTABLE, LIMITS, LIMITS, st.integers(0, 120))
def test_of_a_text_that_grows_all_pieces_but_the_last_stay(
    text: str, limit: int, first: int, size: int
) -> None:
    whole = list(ranges(text, limit, first))
    so_far = list(ranges(text[:size], limit, first))
    joins = unicodedata.category(text[size : size + 1] or "x")[0] in "MC"
    assert joins or so_far[:-1] == whole[: max(len(so_far) - 1, 0)]
