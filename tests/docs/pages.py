"""The pages of the documentation and the snippets in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])

_SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

_FILE = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)

_PROGRAM = re.compile(
    r"anyio\.run\(|^(from thinkwell\.sync\b.* import |from thinkwell import sync$)", re.MULTILINE
)


def is_program(code: str) -> bool:
    """Whether a snippet is a whole program, and not a piece that goes on where the one before it ended."""
    return _PROGRAM.search(code) is not None


def snippets(page: Path) -> list[tuple[int, str]]:
    """The line and the text of each snippet of a page."""
    text = page.read_text("utf-8")
    return [(text.count("\n", 0, m.start()) + 2, m[1]) for m in _SNIPPET.finditer(text)]


def files(page: Path) -> dict[str, str]:
    """The files that a page shows, by the names in their titles. Its programs find them in their folder."""
    return dict(_FILE.findall(page.read_text("utf-8")))
