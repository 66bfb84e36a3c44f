"""Markdown as agents write it, in Telegram's HTML: a safe subset, and everything else as it was written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from telegram_html import below_quote, misnested, parse, received

from thinkwell.channels import ChannelCapabilities
from thinkwell.channels._html import compose, live
from thinkwell.channels._marks import LONGEST_LINE, read_marks

if TYPE_CHECKING:
    from markdown_it.token import Token

TELEGRAM = ChannelCapabilities(edits=True, max_length=4096, html=True, expandable_quote=True)
SMALL = ChannelCapabilities(edits=True, max_length=40, html=True, expandable_quote=True)
EXAMPLES = settings(max_examples=300, deadline=None, database=None, derandomize=True)


def _html(text: str) -> str:
    return "".join(piece.html for piece in compose(text, capabilities=TELEGRAM, markdown=True))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** and *italic*", "<b>bold</b> and <i>italic</i>"),
        ("***both***", "<b><i>both</i></b>"),
        ("**a *b* c** *d **e***", "<b>a <i>b</i> c</b> <i>d </i><b><i>e</i></b>"),
        ("***a* b** ***c** d*", "<b><i>a</i> b</b> *<b>c</b> d*"),
        ("**a *b c**", "<b>a *b c</b>"),
        ("**a **b c**", "<b>a **b c</b>"),
        ("这是**重点**内容", "这是<b>重点</b>内容"),
        ("**a** **b**", "<b>a</b> <b>b</b>"),
        # no marks
        ("2*3*4 a**b**c x * y", "2*3*4 a**b**c x * y"),
        ("**open", "**open"),
        ("closed**", "closed**"),
        ("** a ** *\n*", "** a ** *\n*"),
        ("****a**** *****", "****a**** *****"),
        ("*a\nb*", "*a\nb*"),
        ("__init__ and _x_ ~~y~~", "__init__ and _x_ ~~y~~"),
        # what is escaped
        (r"\*a\* \`b\` \[c](d) \# \q \\", r"*a* `b` [c](d) # \q \\"),
        ("a < b & **c > d**", "a &lt; b &amp; <b>c &gt; d</b>"),
    ],
)
def test_bold_and_italic(text: str, html: str) -> None:
    assert _html(text) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`a < b`", "<code>a &lt; b</code>"),
        ("`**a** *b* [c](d)`", "<code>**a** *b* [c](d)</code>"),
        ("`` a`b `` ` ` `  c  `.", "<code>a`b</code> <code> </code> <code> c </code>."),
        ("``a` b", "``a` b"),
        ("`a\nb`", "`a\nb`"),
        ("**a `b` c**", "<b>a </b><code>b</code><b> c</b>"),
        ("*`b`*", "<code>b</code>"),
        ("`a **b` c**", "<code>a **b</code> c**"),
    ],
)
def test_code(text: str, html: str) -> None:
    assert _html(text) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
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
        ("```inline``` a", "<code>inline</code> a"),
        ("```\n  indented\n```", "<pre>  indented</pre>"),
    ],
)
def test_fences(text: str, html: str) -> None:
    assert _html(text) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# Title", "<b>Title</b>"),
        ("### Title ###\ntext", "<b>Title</b>\ntext"),
        ("# C#", "<b>C#</b>"),
        ("## A `b` **c** *d*", "<b>A </b><code>b</code><b> c <i>d</i></b>"),
        ("#hashtag\n####### seven\n    # code", "#hashtag\n####### seven\n    # code"),
        ("# #", "<b>#</b>"),
        ("#", "#"),
    ],
)
def test_headings(text: str, html: str) -> None:
    assert _html(text) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("[a](http://b/?c&d)", "a (http://b/?c&amp;d)"),
        ("![a](b.png)", "a (b.png)"),
        ("[a](<b>)", "a (b)"),
        ('[a](b "title")', "a (b)"),
        ("[a](https://b/c_(d))", "a (https://b/c_(d))"),
        ("[http://b](http://b)", "http://b"),
        ("**[`a`](b)**", "<code>a</code><b> (b)</b>"),
        ("[**a** b](c)", "<b>a</b> b (c)"),
        ("[`a](b)`]", "<code>a](b)</code>]".replace("<code>", "[<code>")),
        ("[a] (b) [c][d] [](e) [f]() [g](h i)", "[a] (b) [c][d] [](e) [f]() [g](h i)"),
        ("[[a](b)](c)", "[a (b)](c)"),
        ("[a](javascript:alert(1))", "a (javascript:alert(1))"),
    ],
)
def test_a_link_says_where_it_goes(text: str, html: str) -> None:
    assert _html(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "* one\n* two\n  * three\n1. four\n- [ ] five",
        "> quoted\n> more",
        "| a | b |\n|---|---|\n| c | d |",
        "---\n***\n___",
        "<b>html</b> &amp;",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert received(parse(_html(text))).text == text
    assert read_marks(text) == (text, [])


def test_a_line_beyond_all_bounds_has_no_marks() -> None:
    line = "**a** " * (LONGEST_LINE // 6) + "**b**"
    assert read_marks(f"{line}\n**c**")[0] == f"{line}\nc"


def test_a_fence_that_is_cut_is_two_fences() -> None:
    code = "\n".join(f"{'  ' * (number in (3, 4))}line_{number}  # <>" for number in range(6))
    pieces = compose(f"**Code:**\n```py\n{code}\n```\nDone.", capabilities=SMALL, markdown=True)
    assert [piece.html for piece in pieces] == [
        '<b>Code:</b>\n<pre><code class="language-py">line_0  # &lt;&gt;\nline_1  # &lt;&gt;</code></pre>',
        '<pre><code class="language-py">line_2  # &lt;&gt;\n  line_3  # &lt;&gt;</code></pre>',
        '<pre><code class="language-py">  line_4  # &lt;&gt;\nline_5  # &lt;&gt;</code></pre>\nDone.',
    ]


def test_bold_that_is_cut_is_bold_twice() -> None:
    text = "**Some words in bold, *and others, in italic* besides.**"
    assert [piece.html for piece in compose(text, capabilities=SMALL, markdown=True)] == [
        "<b>Some words in bold, <i>and others, in</i></b>",
        "<b><i>italic</i> besides.</b>",
    ]


def test_a_message_keeps_as_many_marks_as_telegram_reads() -> None:
    (piece,) = compose(
        "**a** *b* `c`\n" * 200, thinking="Hm.", seconds=2, capabilities=TELEGRAM, markdown=True
    )
    parsed = parse(piece.html)
    assert misnested(parsed) == ""
    assert len(parsed.entities) == 92
    assert below_quote(received(parsed)) == "a b c\n" * 199 + "a b c"


def test_what_is_written_is_marked_too() -> None:
    (piece,) = live("**a** and **b\n```\nc", capabilities=TELEGRAM, markdown=True)
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


@EXAMPLES
@given(DOCUMENTS)
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
