"""Markdown as nodes. Every text is clean; see `thinkwell._display.text`."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from markdown_it.common.utils import normalizeReference
from markdown_it.tree import SyntaxTreeNode

from thinkwell._display.items.code import coloured
from thinkwell._display.items.nodes import element, link, safe_link, text_of
from thinkwell._display.markdown_parser import block_parser, inline_tokens
from thinkwell._display.text import clean, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from thinkwell._display.items.nodes import Node, Tag

COLUMNS: Final = 50
"""Most columns of a table."""

_BLOCKS: Final = block_parser()

_LABEL: Final = re.compile(r"\[((?:[^\[\]\\]|\\.){1,999})\]", re.DOTALL)
_ADDRESS: Final = re.compile(r"(?<![^\W_])https?://[^\s<>\"'`|*]{1,2000}")
_ENDS: Final = ".,;:!?_~"
_TASK: Final = re.compile(r"\[([ xX])\] ")
_SIDES: Final = {"text-align:right": "right", "text-align:center": "middle"}

_MARKS: Final[dict[str, Tag]] = {"em": "em", "strong": "strong", "s": "del"}
_HEADINGS: Final[dict[str, Tag]] = {"h1": "h3", "h2": "h4", "h3": "h5"}
"""The page has headings above these."""


class References:
    """The named addresses of a text, for its links."""

    def __init__(self) -> None:
        self.env: dict[str, Any] = {"references": {}}

    def __contains__(self, label: str) -> bool:
        return label in self.env["references"]

    def __len__(self) -> int:
        return len(self.env["references"])

    def copy(self) -> References:
        """Return the same names, to which others may be added."""
        copied = References()
        copied.env["references"].update(self.env["references"])
        return copied

    def keep(self, others: References, before: int) -> None:
        """Take over the names that are defined before a line of `others`' text."""
        for label, reference in others.env["references"].items():
            if label not in self and reference["map"][1] <= before:
                self.env["references"][label] = reference


def blocks(source: str, references: References) -> list[SyntaxTreeNode]:
    """Return the blocks of a text, and add the names of addresses in it to `references`."""
    return SyntaxTreeNode(_BLOCKS.parse(source, references.env)).children


def prose(text: str) -> list[Node]:
    """Return a whole text as nodes."""
    references = References()
    return [draw(block, references) for block in blocks(clean(text), references)]


def lines_of(block: SyntaxTreeNode) -> tuple[int, int]:
    """Return the first line of a block, and the line after it."""
    assert block.map is not None, "it is not a block"
    return block.map


def labels_of(source: str) -> set[str]:
    """Return possible names of addresses in a text."""
    return {normalizeReference(found) for found in _LABEL.findall(source)}


# Blocks


def draw(block: SyntaxTreeNode, references: References) -> Node:
    """Return a block as a node, with its contents."""
    match block.type:
        case "paragraph":
            return element("p", "", *inline(content_of(block), references))
        case "heading":
            return element(_HEADINGS.get(block.tag, "h6"), "", *inline(content_of(block), references))
        case "fence" | "code_block":
            lang = language(block)
            return code(block, coloured(block.content.removesuffix("\n"), lang))
        case "hr":
            return element("hr")
        case "blockquote":
            return element("blockquote", "", *_drawn(block.children, references))
        case "bullet_list" | "ordered_list":
            return list_of(block, *(item(each, references) for each in block.children))
        case "table":
            return table_of(block, references, *(row(each, references) for each in rows(block)))
        case other:
            raise AssertionError(other)  # pragma: no cover - the parser makes no other


def _drawn(blocks: Iterable[SyntaxTreeNode], references: References) -> Iterator[Node]:
    return (draw(block, references) for block in blocks)


def content_of(block: SyntaxTreeNode) -> str:
    """Return the text in a block, with its marks."""
    return block.children[0].content


def language(block: SyntaxTreeNode) -> str:
    """Return the language that a block of code names."""
    return line(block.info.split(maxsplit=1)[0], 30) if block.info.strip() else ""


