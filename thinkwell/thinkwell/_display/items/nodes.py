"""Nodes: the contents of a run as trees of elements and texts, from closed lists.

A node is a text or ``(tag, class, attributes?, *children)``. The page makes elements from it, and notebooks
and reports get it as HTML. No node contains HTML, and none loads or runs anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from thinkwell._display.text import exact, line
from thinkwell._display.urls import url_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from thinkwell.events import JsonValue

Node: TypeAlias = "str | tuple[Part, ...]"
"""A text, or an element."""

Attributes: TypeAlias = "Mapping[str, JsonValue]"

Part: TypeAlias = "str | Attributes | Node"

Tag: TypeAlias = Literal[
    "a", "blockquote", "br", "button", "code", "dd", "del", "details", "div", "dl", "dt", "em", "form",
    "h2", "h3", "h4", "h5", "h6", "hr", "icon", "img", "li", "lines", "mark", "meter", "ol", "p", "pre",
    "slot", "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "time", "tr", "ul",
]  # fmt: skip
"""The elements. Those that HTML does not have:

- ``slot``: the place of the items whose parent its class names, or else the item itself. The page's elements
  with one contain nothing else;
- ``lines``: ``text`` with ``runs`` of characters that have a style, as ``[length, class, length, class, …]``;
- ``icon``: a picture of ours, called by its class;
- ``mark``: a picture of how far something is, by its class, with a name for those who do not see it.
"""

ATTRIBUTES: Final = frozenset((
    "asks", "at", "data", "deadline", "does", "fields", "href", "id", "label", "lang", "name", "numbers",
    "options", "path", "runs", "since", "start", "text", "type", "url", "value",
))  # fmt: skip
"""The attributes of all elements. A page uses those that it supports for a tag."""

URL: Final = 4_000
"""Most characters of an address in a link."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_UNFIT: Final = re.compile(r"[\x00-\x20\x7f-\x9f]")


def element(tag: Tag, look: str = "", *children: Node, attributes: Attributes | None = None) -> Node:
    """Return an element.

    Args:
        tag: Its tag.
        look: Its classes, of our own names.
        children: Its contents. Empty texts are left out.
        attributes: Its attributes, of `ATTRIBUTES`.
    """
    inner = filter(None, children) if "" in children else children
    return (tag, look, *inner) if attributes is None else (tag, look, attributes, *inner)


def styled(pieces: Iterable[tuple[str, str]], look: str = "") -> Node:
    """Return a text whose pieces have their own styles.

    Args:
        pieces: Each text with its classes.
        look: The classes of the whole.
    """
    text: list[str] = []
    runs: list[str | int] = []
    for piece, own in pieces:
        if not piece:
            continue
        text.append(piece)
        if runs and runs[-1] == own:
            runs[-2] = int(runs[-2]) + len(piece)
        else:
            runs += [len(piece), own]
    if len(runs) == 2 and not runs[1] and not look:
        return "".join(text)
    return element("lines", look, attributes={"text": "".join(text), "runs": runs}) if text else ""


def by_line(pieces: Iterable[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Return the pieces of each line of a text, without the line ends."""
    lines: list[list[tuple[str, str]]] = [[]]
    for piece, look in pieces:
        first, *others = piece.split("\n")
        lines[-1].append((first, look))
        lines += ([(other, look)] for other in others)
    return lines


def parts_of(node: tuple[Part, ...]) -> tuple[str, str, Attributes, list[Node]]:
    """Return the tag of an element, its classes, its attributes, and its contents."""
    tag, look, *rest = node
    attributes: Attributes = {}
    if rest and not isinstance(rest[0], (str, tuple)):
        attributes = rest[0]
    return str(tag), str(look), attributes, [part for part in rest if isinstance(part, (str, tuple))]


def filled(node: Node, parts: Sequence[Node], *, is_open: bool = False) -> Node:
    """Return a node with parts in its slot.

    Args:
        node: The node.
        parts: The contents of the slot.
        is_open: Whether it is unfolded: its ``details`` get the class ``open``.
    """
    if isinstance(node, str):
        return node
    tag, look, attributes, inner = parts_of(node)
    placed: list[Node] = []
    for each in inner:
        placed += filter(None, parts) if each[:1] == ("slot",) else [filled(each, parts, is_open=is_open)]
    if is_open and tag == "details":
        look += " open"
    return (tag, look, attributes, *placed)


def text_of(*nodes: Node) -> str:
    """Return the readable text of nodes."""
    return "".join(map(_text, nodes))


def _text(node: Node) -> str:
    if isinstance(node, str):
        return node
    tag, _, attributes, inner = parts_of(node)
    return str(attributes["text"]) if tag == "lines" else text_of(*inner)


def safe_link(url: str) -> str | None:
    """Return an address for a link: of the web, or of a mailbox; ``None`` for others."""
    found = _SCHEME.match(url)
    if found is None or len(url) > URL or _UNFIT.search(url):
        return None
    scheme = found[1].lower()
    if scheme == "mailto" or (scheme in ("http", "https") and url_host(url)):
        return url
    return None


def link(url: str, *inner: Node) -> Iterable[Node]:
    """Return a link with its host, unless its text shows it.

    A link whose text differs from its target can deceive. An address that may not be a link becomes text.
    """
    says = text_of(*inner)
    if safe_link(url) is None:
        return (*inner, "" if says == url else f" ({exact(url)})")
    leads = url_host(url) or url.partition(":")[2]
    anchor = element("a", "", *(inner if says.strip() else (line(url),)), attributes={"href": url})
    if says in (url, leads):
        return (anchor,)
    return (anchor, element("span", "host", f" ({line(leads, 300)})"))
