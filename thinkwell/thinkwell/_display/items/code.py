"""Code with syntax colours."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Token

from thinkwell._display.items.nodes import by_line, styled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pygments.lexer import Lexer
    from pygments.token import _TokenType

    from thinkwell._display.items.nodes import Node

COLOURED: Final = 50_000
"""Most characters of code that is coloured; longer code is plain."""

LANGUAGES: Final = frozenset((
    "bash", "c", "c++", "console", "cpp", "cs", "csharp", "css", "diff", "docker", "dockerfile", "go", "html",
    "ini", "java", "javascript", "js", "json", "jsx", "kotlin", "lua", "make", "makefile", "markdown", "md",
    "php", "py", "python", "python3", "rb", "ruby", "rs", "rust", "scala", "sh", "shell", "sql", "swift",
    "toml", "ts", "tsx", "typescript", "xml", "yaml", "yml", "zsh",
))  # fmt: skip
"""The languages whose code is coloured. An agent may name any, and some are very slow to load."""

_ENDINGS: Final = {"cjs": "js", "h": "c", "hpp": "cpp", "kt": "kotlin", "mjs": "js", "pyi": "python"}
"""Languages by suffixes that differ from their names."""

_LOOKS: Final[tuple[tuple[_TokenType, str], ...]] = (
    (Token.Comment, "comment"),
    (Token.Keyword, "keyword"),
    (Token.Name.Builtin, "builtin"),
    (Token.Name.Class, "type"),
    (Token.Name.Function, "function"),
    (Token.Name.Tag, "keyword"),
    (Token.Literal.Number, "number"),
    (Token.Literal.String, "string"),
    (Token.Generic.Deleted, "removed"),
    (Token.Generic.Inserted, "added"),
    (Token.Generic.Heading, "type"),
)


def coloured(text: str, language: str) -> Node:
    """Return code with syntax colours, if its language is known."""
    pieces = _pieces(text, language)
    return text if pieces is None else styled(pieces)


def coloured_lines(text: str, language: str, lines: int) -> Iterator[Node]:
    """Yield code in parts of so many lines, with syntax colours if its language is known."""
    part: list[tuple[str, str]] = []
    ends = 0
    for piece, look in _pieces(text, language) or ((text, ""),):
        for line in piece.splitlines(keepends=True):
            part.append((line, look))
            ends += line.endswith("\n")
            if ends == lines:
                yield styled(part)
                part, ends = [], 0
    if part:
        yield styled(part)


@lru_cache(64)
def coloured_by_line(text: str, path: str) -> list[list[tuple[str, str]]]:
    """Return the pieces of each line of code with their styles, if its file's language is known.

    Args:
        text: The code.
        path: Its file.
    """
    ending = PurePosixPath(path).suffix.removeprefix(".").casefold()
    return by_line(_pieces(text, _ENDINGS.get(ending, ending)) or ((text, ""),))


def _pieces(text: str, language: str) -> list[tuple[str, str]] | None:
    language = language.casefold()
    if language not in LANGUAGES or len(text) > COLOURED:
        return None
    return [(piece, _look(kind)) for kind, piece in _lexer(language).get_tokens(text)]


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@cache
def _look(kind: _TokenType) -> str:
    """Return the class of a kind of words: its own, or that of the kind above it."""
    return next((look for known, look in _LOOKS if known.__contains__(kind)), "")
