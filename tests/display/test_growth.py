"""A text of Markdown that grows comes to the same as the whole, however it is cut, and sends little twice."""

from __future__ import annotations

import json
import re
from html import escape
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import pytest
import tried
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from thinkwell import events as ev

# Private: the items that a server sends come at moments of its own; here each piece is followed.
from thinkwell._display.items.growth import GrowingText
from thinkwell._display.items.nodes import ATTRIBUTES, safe_link, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Parts = dict[tuple[int, ...], Any]

TAGS = frozenset(
    (
        *("a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "lines", "ol"),
        *("p", "pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
    )
)


def grown(pieces: Sequence[str]) -> tuple[Parts, int]:
    """The parts of a text in the end, and the characters of all that was told of them."""
    text, parts, told = GrowingText(), Parts(), 0
    for piece in [*pieces, None]:
        if piece is not None:
            text.add(piece)
        for part in text.flush() if piece is not None else text.end():
            told += len(json.dumps(part.node, separators=(",", ":"))) + 40
            if part.node is None:
                del parts[part.path]
            else:
                parts[part.path] = part.node
    return parts, told


def cut(text: str, size: int) -> list[str]:
    return [text[begin : begin + size] for begin in range(0, len(text), size)]


def whole(text: str) -> Parts:
    text_ = GrowingText()
    text_.add(text)
    return {part.path: part.node for part in text_.end()}


def drawn(text: str) -> list[Any]:
    """The blocks of a text, with their parts where they belong."""
    parts = whole(text)

    def filled(node: Any, path: tuple[int, ...]) -> list[Any]:
        if isinstance(node, str | dict):
            return [node]
        tag, look, *inner = node
        if tag == "slot":
            return [one for key in sorted(parts) if key[:-1] == path for one in filled(parts[key], key)]
        return [[tag, look, *(one for each in inner for one in filled(each, path))]]

    return [one for key in sorted(parts) if len(key) == 1 for one in filled(parts[key], key)]


def short(text: str) -> list[Any]:
    """The same as texts, and lists of a tag and what is in it."""

    def of(node: Any) -> Any:
        if isinstance(node, str):
            return node
        if node[0] == "lines":
            return node[2]["text"]
        return [node[0], *(of(each) for each in node[2:] if not isinstance(each, dict))]

    return [of(node) for node in drawn(text)]


def is_element(node: Any) -> TypeGuard[list[Any]]:
    return isinstance(node, list)


def elements(nodes: Sequence[Any]) -> Iterator[Any]:
    for node in nodes:
        if is_element(node):
            yield node
            yield from elements(node[2:])


MARKS = [
    *"*_`~#=|[]()>\\<\"'a:",
    *("**", "```", "```py\n", "~~~", "- ", "+ ", "1. ", "2) ", "- [ ] ", "| a | b |", "|-|-|", "---", "==="),
    *("[a]", "[a]: /u", "[b]: <x> 'ti", "tle'", "![i](x)", "[l](http://e.x)", "http://e.x/a_b."),
    *("&amp;", "<b>"),
    *("\n", "\n", "\n\n", "\r\n", "\r", " ", "  ", "    ", "\t", "\x1b[31m", "e\u0301", "\u0301", "word "),
]

pieces = st.lists(st.lists(st.sampled_from(MARKS), min_size=1, max_size=8).map("".join), max_size=30)


@tried.tried(pieces, few=100, many=5_000)
def test_the_parts_of_a_growing_text_are_those_of_the_whole(pieces: list[str]) -> None:
    assert grown(pieces)[0] == whole("".join(pieces))


@tried.tried(
    st.lists(st.sampled_from([*"*-+_`~#=|[]():\n\n  >1.a\\<'"]), max_size=60).map("".join),
    st.integers(1, 4),
    few=50,
    many=3_000,
)
def test_so_are_those_of_a_text_that_is_nothing_but_marks(text: str, size: int) -> None:
    assert grown(cut(text, size))[0] == whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "- one\n*\n**bold** goes on",
        "a | b\n--|\n--|--\n1 | 2",
        "See [later].\n\nMore.\n\n[later]: https://example.com\n",
        "| [later] | b |\n|---|---|\n| 1 | [later] |\n\n[later]: https://example.com\n",
        "- see [later]\n- two\n- three\n\nText.\n\n[later]: https://example.com\n",
        "[a]: /url\n'a title\nthat goes on' \n\n[a]",
        "Text [a].\n\n[a]: https://example.com",
        "- one\n- two\n\n- three, with room\n\n  and more",
        "Title\n- list\n===\nand | more\n---|---\nrow",
        "".join(f"{number}. item {number}\n" for number in range(60)),
        "| a | b |\n|---|---|\n" + "".join(f"| {number} | `x` |\n" for number in range(60)),
        "```python\n" + '"""A text\n' * 70 + "```\nafter",
        "A long paragraph. " * 250 + "\n\nAfter.",
        "one\r\ntwo\rthree\n\x1b[1mbold\x1b[0m \x1b]0;a\ntitle\x07e" + "\u0301" * 20 + "\n\u0301x",
    ],
    ids=[
        "an unfinished line",
        "a table that is no table yet",
        "a link that is defined later",
        "one in the head of a table",
        "one in a list",
        "a title on more lines",
        "a definition at the end",
        "a list with room",
        "blocks that become fewer",
        "a long list",
        "a long table",
        "long code",
        "a long paragraph",
        "what terminals obey",
    ],
)
@pytest.mark.parametrize("size", [3, *(pytest.param(size, marks=pytest.mark.long) for size in (1, 17))])
def test_what_makes_another_thing_of_the_text_before_it(text: str, size: int) -> None:
    assert grown(cut(text, size))[0] == whole(text)


