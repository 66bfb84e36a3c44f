"""Facts that are computed from the text of one file."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGUAGES: Final = {
    ".c": "C",
    ".css": "CSS",
    ".go": "Go",
    ".h": "C",
    ".html": "HTML",
    ".java": "Java",
    ".js": "JavaScript",
    ".json": "JSON",
    ".md": "Markdown",
    ".py": "Python",
    ".pyi": "Python",
    ".rs": "Rust",
    ".rst": "reStructuredText",
    ".sh": "shell",
    ".toml": "TOML",
    ".ts": "TypeScript",
    ".txt": "text",
    ".yaml": "YAML",
    ".yml": "YAML",
}
"""Names of file types, by suffix."""

_MARK: Final = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b[:\s]*(.*)")
_COMMENT_MARK: Final = re.compile(r"#.*?" + _MARK.pattern)
_HEADING: Final = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_TABLE: Final = re.compile(r"^\[+\s*([^\[\]]+?)\s*\]+\s*(?:#.*)?$", re.MULTILINE)
_FENCE: Final = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


class Function(Struct, frozen=True, kw_only=True, gc=False):
    """A function: where it begins and how many lines it has."""

    name: str
    line: int
    lines: int
    documented: bool
    public: bool
    """Whether it is public."""


class Mark(Struct, frozen=True, kw_only=True, gc=False):
    """A place that the author has marked as unfinished."""

    line: int
    word: str
    text: str


class FileFacts(Struct, frozen=True, kw_only=True, gc=False):
    """The facts about a file."""

    path: str
    """The displayed path: relative to the session's folder, or the name of a quotation."""
    absolute: str | None
    """``None`` for a text without a file."""
    modified: float
    """Seconds since 1970; 0 if unknown."""
    language: str
    size: int
    """In bytes."""
    lines: int
    words: int
    functions: tuple[Function, ...] = ()
    classes: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    title: str | None = None
    """The first line of the docstring, or the first heading."""
    broken: str | None = None
    """Why the file cannot be parsed; empty if it can."""
    broken_line: int = 1


def examine(path: str, text: str, *, absolute: str | None = None, modified: float = 0) -> FileFacts:
    """Return the facts about a text. Its path tells the language."""
    suffix = PurePosixPath(path).suffix.lower()
    base = FileFacts(
        path=path,
        absolute=absolute,
        modified=modified,
        language=LANGUAGES.get(suffix, "text"),
        size=len(text.encode("utf-8", "replace")),
        lines=text.count("\n") + (not text.endswith("\n") and bool(text)),
        words=len(text.split()),
    )
    match base.language:
        case "Python":
            return _python(base, text)
        case "Markdown":
            headings = tuple(_HEADING.findall(_FENCE.sub("", text)))
        case "TOML":
            headings = tuple(_TABLE.findall(text))
        case _:
            headings = ()
    title = headings[0] if headings and base.language == "Markdown" else None
    return replace(base, headings=headings, marks=_marks(text, _MARK), title=title)


def looks_like_python(text: str) -> bool:
    """Return whether a text without a name is Python: it parses, and defines or imports something."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return any(isinstance(node, kinds) for node in body)


def _python(base: FileFacts, text: str) -> FileFacts:
    facts = replace(base, marks=_marks(text, _COMMENT_MARK))
    try:
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        docstring = (ast.get_docstring(tree) or "").strip()
        return replace(
            facts,
            functions=tuple(_functions(tree, public=True)),
            classes=tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
            imports=tuple(sorted({name for node in nodes for name in _imported(node)})),
            title=docstring.split("\n", 1)[0] or None,
        )
    except SyntaxError as exc:
        return replace(facts, broken=exc.msg, broken_line=exc.lineno or 1)
    except (ValueError, RecursionError, MemoryError) as exc:  # nested too deeply
        return replace(facts, broken=str(exc) or type(exc).__name__)


def _functions(parent: ast.AST, *, public: bool) -> Iterator[Function]:
    """Yield the functions in order, without overloads; those inside others are not public."""
    for node in ast.iter_child_nodes(parent):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions(node, public=public)
            continue
        seen = public and not node.name.startswith("_")
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, public=seen)
        elif not any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list):
            yield Function(
                name=node.name,
                line=node.lineno,
                lines=(node.end_lineno or node.lineno) - node.lineno + 1,
                documented=ast.get_docstring(node) is not None,
                public=seen,
            )
            yield from _functions(node, public=False)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module not in (None, "__future__") and not node.level:
        return [str(node.module).split(".")[0]]
    return []


def _marks(text: str, pattern: re.Pattern[str]) -> tuple[Mark, ...]:
    found = ((number, pattern.search(line)) for number, line in enumerate(text.split("\n"), 1))
    return tuple(Mark(line=number, word=match[1], text=match[2].strip()) for number, match in found if match)
