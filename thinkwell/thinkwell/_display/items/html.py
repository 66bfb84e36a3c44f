"""Nodes as HTML: without scripts and loaded files, and of a bounded length. Notebooks use it unchanged."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final, NewType, cast

from thinkwell._display import numbers
from thinkwell._display.items.nodes import by_line, parts_of
from thinkwell._display.tools import ICONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from thinkwell._display.items.nodes import Attributes, Node

Html = NewType("Html", str)
"""Text that is safe in a page. A plain string is not, and a type checker sees the difference."""

LEAST: Final = 200
"""Characters below which nothing is printed."""

_OTHERS: Final = {"completed": "✔", "denied": "⊘", "interrupted": "⊘", "ask": "?", "doing": "▸", "todo": "·"}
_MARKS: Final = dict[str, str](ICONS.items()) | _OTHERS
"""The character of a ``mark``."""

_ELEMENTS: Final[dict[str, str]] = {
    **dict.fromkeys(("form", "h2", "h3", "h4", "h5", "h6", "hr"), "div"),
    "a": "span",
    "marked": "mark",
    **{
        tag: tag
        for tag in (
            "blockquote", "code", "dd", "del", "details", "div", "dl", "dt", "em", "li", "ol", "p", "pre",
            "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
        )
    },
}  # fmt: skip
"""The elements for tags; others are left out. No such element loads or runs anything, and a heading of ours
would get into the notebook's table of contents."""

_CUT: Final = '<div class="tw-dim">… more is not shown</div>'
_ENTITY: Final = re.compile("&[a-z]*$")
_WORD: Final = re.compile("[a-z0-9_-]+")


def to_html(node: Node, limit: int, now: float = 0.0) -> Html:
    """Return a node as HTML.

    Args:
        node: The node.
        limit: Most characters. Omissions are marked.
        now: The second of the run until which a ``time`` counts.
    """
    if limit < LEAST:
        return Html("")
    printer = _Printer(limit - len(_CUT) - 1, now)
    html = printer.html(node)
    return Html(html + _CUT if printer.left < 0 else html)


class _Printer:
    """Prints nodes while there is room.

    Args:
        left: The remaining characters; less than 0: something was left out.
        now: The second of the run.
    """

    def __init__(self, left: int, now: float) -> None:
        self.left = left
        self._now = now

    def html(self, node: Node) -> str:
        """Return a node as HTML."""
        if isinstance(node, str):
            return self._text(node)
        tag, look, attributes, inner = parts_of(node)
        match tag:
            case "mark":
                return self._element("span", f"mark {look}", (_MARKS[look],))
            case "meter":
                full = round(10 * cast("float", attributes["value"]))
                return self._element("span", look, ("▰" * full + "▱" * (10 - full),))
            case "time":
                spent = self._now - cast("float", attributes["since"])
                return self._element("span", look, (numbers.seconds(spent),))
            case "br":
                return self._text("\n")
            case "lines" if "numbers" in attributes:
                return self._element("pre", look, _changed_lines(attributes))
            case "lines":
                return "".join(
                    self.html(("span", look, text) if look else text) for text, look in _pieces(attributes)
                )
            case _ if tag in _ELEMENTS and "button" not in look:
                return self._element(tag, look, inner, attributes.get("start"))
            case _:
                return ""

    def _text(self, text: str) -> str:
        if self.left < 0:
            return ""
        escaped = escape(text, quote=False)
        self.left -= len(escaped)
        if self.left >= 0:
            return escaped
        kept, self.left = escaped[: self.left], -1
        return f"{_ENTITY.sub('', kept)}…"

    def _element(self, tag: str, look: str, inner: Iterable[Node], start: object = None) -> str:
        name = _ELEMENTS[tag]
        words = _WORD.findall(look if tag == name else f"{look} {tag}")
        attributes = f' class="{" ".join(f"tw-{word}" for word in words)}"' if words else ""
        if tag == "ol" and isinstance(start, int):
            attributes += f' start="{start}"'
        if tag == "details" and "open" in words:
            attributes += " open"
        begin, end = f"<{name}{attributes}>", f"</{name}>"
        if self.left < len(begin) + len(end):
            self.left = -1
            return ""
        self.left -= len(begin) + len(end)
        return f"{begin}{''.join(map(self.html, inner))}{end}"


def _pieces(attributes: Attributes) -> Iterator[tuple[str, str]]:
    """Yield the pieces of ``lines``, each with its classes."""
    runs = iter(cast("Sequence[str | int]", attributes["runs"]))
    text, done = str(attributes["text"]), 0
    for length, look in zip(runs, runs, strict=True):
        end = done + int(length)
        yield text[done:end], str(look)
        done = end


def _changed_lines(attributes: Attributes) -> Iterator[Node]:
    """Yield the lines of a change, whose kind is visible without a style."""
    places = iter(cast("Sequence[Sequence[int | None]]", attributes["numbers"]))
    for (signed, look), *rest in by_line(_pieces(attributes)):
        before, after = next(places)
        number = before if after is None else after
        begin = "" if number is None else f"{number:>4} "
        by_mark = groupby(rest, key=lambda piece: "marked" in piece[1])
        words = ((is_marked, "".join(text for text, _ in pieces)) for is_marked, pieces in by_mark)
        inner = (("marked", "", text) if is_marked else text for is_marked, text in words)
        yield ("span", look, f"{begin}{signed[:1]} {signed[1:]}", *inner, "\n")