def test_a_control_sequence_that_is_too_long_to_wait_for_is_dropped() -> None:
    text = f"Before\x1b[{'1' * 25_000}mafter"
    assert grown(cut(text, 3_000))[0] == whole(text) == whole("Beforeafter")


def test_a_closed_block_is_told_once() -> None:
    text = GrowingText()
    text.add("One.\n\n```\ncode\n```\n\nTw")
    first = {part.path for part in text.flush()}
    text.add("o and\n\nthree")
    assert first == {(0,), (1,), (1, 0), (2,)}
    assert {part.path for part in text.flush()} == {(2,), (3,)}


@pytest.mark.parametrize(
    ("begin", "text"),
    [
        ("", "Words of a paragraph, **some** of them bold. " * 3 + "\n\n"),
        ("", "- an item of a list\n"),
        ("| a | b |\n|---|---|\n", "| a cell | another cell |\n"),
        ("```python\n", "x = call(argument)  # code\n"),
        ("", "A paragraph without an end. "),
    ],
    ids=["paragraphs", "list", "table", "code", "one paragraph"],
)
def test_what_is_told_of_a_long_text_is_not_much_more_than_its_events(begin: str, text: str) -> None:
    long = begin + text * (20_000 // len(text))
    events = [ev.Message(content=ev.TextContent(text=piece), seq=1_000, at=10.125) for piece in cut(long, 22)]
    _, told = grown(cut(long, 66))  # three events at a time
    assert told < 1.5 * sum(len(ev.event_to_json(event)) + len("id: 1000\ndata: \n\n") for event in events)


TEXTS = [
    "One\ntwo\n\n## Head ##\n---\n> said\n> so",
    "a *b* **c `d*` e** ~~f~~ \\*g\\* snake_case_name",
    "- one\n- two\n  - inner\n    more\n\n3. three\n4. four\n\n   still four",
    "| a | b |\n|---|--:|\n| 1 | `x\\|y` |\n| only |\n\nAfter.",
    "```python title\nx = '<b>'\n```\n\n    indented\n    code\n",
    "> - a\n>   > b\n>\n> c\n\n***\nTitle\n===\n1) a\n1) b",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_nodes_are_what_the_parser_makes_of_it_as_html(text: str) -> None:
    tags = {"h1": "h3", "h2": "h4", "s": "del"}
    html = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).render(text)
    html = re.sub(r"<(/?)(\w+)[^>]*>", lambda found: f"<{found[1]}{tags.get(found[2], found[2])}>", html)

    def printed(node: Any) -> str:
        if isinstance(node, str):
            return escape(node, quote=False)
        tag, *inner = node
        return f"<{tag}>{''.join(map(printed, inner))}</{tag}>"

    def bare(text: str) -> str:  # items of lists without room have no paragraphs in HTML; code stands in code
        return re.sub(r"</?(p|code)>|\s|</hr>", "", text)

    assert bare("".join(map(printed, short(text)))) == bare(html.replace("<hr />", "<hr>"))


def test_emphasis_code_deletions_and_escapes() -> None:
    assert short("a *b* **c `d*` e** ~~f~~ \\*g\\* 2*3*4 a * b") == [
        [
            *["p", "a ", ["em", "b"], " ", ["strong", "c ", ["code", "d*"], " e"], " ", ["del", "f"]],
            *[" *g* 2", ["em", "3"], "4 a * b"],
        ]
    ]


def test_lists_have_boxes_and_begin_where_they_say() -> None:
    assert short("- [x] done\n- [ ] open") == [
        ["ul", ["li", ["p", "☑ ", "done"]], ["li", ["p", "☐ ", "open"]]],
    ]
    assert drawn("3. three")[0][2] == {"start": 3}


def test_tables_have_sides() -> None:
    (table,) = drawn("| a | b |\n|---|--:|\n| 1 | `x\\|y` |")
    assert short("| a | b |\n|---|--:|\n| 1 | `x\\|y` |") == [
        [
            *["table", ["thead", ["tr", ["th", "a"], ["th", "b"]]]],
            ["tbody", ["tr", ["td", "1"], ["td", ["code", "x|y"]]]],
        ]
    ]
    assert table[2][2][3][1] == "right"


def test_links_lead_to_the_web_or_to_a_mailbox_and_tell_where() -> None:
    assert short('[docs](https://example.com/a_(b) "title")') == [
        ["p", ["a", "docs"], ["span", " (example.com)"]],
    ]
    assert short("https://example.com/x?y=1. (see https://a.example)") == [
        ["p", ["a", "https://example.com/x?y=1"], ". (see ", ["a", "https://a.example"], ")"],
    ]
    assert short("<https://example.com> [mail](mailto:ada@example.com)") == [
        ["p", ["a", "https://example.com"], " ", ["a", "mail"], ["span", " (ada@example.com)"]],
    ]
    assert short("[example.com](https://example.com)") == [["p", ["a", "example.com"]]]
    assert short("[https://bank.example](https://evil.example)") == [
        ["p", ["a", "https://bank.example"], ["span", " (evil.example)"]],
    ]
    assert short("[ ](https://evil.example)") == [
        ["p", ["a", "https://evil.example"], ["span", " (evil.example)"]],
    ]


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc"),
        *("//x", "/x", "https:\\\\x", "http://", "https://a/" + 4_000 * "b"),
    ],
)
def test_what_is_no_such_link_is_a_text(url: str) -> None:
    assert safe_link(url) is None
    assert [each for each in elements(drawn(f"[go]({url})")) if each[0] == "a"] == []
    assert "go" in text_of(*map(str, short(f"[go]({url})")))


