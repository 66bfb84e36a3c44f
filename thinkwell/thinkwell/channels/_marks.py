"""Agents' Markdown, as styled parts of a text, such as bold or code.

A link's address is written out after its text, so every link shows its target. Everything else stays as it
was written, such as the signs of lists, quotes and tables. So do definitions of addresses (``[a]: b``);
otherwise text at the end would change earlier blocks.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from markdown_it.tree import SyntaxTreeNode

from thinkwell._display.markdown_parser import PARSER, block_parser, inline_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Style(NamedTuple):
    """The style of a part of a text. Code has no other style."""

    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    block: bool = False
    """Whether it is a block of code."""
    language: str = ""
    """The language of a block of code."""


class Run(NamedTuple):
    """A part of a text with one style. The text between runs is plain."""

    start: int
    end: int
    style: Style


class MarkedText(NamedTuple):
    """A Markdown text without its marks."""

    text: str
    runs: Sequence[Run]
    """The styles, in order."""
    settled: int
    """Characters at the beginning that stay as they are, whatever Markdown is added."""


PLAIN: Final = Style()
_BOLD: Final = Style(bold=True)
_CODE: Final = Style(code=True)

_BLOCKS: Final = block_parser().disable("reference")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9_+#.-]{1,30}(?!\S)")


def read_marks(text: str) -> MarkedText:
    """Return a Markdown text without its marks, and the styles of its parts.

    Args:
        text: Markdown, with line feeds as line ends.
    """
    lines = text.split("\n")
    written = _Written()
    done = settled = 0
    for block in SyntaxTreeNode(_BLOCKS.parse(text)).walk():
        if block.type not in ("paragraph", "heading", "fence", "table"):
            continue
        assert block.map is not None, "it is not a block"
        begin, end = block.map
        between = lines[done:begin]
        written.add_lines(between)
        done = end
        # A block that begins below a blank line cannot join the block before. Without the blank line, an
        # unfinished line may turn its block into another one, and the block before too.
        if "" in map(str.strip, between) or end < len(lines):
            settled = written.length
        match block.type:
            case "fence":
                above_last = written.add_fence(lines[begin].partition(block.markup)[0], block)
                if begin + 1 < len(lines):
                    settled = above_last
            case "table":
                for line in lines[begin:end]:
                    written.add(line, ("",), PLAIN)
            case _ if block.children[0].content:
                heading = block.type == "heading"
                written.add(block.children[0].content, lines[begin:end], _BOLD if heading else PLAIN)
            case _:
                written.add_lines(lines[begin:end])
    written.add_lines(lines[done:])
    return MarkedText("".join(written.pieces), written.runs, settled)


class _Written:
    """The text and styles written so far."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.runs: list[Run] = []
        self.length = 0

    def add_lines(self, lines: Sequence[str]) -> None:
        """Add lines as they are."""
        if lines:
            self._begin()
            self._put("\n".join(lines), PLAIN)

    def add_fence(self, before: str, block: SyntaxTreeNode) -> int:
        """Add a block of code.

        Args:
            before: The text before it in its line, such as the sign of a list.
            block: The block.

        Returns:
            How many characters were written before its last line, which may still become the closing fence.
        """
        if before.strip():
            self.add_lines((before.rstrip(),))
        settled = self.length
        if code := block.content.removesuffix("\n"):
            self._begin()
            if (end := code.rfind("\n")) >= 0:
                settled = self.length + end
            language = _LANGUAGE.match(block.info.strip())
            self._put(code, Style(block=True, language=language[0] if language else ""))
        return settled

    def add(self, content: str, lines: Sequence[str], style: Style) -> None:
        """Add a text with marks.

        Args:
            content: The text.
            lines: Its lines, with the signs of the lists and quotes around it.
            style: The style around all of it.
        """
        bare = (line.strip(" ") for line in content.split("\n"))
        signs = (line[: line.rfind(text)].partition("#")[0] for line, text in zip(lines, bare, strict=False))
        self._begin()
        self._put(next(signs), PLAIN)
        tokens = inline_tokens(content, {})
        for text, own in [(content, style)] if tokens is None else _marked(SyntaxTreeNode(tokens), style):
            first, *others = text.split("\n")
            self._put(first, own)
            for line in others:
                self._put(f"\n{next(signs, '')}", own)
                self._put(line, own)

    def _begin(self) -> None:
        if self.pieces:
            self._put("\n", PLAIN)

    def _put(self, text: str, style: Style) -> None:
        start, self.length = self.length, self.length + len(text)
        self.pieces.append(text)
        if not text or style == PLAIN:
            return
        if self.runs and self.runs[-1].end == start and self.runs[-1].style == style:
            start = self.runs.pop().start
        self.runs.append(Run(start, self.length, style))


def _marked(mark: SyntaxTreeNode, style: Style) -> Iterable[tuple[str, Style]]:
    """Return the parts of a text, in order."""
    match mark.type:
        case "text" | "text_special":
            return [(mark.content, style)]
        case "code_inline":
            return [(mark.content, _CODE)]
        case "softbreak" | "hardbreak":
            return [("\n", style)]
        case "link" | "image":
            parts = [part for each in mark.children for part in _marked(each, style)]
            said = "".join(text for text, _ in parts)
            address = str(mark.attrs["href" if mark.type == "link" else "src"])
            if address and mark.markup != "autolink" and PARSER.normalizeLink(said) != address:
                parts.append((f" ({address})" if said else address, style))
            return parts
        case _:
            own = {
                "strong": style._replace(bold=True),
                "em": style._replace(italic=True),
                "s": style._replace(struck=True),
            }.get(mark.type, style)
            return chain.from_iterable(_marked(each, own) for each in mark.children)
