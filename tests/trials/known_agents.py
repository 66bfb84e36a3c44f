"""Agents that play scripts, known by name to every process of a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from thinkwell.testing import Script

__all__ = ("know", "outliving")


def know(patch: pytest.MonkeyPatch, folder: Path, **scripts: Script) -> None:
    """Make agents known by the names of their scripts.

    Args:
        patch: Takes that back.
        folder: Where to put their profiles.
        scripts: What each plays, in every process from the beginning.
    """
    profiles = folder / "config" / "thinkwell" / "agents"
    profiles.mkdir(parents=True, exist_ok=True)
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        patch.setenv(name, str(folder / "config"))
    for name, script in scripts.items():
        file = profiles / f"{name}.script"
        script.save(file)
        command = [sys.executable, "-m", "thinkwell.testing", str(file)]
        Path(profiles, f"{name}.toml").write_text(f"[program]\ncommand = {json.dumps(command)}\n")


def outliving(folder: Path, name: str) -> None:
    """Have a known agent live on until it is killed, and write its number into the file ``pid``.

    Args:
        folder: The folder of that file, and of the agent's profile.
        name: The agent. Without a script, it answers nothing.
    """
    profiles = folder / "config" / "thinkwell" / "agents"
    code = (
        "import os, pathlib, signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"pathlib.Path({str(folder / 'pid')!r}).write_text(str(os.getpid())); "
        f"subprocess.run([sys.executable, '-m', 'thinkwell.testing', {str(profiles / name)!r} + '.script']); "
        "signal.pause()"
    )
    Path(profiles, f"{name}.toml").write_text(
        f"[program]\ncommand = {json.dumps([sys.executable, '-c', code])}\n"
    )
