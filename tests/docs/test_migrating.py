"""The pages about other libraries: their programs run as well, and do what the ones beside them do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from builtin_stage import run_here
from docs.pages import DOCS, snippets

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "howto" / "from-official-sdk.md"
BEFORE = re.compile(r'^```python title="before\.py"\n(.*?)^```$', re.DOTALL | re.MULTILINE)


@pytest.mark.long
def test_both_programs_print_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "parser.py").write_text("def parse(text):\n    return text.split()\n", "utf-8")
    found = BEFORE.search(PAGE.read_text("utf-8"))
    assert found is not None
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(found[1], "utf-8")
    after.write_text(snippets(PAGE)[0][1], "utf-8")
    finished = subprocess.run(
        [sys.executable, "-W", "error", before],
        cwd=project,
        env={**os.environ, "THINKWELL_BUILTIN_PACE": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    run_here(after, project, monkeypatch)
    said = capsys.readouterr().out
    assert "end_turn parser.py is Python" in said
    assert finished.stdout == said
