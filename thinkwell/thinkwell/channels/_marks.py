"""The Markdown that agents write, as marks of a text: which of its parts are bold, or code.

A link's address is written out behind its text: no link goes anywhere but where it says. All else stays as it
was written, such as the signs of lists, quotes and tables. So do names of addresses (``[a]: b``), or what is
said late in a text would change the blocks before it.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from markdown_it.tree import SyntaxTreeNode

from thinkwell._display.markdown_parser import PARSER, block_parser, inline_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("MarkedText", "Run", "Style", "read_marks")


class Style(NamedTuple):
    """How a part of a text is shown. Code is nothing else besides."""

    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    block: bool = False
    """Whether it is a block of code."""
    language: str = ""
    """Of a block of code."""


class Run(NamedTuple):
    """A part of a text that is shown in one way. The text between runs is plain."""

    start: int
    end: int
    style: Style


class MarkedText(NamedTuple):
    """A text of Markdown without its marks."""

    text: str
    runs: Sequence[Run]
    """What the marks said, in order."""
    settled: int
    """Characters at the beginning that stay as they are, whatever is added to the Markdown."""


PLAIN: Final = Style()
_BOLD: Final = Style(bold=True)
_CODE: Final = Style(code=True)

_BLOCKS: Final = block_parser().disable("reference")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9_+#.-]{1,30}(?!\S)")


def read_marks(text: str) -> MarkedText:
    """Return a Markdown text without its marks, and what they said of it.

    Args:
        text: Markdown, with line feeds as line ends.
    """
    lines = text.split("\n")
    written = _Written()
    done = settled = 0
    for block in SyntaxTreeNode(_BLOCKS.parse(text)).walk():
        if block.type not in ("paragraph", "heading", "fence", "table"):
            continue
        assert block.map is not None, "it is no block"
        begin, end = block.map
        between = lines[done:begin]
        written.add_lines(between)
        done = end
        # What has begun below a blank line cannot join the block before. Else an unfinished line may turn its
        # own block into another, and then the one before too.
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
    """What is written of a text."""

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
            before: What stands before it in its line, such as the sign of a list.
            block: The block.

        Returns:
            How much was written before its last line, which may yet become its end.
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
            lines: The lines that it stands in, with the signs of the lists and quotes that it is part of.
            style: How all of it is shown.
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
