"""The parser of Markdown, one for all displays. What they draw of it is their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.token import Token

MARKED: Final = 10_000
"""Characters of a paragraph in which marks are looked for; a longer one is drawn as it is written."""

DEEPEST: Final = 50
"""Marks within marks that are drawn; a paragraph with more is drawn as it is written."""

_SPECIAL: Final = re.compile(r"[\\`*_~\[<&!\n]|://")
"""What may begin a mark. Most texts have none, and need no parser."""


def block_parser() -> MarkdownIt:
    """Return a parser that finds blocks, and leaves what stands in them to `inline_tokens`."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
"""What agents write. HTML is a text like any other."""


def inline_tokens(content: str, env: dict[str, Any]) -> list[Token] | None:
    """Return the marks in the text of a block; ``None``: it is drawn as it is written.

    Args:
        content: The text.
        env: The addresses that have names, as the parser keeps them.
    """
    if len(content) > MARKED or _SPECIAL.search(content) is None:
        return None
    tokens: list[Token] = []
    PARSER.inline.parse(content, PARSER, env, tokens)
    return None if any(token.level > DEEPEST for token in tokens) else tokens
