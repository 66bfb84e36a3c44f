"""Pieces of HTML that hold nothing but our elements: whatever else goes in is escaped.

`Html` is a type of its own, so that a type checker sees where a plain string would get into a page unescaped.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final, Literal, NewType, TypeAlias

from thinkwell._display.text import clean, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Html = NewType("Html", str)
"""Text that is safe to put into a page."""

Element: TypeAlias = Literal[
    "b", "code", "del", "details", "div", "ins", "mark", "pre", "span",
    "summary", "table", "td", "th", "tr",
]  # fmt: skip
"""The elements that a page is made of. None of them loads or runs anything."""

NOTHING: Final = Html("")

_SCALES: Final = (1, 8, 64, 512)


def name(text: str, limit: int) -> Html:
    """Return a short text as HTML, on one line and cut at a number of characters."""
    return verbatim(line(text, max(limit, 8)))


def verbatim(text: str) -> Html:
    """Return as HTML what was made fit to be shown already."""
    return Html(escape(text, quote=False))


def joined(parts: Iterable[Html], between: str = "") -> Html:
    """Return the parts that are not empty as one, with a text of ours between them."""
    return Html(escape(between).join(part for part in parts if part))


def tag(element: Element, *parts: Html, kind: str = "", open_: bool = False) -> Html:
    """Return an element.

    Args:
        element: Which.
        parts: What is in it.
        kind: Its classes, words of ours.
        open_: Whether a ``details`` is unfolded.
    """
    attributes = (f' class="{kind}"' if kind else "") + (" open" if open_ else "")
    return Html(f"<{element}{attributes}>{''.join(parts)}</{element}>")


class Room:
    """The characters that are left for a page."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, part: Callable[[int], Html]) -> Html:
        """Return a part of the page, made smaller until it fits; nothing where it never does.

        Args:
            part: Makes it. It divides by its argument whatever bounds it.
        """
        for scale in _SCALES:
            html = part(scale)
            if len(html) <= self.left:
                self.left -= len(html)
                return html
        return NOTHING


def shortened(text: str, limit: int) -> str:
    """Return the beginning and the end of a text that is too long, and how much is missing."""
    cut = len(text) - limit
    if cut <= 0:
        return text
    head = limit * 3 // 4
    tail = limit - head
    return f"{text[:head]}\n… {cut:,} characters are not shown …\n{text[len(text) - tail :]}"


_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6} +(.*)")
_BULLET: Final = re.compile(r"^( *)[-*+] +(?=\S)", re.MULTILINE)
_INLINE: Final = re.compile(r"(`[^`\n]+`|\*\*[^*\n]+\*\*)")


def prose(text: str) -> Html:
    """Return what an agent has written, with the commonest marks of Markdown drawn.

    Those are code, headings, bullets and bold. Links, images and HTML stay the text that they are.
    """
    blocks: list[Html] = []
    for kind, lines in _blocks(clean(text).split("\n")):
        body = "\n".join(lines)
        if kind == "pre":
            blocks.append(tag("pre", verbatim(body), kind="tw-code"))
        elif body.strip("\n"):
            blocks.append(tag("div", _inline(body.strip("\n")), kind=f"tw-{kind}"))
    return joined(blocks)


def _blocks(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Divide lines into those of text, headings, and code or tables, which keep their columns."""
    kind, block, fence = "text", list[str](), ""
    for row in lines:
        opened = _FENCE.match(row)
        if fence:
            if opened and opened[1].startswith(fence) and not row.strip(" `~"):
                yield "pre", block
                kind, block, fence = "text", [], ""
            else:
                block.append(row)
            continue
        heading = _HEADING.fullmatch(row)
        found = "fence" if opened else "heading" if heading else "pre" if row.startswith("|") else "text"
        if found != kind or heading:
            yield kind, block
            kind, block = found, []
        if opened:
            kind, fence = "pre", opened[1]
        else:
            block.append(heading[1] if heading else row)
    yield kind, block


def _inline(text: str) -> Html:
    parts: list[Html] = []
    for part in _INLINE.split(_BULLET.sub(r"\1• ", text)):
        if len(part) > 2 and part[0] == part[-1] == "`":
            parts.append(tag("code", verbatim(part[1:-1])))
        elif len(part) > 4 and part.startswith("**") and part.endswith("**"):
            parts.append(tag("b", verbatim(part[2:-2])))
        else:
            parts.append(verbatim(part))
    return joined(parts)
