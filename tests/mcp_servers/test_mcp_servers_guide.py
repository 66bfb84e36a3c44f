"""The guide to MCP servers, followed by hand: its files are saved, and its program is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from builtin_stage import run_here

if TYPE_CHECKING:
    import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "mcp-servers.md"
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_guide_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GUIDE.read_text("utf-8")
    server, program = SNIPPET.findall(text)[:2]
    assert "Save it as `notes_server.py`" in text
    (tmp_path / "notes_server.py").write_text(server, "utf-8")
    (tmp_path / "main.py").write_text(program, "utf-8")
    run_here(tmp_path / "main.py", tmp_path, monkeypatch)
    assert "The release is on Friday." in capsys.readouterr().out
