"""The pages about other libraries: their programs run as well, and do what the ones beside them do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from docs.pages import DOCS, snippets

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "howto" / "from-official-sdk.md"
BEFORE = re.compile(r'^```python title="before\.py"\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def run(program: str, folder: Path) -> str:
    """Run a program in a folder and return what it prints."""
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        env={**os.environ, "THINKWELL_BUILTIN_PACE": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_both_programs_print_the_same(tmp_path: Path) -> None:
    (tmp_path / "parser.py").write_text("def parse(text):\n    return text.split()\n", "utf-8")
    found = BEFORE.search(PAGE.read_text("utf-8"))
    assert found is not None
    before, after = run(found[1], tmp_path), run(snippets(PAGE)[0][1], tmp_path)
    assert "end_turn parser.py is Python" in after
    assert before == after
