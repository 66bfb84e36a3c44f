"""``python tests/suite/private_imports.py``: count the test files that import private modules of ours.

Tests hold on to behaviour, so that what is inside can move. A file that has to look inside says why in a
comment that begins with ``# Private:``. `make check` fails when there are more of them than `MOST`, or when
one gives no reason. An import in a string counts too: a program that a test runs with ``python -c``.
"""
# ruff: noqa: T201

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST: Final = 15
TESTS: Final = Path(__file__).parents[1]
PRIVATE: Final = re.compile(r"_?thinkwell(_acp)?(\.\w+)*\._[a-z]\w*(\.\w+)*(:\w+)?")
IN_STRING: Final = re.compile(
    r"\bimport\s+(?P<module>thinkwell[\w.]*\._[a-z]\w*)"
    r"|\bfrom\s+(?P<package>thinkwell[\w.]*)\s+import\s+\(?\s*(?P<names>\w+(?:\s*,\s*\w+)*)"
)
ROUNDABOUT: Final = {
    "import_module",
    "__import__",
    "getattr",
    "setattr",
    "find_spec",
    "run_module",
    "patch",
    "resolve_name",
}


def main() -> int:
    """Print the files, and return an exit status."""
    found = {
        path.relative_to(TESTS).as_posix(): names
        for path in sorted(TESTS.rglob("*.py"))
        if (names := sorted(set(_imported(ast.parse(path.read_text(encoding="utf-8"))))))
    }
    silent = [file for file in found if "# Private: " not in (TESTS / file).read_text(encoding="utf-8")]
    for file, names in found.items() if silent or len(found) > MOST else ():
        print(f"tests/{file}: {', '.join(names)}{'; it gives no reason' if file in silent else ''}")
    print(f"{len(found)} files under tests/ import private modules; {MOST} may")
    return len(found) > MOST or bool(silent)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            names = [text for text in texts if called in ROUNDABOUT and isinstance(text, str)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = list(_imported_in(node.value))
        yield from (name for name in names if PRIVATE.fullmatch(name))


def _imported_in(text: str) -> Iterator[str]:
    for found in IN_STRING.finditer(text):
        if found["module"]:
            yield found["module"]
        else:
            yield from (f"{found['package']}.{name}" for name in re.split(r"\s*,\s*", found["names"]))


if __name__ == "__main__":
    sys.exit(main())
