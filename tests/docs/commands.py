"""What pages say of the command, beside what the command itself says."""

from __future__ import annotations

import configparser
import re
from typing import TYPE_CHECKING

from cli.command import run_command

if TYPE_CHECKING:
    from pathlib import Path


def refused(command: str, path: Path, settings: str) -> str:
    """Return why a command does not take a file with these settings."""
    path.write_text(settings, "utf-8")
    done = run_command(command, "--config", str(path))
    assert done.code == 2, done
    return done.err


def keys_of(command: str, folder: Path, section: str = "") -> list[str]:
    """Return the keys that the file of a command may have, in their order."""
    told = refused(command, folder / "wrong.toml", f"{section}\nqqqqqqqq = 1\n")
    found = re.search(r"'qqqqqqqq': there is no such key\. Those are (.*)$", told, re.MULTILINE)
    assert found is not None, told
    return found[1].split(", ")


def takes(*words: str) -> None:
    """Check that the command takes these arguments, without doing what they say."""
    done = run_command(*words, "--help")
    assert done.code == 0, done.err


def check_unit(text: str, name: str) -> None:
    """Check that the command takes what a unit of systemd starts it with.

    Args:
        text: Of the page.
        name: Of the unit.
    """
    (shown,) = re.findall(rf'^```ini title="{re.escape(name)}"\n(.*?)^```$', text, re.DOTALL | re.MULTILINE)
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation has it
    unit.read_string(shown)
    program, *arguments = unit["Service"]["ExecStart"].split()
    assert program.endswith("/bin/thinkwell")
    takes(*arguments)
