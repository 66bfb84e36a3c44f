"""The reader of Telegram's HTML that other tests rely on: it refuses what the server refuses."""

from __future__ import annotations

import pytest
from telegram_html import Entity, ParseError, below_quote, misnested, parse, received, told


def _types(html: str) -> list[tuple[str, str]]:
    parsed = parse(html)
    return [(entity.type, parsed.of(entity)) for entity in parsed.entities]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("plain > text", "plain > text"),
        ("1 &lt; 2 &amp;&gt;&quot; &nbsp; &apos; &", '1 < 2 &>" &nbsp; &apos; &'),
        ("&amp &#65 &#x41;&#128512;", "& A A😀"),
        ("&#0; &#1114111; &#999999999999; &#;", "&#0; &#1114111; &#999999999999; &#;"),
        ("&#" + "9" * 5000, "&#" + "9" * 5000),
        ("a<b></b>b", "ab"),
        ("<b\n>x</b >y", "xy"),
    ],
)
def test_the_text(html: str, text: str) -> None:
    assert parse(html).text == text


@pytest.mark.parametrize(
    ("html", "entities"),
    [
        ("<b>a</b><STRONG>b</STRONG>", [("bold", "a"), ("bold", "b")]),
        ("<i>a</i><em>b</em>", [("italic", "a"), ("italic", "b")]),
        ("<s>a</s><strike>b</strike><del>c</del>", [("strikethrough", char) for char in "abc"]),
        ("<u>a</u><ins>b</ins>", [("underline", "a"), ("underline", "b")]),
        ("<tg-spoiler>a</tg-spoiler><span class='tg-spoiler'>b</span>", [("spoiler", char) for char in "ab"]),
        ("😀<b>😀<i>a</i></b>", [("bold", "😀a"), ("italic", "a")]),
        ("<b>a</>", [("bold", "a")]),
        ("<blockquote>a</blockquote>", [("blockquote", "a")]),
        ("<blockquote expandable>a</blockquote>", [("expandable_blockquote", "a")]),
        ('<blockquote expandable="">a</blockquote>', [("expandable_blockquote", "a")]),
        ("<blockquote other>a</blockquote>", [("blockquote", "a")]),
        ("<pre>a</pre> <code class=language-x>b</code>", [("pre", "a"), ("code", "b")]),
        ("<b>  </b>", [("bold", "  ")]),
    ],
)
def test_the_entities(html: str, entities: list[tuple[str, str]]) -> None:
    assert _types(html) == entities


@pytest.mark.parametrize(
    "html",
    [
        '<pre><code class="language-c&amp;d">x</code></pre>',
        '<code class="language-c&amp;d"><pre>x</pre></code>',
    ],
)
def test_a_language(html: str) -> None:
    assert parse(html).entities == (Entity(type="pre", offset=0, length=1, language="c&d"),)


def test_links_emoji_and_times() -> None:
    html = (
        '<a href="http://a/?b&amp;c">x</a><a>y</a><tg-emoji emoji-id="5">😀</tg-emoji>'
        '<tg-time unix="7" format="r">z</tg-time>'
    )
    assert [(one.url, one.custom_emoji_id, one.unix_time) for one in parse(html).entities] == [
        ("http://a/?b&c", "", 0),
        ("y", "", 0),
        ("", "5", 0),
        ("", "", 7),
    ]


