"""Markdown text while it grows: finished parts are sent once, and only the open end again.

The text is drawn in parts: its blocks, the items of a list, the rows of a table, eight lines of code, some
characters of a long paragraph. Only complete lines close a part: an unfinished line may change the meaning of
the text above it. Closed parts are not parsed again. However a text is cut into pieces, its parts are the
same in the end.
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell._display.items import markdown as md
from thinkwell._display.items.code import coloured_lines
from thinkwell._display.items.nodes import element
from thinkwell._display.text import clean, settled, unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.tree import SyntaxTreeNode

    from thinkwell._display.items.nodes import Node

CODE: Final = 8
"""Lines of code in a part."""

PARAGRAPH: Final = 2_000
"""Characters from which on a paragraph grows in parts, without its marks until it has ended."""

CHUNK: Final = 160
"""Characters of such a part."""

_PLAIN: Final = re.compile(r" {0,3}([^\W\d_](?:[^\W_]|[ ,.:;'\"()?!%–—’“”…-])*)")
"""A line of text without anything that means something in Markdown, as most thoughts are.

Each character matches in one way only, so that a hostile line takes no longer than others."""

_FENCE_END: Final = re.compile(r"(`{3,}|~{3,})[ \t]*")

SLOT: Final = element("slot")


class TextPart(Struct, frozen=True):
    """The current state of a part of a text."""

    path: tuple[int, ...]
    """The number of its block, and for a part of a block also its number there."""
    node: Node | None
    """Its node, with a ``slot`` for its own parts; ``None``: it was removed."""


class GrowingText:
    """A growing text.

    Add new text, take the changes with `flush`, and the rest with `end`.
    """

    def __init__(self) -> None:
        self._raw = ""
        """The text from the first line whose meaning may still change."""
        self._begun = False
        """Whether there is something before it."""
        self._source = ""
        """The complete lines after the closed parts. The head of an open table or of open code stays."""
        self._references = md.References()
        """The names of addresses that are defined in closed parts."""
        self._number = 0
        """The number of closed blocks."""
        self._parts = 0
        """The number of closed parts of the first open block."""
        self._head: SyntaxTreeNode | None = None
        """The state of that block when its first part was closed."""
        self._code = ""
        """Its closed code."""
        self._shown: dict[tuple[int, ...], Node] = {}
        """The open parts, as last sent."""
        self._waiting: dict[str, list[_Part]] = {}
        """Closed parts by a possible name in them that is not yet defined."""
        self._told: list[TextPart] = []

    def add(self, text: str) -> None:
        """Add a piece, as the agent sent it."""
        self._raw += text

    def flush(self) -> list[TextPart]:
        """Return the changes since the last call, parents before their parts."""
        cut = settled(self._raw)
        complete, self._raw = self._raw[:cut], self._raw[cut:]
        if complete:
            self._source += self._clean(complete)
            self._begun = True
            self._close()
        self._draw(self._source + self._clean(self._raw[: unfinished(self._raw)]))
        return self._taken()

    def end(self) -> list[TextPart]:
        """Return the changes at the end of the text."""
        rest, self._raw = self._clean(self._raw), ""
        self._begun = self._begun or bool(rest)
        self._source += rest
        plain = None if self._number or self._parts else _PLAIN.fullmatch(self._source)
        if plain is not None:
            self._end(_Part((0,), element("p", "", plain[1].rstrip(" "))), self._references)
        elif self._source:
            self._source += "\n"
            self._close(over=True)
        self._draw("")
        return self._taken()

    def _taken(self) -> list[TextPart]:
        told, self._told = self._told, []
        return told

    def _clean(self, text: str) -> str:
        # A combining mark at the start combines with a line end here, as in the whole text.
        return clean(f"\n{text}")[1:] if self._begun else clean(text)

    # Closed parts

    def _close(self, *, over: bool = False) -> None:
        references = self._references.copy()
        blocks = md.blocks(self._source, references)
        lines = self._source.split("\n")
        head: list[str] = []
        done = 0
        for number, block in enumerate(blocks, 1):
            if number == len(blocks) and not over and not _has_ended(block, lines):
                head, done = self._close_parts(block, lines, references, done)
                break
            for part in self._parts_of(block, 0, lines, references):
                self._end(part, references)
            if block.type == "fence":
                for part in self._coloured(block):
                    self._end(part, references)
            self._number += 1
            self._parts, self._head, self._code = 0, None, ""
            done = md.lines_of(block)[1]
        self._draw_waiting(references)
        self._references.keep(references, done)
        self._source = "\n".join([*head, *lines[done:]]).lstrip("\n")

    def _close_parts(
        self, block: SyntaxTreeNode, lines: list[str], references: md.References, done: int
    ) -> tuple[list[str], int]:
        """Close the finished parts of the open block.

        Returns:
            The lines of the block that are parsed again with the rest, and the first line of the rest.
        """
        begin, end = md.lines_of(block)
        closed = head = rest = 0
        match block.type:
            case "bullet_list" | "ordered_list":
                closed = len(block.children) - 1
                rest = md.lines_of(block.children[-1])[0]
            case "table":
                closed, head, rest = len(md.rows(block)) - 1, 2, end - 1
            case "fence":
                closed, head = (end - begin - 1) // CODE, 1
                rest = begin + 1 + closed * CODE
            case _:
                pass
        if closed <= 0:
            return [], done
        for part in islice(self._parts_of(block, 0, lines, references), 1, closed + 1):
            self._end(part, references)
        if block.type == "fence":
            self._code += "".join(islice(_code_lines(block), closed * CODE))
        self._head = self._head or block
        self._parts += closed
        return lines[begin : begin + head], rest

    def _end(self, part: _Part, references: md.References) -> None:
        self._tell(part.path, part.node)
        self._shown.pop(part.path, None)
        for label in md.labels_of(part.source) if "[" in part.source else ():
            if label not in references:
                self._waiting.setdefault(label, []).append(part)

    def _coloured(self, block: SyntaxTreeNode) -> Iterator[_Part]:
        """Return the parts of ended code, with syntax colours. Closed ones are sent again."""
        language = md.language(block)
        if not language:
            return
        code = self._code + "".join(_code_lines(block))
        for place, node in enumerate(coloured_lines(code, language, CODE)):
            if not isinstance(node, str):
                yield _Part((self._number, place), node)

    def _draw_waiting(self, references: md.References) -> None:
        """Redraw closed parts with names that are defined only now."""
        if not self._waiting or len(references) == len(self._references):
            return
        parts: dict[tuple[int, ...], _Part] = {}
        for label in [label for label in self._waiting if label in references]:
            parts |= {part.path: part for part in self._waiting.pop(label)}
        for path, part in parts.items():
            (block,) = md.blocks(part.source, references.copy())
            drawn = [*_parts_of(block, path[0], part.source.split("\n"), references)]
            self._tell(path, drawn[len(path) - 1].node)

    # Open parts

    def _draw(self, source: str) -> None:
        shown: dict[tuple[int, ...], Node] = {}
        if source.strip():
            references = self._references.copy()
            lines = source.split("\n")
            blocks = md.blocks(source, references)
            for number, block in enumerate(blocks):
                parts = self._parts_of(block, number, lines, references)
                if block.type == "paragraph" and number == len(blocks) - 1:
                    parts = _long(block, self._number + number) or parts
                shown |= {part.path: part.node for part in parts}
        for path in [path for path in self._shown if path not in shown]:
            self._told.append(TextPart(path, None))
        for path, node in shown.items():
            self._tell(path, node)
        self._shown = shown

    def _tell(self, path: tuple[int, ...], node: Node) -> None:
        if self._shown.get(path) != node:
            self._told.append(TextPart(path, node))

    def _parts_of(
        self, block: SyntaxTreeNode, behind: int, lines: list[str], references: md.References
    ) -> Iterator[_Part]:
        """Return an open block and its parts. Some of the first one may be closed."""
        number = self._number + behind
        if behind or not self._parts:
            return _parts_of(block, number, lines, references)
        return _parts_of(block, number, lines, references, self._parts, self._head)


class _Part(Struct):
    path: tuple[int, ...]
    node: Node
    source: str = ""
    """The source for redrawing when a name in it is defined; empty if it has none."""


def _parts_of(
    block: SyntaxTreeNode,
    number: int,
    lines: Sequence[str],
    references: md.References,
    first: int = 0,
    head: SyntaxTreeNode | None = None,
) -> Iterator[_Part]:
    """Return a block, and then its parts, if it has some.

    Args:
        block: The block.
        number: Its number.
        lines: Its source text.
        references: The defined names.
        first: The number of its closed parts, which are not in that text.
        head: Its state when the first of these was closed.
    """
    begin, end = md.lines_of(block)
    match block.type:
        case "bullet_list" | "ordered_list":
            yield _Part((number,), md.list_of(head or block, SLOT))
            for place, item in enumerate(block.children, first):
                source = "\n".join(lines[slice(*md.lines_of(item))])
                yield _Part((number, place), md.item(item, references), source)
        case "table":
            table = "\n".join(lines[begin : begin + 2])
            yield _Part((number,), md.table_of(block, references, SLOT), table)
            for place, row in enumerate(md.rows(block), first):
                source = "\n".join((table, *lines[slice(*md.lines_of(row))]))
                yield _Part((number, place), md.row(row, references), source)
        case "fence":
            yield _Part((number,), md.code(block, SLOT))
            code = _code_lines(block)
            place = first
            while part := "".join(islice(code, CODE)):
                yield _Part((number, place), part)
                place += 1
        case _:
            yield _Part((number,), md.draw(block, references), "\n".join(lines[begin:end]))


def _long(block: SyntaxTreeNode, number: int) -> Iterator[_Part] | None:
    """Return a paragraph and its parts, if it is long enough to have some."""
    text = md.content_of(block)
    if len(text) <= PARAGRAPH:
        return None
    chunks = (text[begin : begin + CHUNK] for begin in range(0, len(text), CHUNK))
    parts = (_Part((number, place), chunk) for place, chunk in enumerate(chunks))
    return chain((_Part((number,), element("p", "", SLOT)),), parts)


def _code_lines(block: SyntaxTreeNode) -> Iterator[str]:
    return (f"{line}\n" for line in block.content.removesuffix("\n").split("\n") if block.content)


def _has_ended(block: SyntaxTreeNode, lines: Sequence[str]) -> bool:
    """Return whether no further line can belong to a block. The last line is incomplete."""
    begin, end = md.lines_of(block)
    match block.type:
        case "heading" | "hr":
            return True
        case "fence":
            last = _FENCE_END.fullmatch(lines[end - 1].strip(" "))
            return end - begin > 1 and last is not None and last[1].startswith(block.markup)
        case "paragraph" | "table" | "blockquote":
            return end < len(lines) - 1 and not lines[end].strip()
        case _:
            return False
