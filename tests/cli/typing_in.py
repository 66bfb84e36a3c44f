"""The command as a program of its own, in folders of a user who has set nothing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.testing import Script

LIMIT = 60


def thinkwell(*arguments: str) -> list[str]:
    """Return the command, with warnings as errors."""
    return [sys.executable, "-W", "error", "-m", "thinkwell", *arguments]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program in it, for the agent to look at. The built-in agent speaks at once."""
    for name in ("THINKWELL_AGENT_CMD", "THINKWELL_AGENT", "THINKWELL_TRACE", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "settings"))
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    project = tmp_path / "project"
    project.mkdir()
    (project / "parser.py").write_text("# TODO: more\ndef parse(text):\n    return text.split()\n", "utf-8")
    monkeypatch.chdir(project)
    return project


def scripted(folder: Path, script: Script) -> str:
    """Return the line that starts an agent which does what a script says."""
    path = folder / "script.json"
    script.save(path)
    return shlex.join([sys.executable, "-m", "thinkwell.testing", str(path)])


def program(
    *arguments: str, stdin: bytes | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run ``thinkwell`` to its end."""
    return subprocess.run(
        thinkwell(*arguments),
        input=b"" if stdin is None else stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=LIMIT,
        check=False,
    )