def test_pictures_are_links_and_load_nothing() -> None:
    assert short("![a cat](https://example.com/cat.png) ![](https://example.com/x)") == [
        [
            *["p", ["a", "image: a cat"], ["span", " (example.com)"], " "],
            *[["a", "image: without a name"], ["span", " (example.com)"]],
        ]
    ]


def test_html_is_a_text() -> None:
    text = "<script>alert(1)</script>\n<img src=x onerror=alert(1)>"
    assert short(text) == [["p", text]]


def test_code_has_the_looks_of_its_language() -> None:
    (code,) = drawn("```python\ndef f(): return 'x'  # done\n```")
    text, runs = code[3][2]["text"], code[3][2]["runs"]
    looks = dict(zip(runs[1::2], runs[::2], strict=True))
    assert text == "def f(): return 'x'  # done\n"
    assert looks.keys() == {"keyword", "", "function", "string", "comment"}
    assert drawn("```klingon\nx\n```")[0][3] == "x\n"


@tried.tried(st.lists(st.sampled_from(MARKS), max_size=60).map("".join), few=200, many=3_000)
def test_tags_and_attributes_are_ours_whatever_is_written(text: str) -> None:
    for tag, _, *inner in elements(drawn(text)):
        assert tag in TAGS
        for each in inner:
            attributes = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
            assert attributes.keys() <= ATTRIBUTES
            if "href" in attributes:
                assert safe_link(attributes["href"])


def test_nothing_of_a_text_is_lost_but_its_marks() -> None:
    text = "One **two** three [four](https://five.example)\n\n- six\n- seven\n\n| eight |\n|---|\n| nine |"
    shown = str(short(text))
    words = ("One", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    assert [word for word in words if word not in shown] == []


def test_marks_within_marks_beyond_all_bounds_stay_as_they_were_written() -> None:
    text = "*" * 9_999 + "a" + "*" * 9_999
    assert short(text) == [["p", text]]


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        *("*a " * 30_000, "[" * 60_000, "`" * 30_000 + "a", "> " * 20_000, "- " * 20_000, "_a_b" * 20_000),
        *("a|" * 20_000 + "\n" + "|-" * 20_000, "**a*" * 20_000, "<https://" * 9_000, "\n" * 90_000),
        "a" + " " * 60_000 + "#",
        *("![](" * 20_000, "` `` " * 9_000, "[a]: /u\n" * 9_000, "\x1b[" * 30_000, "\x1b]0;" * 20_000),
    ],
    ids=lambda text: repr(text[:8]),
)
def test_bad_texts_take_no_longer_than_others(text: str) -> None:
    begun = perf_counter()
    whole(text)
    assert perf_counter() - begun < 5