def code(block: SyntaxTreeNode, *inner: Node) -> Node:
    """Return code around its lines."""
    lang = language(block)
    return element("pre", "code", *inner, attributes={"lang": lang} if lang else None)


def list_of(block: SyntaxTreeNode, *inner: Node) -> Node:
    """Return a list around its items. Those with room between them look the same as others."""
    start = block.attrs.get("start")
    tag: Tag = "ol" if block.type == "ordered_list" else "ul"
    return element(tag, "", *inner, attributes=None if start is None else {"start": start})


def item(block: SyntaxTreeNode, references: References) -> Node:
    """Return an item of a list."""
    inner = list(_drawn(block.children, references))
    task = None
    if block.children and block.children[0].type == "paragraph":
        task = _TASK.match(content_of(block.children[0]))
    if task is None:
        return element("li", "", *inner)
    first = inline(content_of(block.children[0])[task.end() :], references)
    box = "☐ " if task[1] == " " else "☑ "
    return element("li", "task", element("p", "", box, *first), *inner[1:])


def rows(block: SyntaxTreeNode) -> list[SyntaxTreeNode]:
    """Return the rows of a table below its head."""
    return [each for body in block.children[1:] for each in body.children]


def table_of(block: SyntaxTreeNode, references: References, *inner: Node) -> Node:
    """Return a table around its rows."""
    head = (row(each, references) for each in block.children[0].children)
    return element("table", "", element("thead", "", *head), element("tbody", "", *inner))


def row(block: SyntaxTreeNode, references: References) -> Node:
    """Return a row of a table."""
    return element("tr", "", *(_cell(each, references) for each in block.children[:COLUMNS]))


def _cell(block: SyntaxTreeNode, references: References) -> Node:
    look = _SIDES.get(str(block.attrs.get("style")), "")
    return element("th" if block.type == "th" else "td", look, *inline(content_of(block), references))


# Contents of a block


def inline(content: str, references: References) -> list[Node]:
    """Return the marks in a text: emphasis, code and links."""
    tokens = inline_tokens(content, references.env)
    if tokens is None:
        return [content] if content else []
    return _joined(_marks(SyntaxTreeNode(tokens).children, links=True)) if tokens else []


def _marks(marks: Sequence[SyntaxTreeNode], *, links: bool) -> Iterable[Node]:
    return chain.from_iterable(_mark(mark, links=links) for mark in marks)


def _mark(mark: SyntaxTreeNode, *, links: bool) -> Iterable[Node]:
    match mark.type:
        case "text":
            return _addresses(mark.content) if links else (mark.content,)
        case "text_special":  # an escape, or an entity
            return (mark.content,)
        case "code_inline":
            return (element("code", "", mark.content),)
        case "softbreak":
            return ("\n",)
        case "hardbreak":
            return (element("br"),)
        case "link":
            return link(str(mark.attrs["href"]), *_joined(_marks(mark.children, links=False)))
        case "image":
            name = text_of(*_marks(mark.children, links=False)) or "without a name"
            return link(str(mark.attrs["src"]), f"image: {name}") if links else (f"image: {name}",)
        case _:
            return (element(_MARKS[mark.type], "", *_joined(_marks(mark.children, links=links))),)


def _joined(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes with neighbouring texts joined."""
    joined: list[Node] = []
    for node in nodes:
        if isinstance(node, str) and joined and isinstance(joined[-1], str):
            joined[-1] += node
        else:
            joined.append(node)
    return joined


def _addresses(text: str) -> Iterator[Node]:
    """Return a text with links for web addresses in it."""
    done = 0
    for found in _ADDRESS.finditer(text):
        url = _without_ends(found[0])
        if safe_link(url) is None:
            continue
        yield text[done : found.start()]
        yield from link(url, url)
        done = found.start() + len(url)
    yield text[done:]


def _without_ends(url: str) -> str:
    """Return an address without the punctuation of its sentence."""
    while True:
        shorter = url.rstrip(_ENDS)
        for opening, closing in ("()", "[]"):
            if shorter.endswith(closing) and opening not in shorter:
                shorter = shorter[:-1]
        if shorter == url:
            return url
        url = shorter
