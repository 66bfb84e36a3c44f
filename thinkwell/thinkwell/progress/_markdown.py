"""What agents write, drawn as Markdown: no links that lead elsewhere, nothing left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from thinkwell._display.items.code import LANGUAGES
from thinkwell._display.markdown_parser import PARSER
from thinkwell._display.text import clean

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult

WIDEST: Final = 100
"""Columns of prose at most: longer lines are hard to read."""

NARROWEST: Final = 24
"""Columns below which nothing is drawn as Markdown: lists in lists would have no room."""


class Code:
    """Code, coloured where its language is known."""

    def __init__(self, text: str, language: str) -> None:
        self._text = clean(text).rstrip("\n")
        name = language.casefold().partition(" ")[0]
        self._language = name if name in LANGUAGES else "text"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._language == "text":
            yield Text(self._text, style="markdown.code", overflow="fold")
        else:
            # The colours are the terminal's own, which fit its background.
            yield Syntax(
                self._text, self._language, theme="ansi_dark", background_color="default", word_wrap=True
            )


class _CodeBlock(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Padding(Code(str(self.text), self.lexer_name), (0, 0, 0, 2))


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}
    """All begin at the left."""


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "heading_open": _Heading,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = PARSER.parse(text)


class Prose:
    """A paragraph, a list or a table, as Markdown."""

    def __init__(self, text: str) -> None:
        self._text = clean(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, WIDEST)
        shown: RenderableType = Text(self._text, overflow="fold")
        if width >= NARROWEST:
            shown = _Markdown(self._text)
        lines = console.render_lines(shown, options.update(width=width), pad=False)
        while lines and _is_blank(lines[0]):
            del lines[0]
        while lines and _is_blank(lines[-1]):
            del lines[-1]
        for line in lines:
            yield from line
            yield Segment.line()


def _is_blank(line: list[Segment]) -> bool:
    return all(segment.text.isspace() or not segment.text for segment in line)
