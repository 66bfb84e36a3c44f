"""The guide to MCP servers, followed by hand: its files are saved, and its program is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "mcp-servers.md"
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_guide_can_be_followed(tmp_path: Path) -> None:
    text = GUIDE.read_text("utf-8")
    server, program = SNIPPET.findall(text)[:2]
    assert "Save it as `notes_server.py`" in text
    (tmp_path / "notes_server.py").write_text(server, "utf-8")
    (tmp_path / "main.py").write_text(program, "utf-8")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "main.py"],
        cwd=tmp_path,
        env={**os.environ, "THINKWELL_BUILTIN_PACE": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "The release is on Friday." in ran.stdout
