"""The Markdown parser of all displays. Each draws its blocks itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.token import Token

MARKED: Final = 10_000
"""Most characters of a paragraph that is searched for marks; a longer one is drawn as it is written."""

DEEPEST: Final = 50
"""Most levels of marks; a paragraph with more is drawn as it is written."""

_SPECIAL: Final = re.compile(r"[\\`*_~\[<&!\n]|://")
"""The possible beginning of a mark. Most texts have none, and need no parser."""


def block_parser() -> MarkdownIt:
    """Return a parser for blocks, which leaves their contents to `inline_tokens`."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
"""The Markdown that agents write. HTML is treated as text."""


def inline_tokens(content: str, env: dict[str, Any]) -> list[Token] | None:
    """Return the marks in the text of a block; ``None``: it is drawn as it is written.

    Args:
        content: The text.
        env: The named addresses, in the parser's form.
    """
    if len(content) > MARKED or _SPECIAL.search(content) is None:
        return None
    tokens: list[Token] = []
    PARSER.inline.parse(content, PARSER, env, tokens)
    return None if any(token.level > DEEPEST for token in tokens) else tokens
