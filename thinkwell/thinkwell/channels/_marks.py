"""Agents' Markdown, as parts of a text with marks, such as bold or code.

A link's address is written out after its text, so every link shows its target. Everything else stays as it
was written, such as the signs of lists, quotes and tables. So do definitions of addresses (``[a]: b``);
otherwise text at the end would change earlier blocks.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from markdown_it.tree import SyntaxTreeNode

from thinkwell._display.markdown_parser import PARSER, block_parser, inline_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


Marks: TypeAlias = tuple[str, ...]
"""The marks of a part of a text, outermost first, as the names of HTML elements. Code has no marks within."""


class Run(NamedTuple):
    """A part of a text with the same marks. The text between runs is plain."""

    start: int
    end: int
    marks: Marks


class MarkedText(NamedTuple):
    """A Markdown text without its marks."""

    text: str
    runs: Sequence[Run]
    """The parts with marks, in order."""
    settled: int
    """Characters at the beginning that stay as they are, whatever Markdown is added."""


_NAMES: Final = {"strong": "b", "em": "i", "s": "s"}
"""The marks of Markdown's kinds of emphasis."""

_BLOCKS: Final = block_parser().disable("reference")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9_+#.-]{1,30}(?!\S)")


def read_marks(text: str) -> MarkedText:
    """Return a Markdown text without its marks, and the marks of its parts.

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
                    written.add(line, ("",), ())
            case _ if block.children[0].content:
                around = ("b",) if block.type == "heading" else ()
                written.add(block.children[0].content, lines[begin:end], around)
            case _:
                written.add_lines(lines[begin:end])
    written.add_lines(lines[done:])
    return MarkedText("".join(written.pieces), written.runs, settled)


class _Written:
    """The text and its marks written so far."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.runs: list[Run] = []
        self.length = 0

    def add_lines(self, lines: Sequence[str]) -> None:
        """Add lines as they are."""
        if lines:
            self._begin()
            self._put("\n".join(lines), ())

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
            self._put(code, ("pre", f'code class="language-{language[0]}"') if language else ("pre",))
        return settled

    def add(self, content: str, lines: Sequence[str], marks: Marks) -> None:
        """Add a text with marks.

        Args:
            content: The text.
            lines: Its lines, with the signs of the lists and quotes around it.
            marks: The marks around all of it.
        """
        bare = (line.strip(" ") for line in content.split("\n"))
        signs = (line[: line.rfind(text)].partition("#")[0] for line, text in zip(lines, bare, strict=False))
        self._begin()
        self._put(next(signs), ())
        tokens = inline_tokens(content, {})
        for text, own in [(content, marks)] if tokens is None else _marked(SyntaxTreeNode(tokens), marks):
            first, *others = text.split("\n")
            self._put(first, own)
            for line in others:
                self._put(f"\n{next(signs, '')}", own)
                self._put(line, own)

    def _begin(self) -> None:
        if self.pieces:
            self._put("\n", ())

    def _put(self, text: str, marks: Marks) -> None:
        start, self.length = self.length, self.length + len(text)
        self.pieces.append(text)
        if not text or not marks:
            return
        if self.runs and self.runs[-1].end == start and self.runs[-1].marks == marks:
            start = self.runs.pop().start
        self.runs.append(Run(start, self.length, marks))


def _marked(node: SyntaxTreeNode, marks: Marks) -> Iterable[tuple[str, Marks]]:
    """Return the parts of a text, in order."""
    match node.type:
        case "text" | "text_special":
            return [(node.content, marks)]
        case "code_inline":
            return [(node.content, ("code",))]
        case "softbreak" | "hardbreak":
            return [("\n", marks)]
        case "link" | "image":
            parts = [part for each in node.children for part in _marked(each, marks)]
            said = "".join(text for text, _ in parts)
            address = str(node.attrs["href" if node.type == "link" else "src"])
            if address and node.markup != "autolink" and PARSER.normalizeLink(said) != address:
                parts.append((f" ({address})" if said else address, marks))
            return parts
        case _:
            own = _NAMES.get(node.type)
            around = marks if own is None else tuple(sorted({*marks, own}))
            return chain.from_iterable(_marked(each, around) for each in node.children)
