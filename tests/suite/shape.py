"""``python tests/suite/shape.py``: measure the shape of the house, and fail where it has changed.

`make check` holds each figure at `HELD`. A change that lowers a figure lowers the number there too, so that
it cannot rise again.
"""
# ruff: noqa: T201

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import grimp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = {
    "thinkwell": ROOT / "thinkwell" / "thinkwell",
    "thinkwell_acp": ROOT / "acp" / "thinkwell_acp",
}
HELD: Final = {"circles": 0, "reaches": 0, "crowd": 0, "flat": 2, "widest": 27, "long": 0, "big": 0}
SHARED: Final = (
    "_core.exit",
    "_core.schema",
    "_lines.words",
    "_display",
    "_terminal",
    "_conversations",
    "_recording",
    "_version",
)
"""Rooms that every wing, a public package, may use. Its import of the inside of another room is a reach. The
doctor has a door of its own, `_core.diagnosis`."""
PRIVATE: Final = re.compile("_(?!_)")
"""How the name of what is inside begins; ``__main__`` is a program, which anybody may run."""
MOST_NAMES: Final = 25
"""Names that the exit of the core may have."""
LONGEST: Final = 400
"""Lines of code in a module: no docstrings, comments or blank lines."""
LONG_BY_NATURE: Final = {"thinkwell.errors", "thinkwell.events"}
MOST_METHODS: Final = 30
MOST_ATTRIBUTES: Final = 20
A_METHOD_A_REQUEST: Final = {"thinkwell_acp.client.Client", "thinkwell_acp.agent.AgentSide"}


class Class(NamedTuple):
    """The methods and attributes that a class has in its own body, and the names of its bases."""

    methods: frozenset[str]
    attributes: frozenset[str]
    bases: tuple[str, ...]


def circles(graph: grimp.ImportGraph) -> list[str]:
    """Return the groups of modules that import each other, for types too."""
    below = {module: graph.find_upstream_modules(module) for module in graph.modules}
    groups = {
        tuple(sorted({module, *(other for other in below[module] if module in below[other])}))
        for module in graph.modules
    }
    return sorted(" ".join(group) for group in groups if len(group) > 1)


def reaches(graph: grimp.ImportGraph) -> list[str]:
    """Return the imports from a wing into the inside of another room."""
    found: list[str] = []
    for module in graph.modules:
        wing = _room(module)
        if wing.startswith("_") or not (FOLDERS["thinkwell"] / wing).is_dir() or not wing:
            continue
        for other in graph.find_modules_directly_imported_by(module):
            inside = other.removeprefix("thinkwell.")
            private = inside != other and any(map(PRIVATE.match, inside.split(".")))
            shared = (*SHARED, "_core.diagnosis") if wing == "doctor" else SHARED
            if private and _room(other) != wing and not inside.startswith(shared):
                found.append(f"{module} -> {other}")
    return sorted(found)


def crowd() -> list[str]:
    """Return the names of the core's exit where they are too many, or nothing."""
    tree = ast.parse((FOLDERS["thinkwell"] / "_core" / "exit.py").read_bytes())
    names = [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    ]
    return names if len(names) > MOST_NAMES else []


def flat() -> list[str]:
    """Return the private modules at the top of the package, which belong into rooms."""
    return sorted(path.name for path in FOLDERS["thinkwell"].glob("_[!_]*.py"))


def widest() -> list[str]:
    """Return the modules of the folder that has most."""
    folders = Counter(path.parent for path in _files())
    folder, _ = folders.most_common(1)[0]
    return sorted(path.name for path in folder.glob("*.py"))


def long() -> list[str]:
    """Return the modules with too many lines of code."""
    sizes = {_name(path): _code_lines(path) for path in _files()}
    return sorted(
        f"{name} {size}" for name, size in sizes.items() if size > LONGEST and name not in LONG_BY_NATURE
    )


def big() -> list[str]:
    """Return the classes with too many methods or attributes, those of bases of ours included."""
    classes = {f"{_name(path)}.{name}": found for path in _files() for name, found in _classes(path)}
    by_name: dict[str, list[str]] = {}
    for key in classes:
        by_name.setdefault(key.rpartition(".")[2], []).append(key)

    def family(key: str, seen: set[str]) -> Iterator[Class]:
        if key not in seen and key not in A_METHOD_A_REQUEST:
            seen.add(key)
            yield classes[key]
            for base in classes[key].bases:
                if len(by_name.get(base, ())) == 1:  # one of ours, and no other has its name
                    yield from family(by_name[base][0], seen)

    found: list[str] = []
    for key in classes:
        members = list(family(key, set()))
        methods = len(_union(member.methods for member in members))
        attributes = len(_union(member.attributes for member in members))
        if methods > MOST_METHODS or attributes > MOST_ATTRIBUTES:
            found.append(f"{key} {methods} methods, {attributes} attributes")
    return sorted(found)


def main() -> int:
    """Print the figures, with what is behind those that have changed, and return an exit status."""
    graph = grimp.build_graph(*FOLDERS, cache_dir=None)
    figures = {
        "circles": circles(graph),
        "reaches": reaches(graph),
        "crowd": crowd(),
        "flat": flat(),
        "widest": widest(),
        "long": long(),
        "big": big(),
    }
    changed = [name for name, found in figures.items() if len(found) != HELD[name]]
    for name in figures if "-v" in sys.argv else changed:
        print(f"{name}:", *figures[name], sep="\n  ")
    print(", ".join(f"{name} {len(found)} (held at {HELD[name]})" for name, found in figures.items()))
    return bool(changed)


def _files() -> Iterator[Path]:
    for folder in FOLDERS.values():
        yield from sorted(folder.rglob("*.py"))


def _name(path: Path) -> str:
    package = next(name for name, folder in FOLDERS.items() if path.is_relative_to(folder))
    parts = path.relative_to(FOLDERS[package]).with_suffix("").parts
    return ".".join((package, *(part for part in parts if part != "__init__")))


def _room(module: str) -> str:
    return module.split(".")[1] if module.startswith("thinkwell.") else ""


def _code_lines(path: Path) -> int:
    documented: set[int] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING):
                lines.update(range(token.start[0], token.end[0] + bool(token.string.strip())))
    return len(lines - documented)


def _classes(path: Path) -> Iterator[tuple[str, Class]]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ClassDef):
            yield (
                node.name,
                Class(
                    frozenset(
                        part.name
                        for part in node.body
                        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
                    ),
                    frozenset(
                        part.attr
                        for part in ast.walk(node)
                        if isinstance(part, ast.Attribute)
                        and isinstance(part.ctx, ast.Store)
                        and isinstance(part.value, ast.Name)
                        and part.value.id == "self"
                    ),
                    tuple(
                        base.id
                        for whole in node.bases
                        if isinstance(
                            base := whole.value if isinstance(whole, ast.Subscript) else whole, ast.Name
                        )
                    ),
                ),
            )


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


if __name__ == "__main__":
    sys.exit(main())