@pytest.mark.parametrize(
    ("html", "message"),
    [
        ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("ä<x>", 'Unsupported start tag "x" at byte offset 2'),
        ("1 < 2", 'Unsupported start tag "" at byte offset 2'),
        ("<", "Unclosed start tag at byte offset 0"),
        ("<b", "Unclosed start tag at byte offset 0"),
        ("<b ", 'Empty attribute name in the tag "b" at byte offset 0'),
        ("<b x", 'Unclosed start tag "b" at byte offset 0'),
        ("<b x=", 'Unclosed start tag "b" at byte offset 0'),
        ("<b x='", "Unclosed start tag at byte offset 0"),
        ("<b x=a", "Unclosed start tag at byte offset 0"),
        ("<b x=a_>", "Unexpected end of name token at byte offset 5"),
        ("<br/>", 'Unsupported start tag "br/" at byte offset 0'),
        ("<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("<b>x</b", "Unclosed end tag at byte offset 4"),
        (
            "<b><i>x</b></i>",
            'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"',
        ),
        ("<tg-emoji>x</tg-emoji>", "Invalid custom emoji identifier specified"),
        (
            "&#xd800;",
            (
                "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched "
                "surrogate code units"
            ),
        ),
    ],
)
def test_what_is_refused(html: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(html)
    assert str(caught.value) == f"can't parse entities: {message}"


def test_what_is_no_request() -> None:
    with pytest.raises(ParseError, match="text must be encoded in UTF-8"):
        parse("\ud800")
    with pytest.raises(ParseError, match="text is too long"):
        parse("ä" * 16_385)


@pytest.mark.parametrize(
    ("html", "text", "entities"),
    [
        (" \n a\tb\x00c \n", "a b c", []),
        ("a\r\nb\u2028c\u202ed", "a\nbcd", []),
        ("x\u200f\u200e\u200fy", "x\u200c\u200c\u200fy", []),
        (" <b> x </b> ", " x", [("bold", " x")]),
        ("\r<b>\ra</b>\r😀<i>c</i>", "a😀c", [("bold", "a"), ("italic", "c")]),
        ("<b> x </b><i> </i>", " x", [("bold", " x")]),
        ("a<b>\r</b>b", "ab", []),
    ],
)
def test_what_a_message_holds(html: str, text: str, entities: list[tuple[str, str]]) -> None:
    held = received(parse(html))
    assert (held.text, [(entity.type, held.of(entity)) for entity in held.entities]) == (text, entities)


@pytest.mark.parametrize("html", ["", "\n \t", "<b> </b>", "\u200b\u3000\u00a0"])
def test_an_empty_message(html: str) -> None:
    with pytest.raises(ParseError, match="text must be non-empty"):
        received(parse(html))


def test_a_long_message() -> None:
    assert len(received(parse(" " + "&amp;" * 4096)).text) == 4096
    with pytest.raises(ParseError, match="message is too long"):
        received(parse("<b>x</b>" + "😀" * 4096))


@pytest.mark.parametrize(
    "html",
    [
        "<blockquote>a<b>b<i>c</i></b><pre>d</pre></blockquote>",
        "<blockquote>a</blockquote><blockquote expandable>a</blockquote>",
        "<b>a</b><b>b</b>",
        "<b>x</b>" + "<i>x</i> " * 99,
        '<b><a href="http://a">x</a>y</b>',
    ],
)
def test_marks_that_may_nest(html: str) -> None:
    assert misnested(parse(html)) == ""


@pytest.mark.parametrize(
    "html",
    [
        "<b>a<code>b</code></b>",
        "<code>a<b>b</b></code>",
        "<pre>a<code>b</code></pre>",
        "<b>a<b>b</b></b>",
        "<blockquote>a<blockquote expandable>b</blockquote></blockquote>",
        "<b>a<blockquote>b</blockquote></b>",
        '<a href="http://a">a<tg-emoji emoji-id="5">b</tg-emoji></a>',
        "<b>x</b> " * 101,
    ],
)
def test_marks_that_may_not_nest(html: str) -> None:
    assert misnested(parse(html))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a", "a"),
        ("<b>a</b>\nb", "a\nb"),
        ("a<blockquote>b</blockquote>", "ab"),
        ("<blockquote>a<b>b</b></blockquote>\n\n<b>c</b>d", "cd"),
        ("<blockquote expandable>a</blockquote>", ""),
    ],
)
def test_what_stands_below_a_quote(html: str, text: str) -> None:
    assert below_quote(parse(html)) == text


@pytest.mark.parametrize(
    ("messages", "same"),
    [
        (["a", "b c"], True),
        (["a\n\n  b c"], True),
        (["a", "b", "c"], True),
        (["a", "b  c"], False),
        (["a"], False),
        (["a", "b c", "d"], False),
    ],
)
def test_whether_messages_tell_a_text(messages: list[str], same: bool) -> None:
    assert told(" a\n\n  b c\n", messages) is same
