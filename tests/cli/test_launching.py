"""What is said while an agent is installed, which may take minutes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.typing_in import home, scripted

from thinkwell.testing import script

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    pytest.skip("programs of POSIX systems", allow_module_level=True)

__all__ = ("home",)


@pytest.mark.parametrize("how", [(), ("--quiet",), ("--json",)], ids=str)
def test_an_installation_is_told(how: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = home / "tools"
    tools.mkdir()
    agent = scripted(home, script.says("yes"))
    (tools / "npx").write_text(
        f'#!/bin/sh\ncase "$*" in *--package=*) exit 0;; *) exec {agent};; esac\n', "utf-8"
    )
    (tools / "npx").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    (home / "pyproject.toml").write_text(
        '[tool.thinkwell.agents.mine.npx]\npackage = "x"\nversion = "1"\n', "utf-8"
    )
    done = run_command("run", "go", "--agent", "mine", *how)
    assert done.code == 0, done.err
    if how:
        assert done.err == ""
    else:
        assert done.err.startswith("[phase]  installing npm package x@1\n")
        assert done.err.count("installing") == 1


def test_verbose_tells_at_the_end_what_was_logged(home: Path) -> None:
    agent = scripted(home, script.says("yes"))
    assert "Info: " not in run_command("run", "go", "--command", agent).err
    done = run_command("run", "go", "--command", agent, "--verbose")
    progress, logged = done.err.split("Info: ", 1)
    assert "[done]" in progress
    assert "is open (new)" in logged
    assert "completed after" in logged
