"""What the help says of the commands."""

from __future__ import annotations

import re
from functools import cache

from cli.command import run_command

PATHS: tuple[tuple[str, ...], ...] = (
    (),
    *(
        (name,)
        for name in (
            "demo",
            "run",
            "chat",
            "trials",
            "worker",
            "replay",
            "agents",
            "doctor",
            "login",
            "sessions",
        )
    ),
    *((name,) for name in ("serve", "telegram", "middleware", "new", "version")),
    *(("agents", name) for name in ("list", "show", "update")),
)
"""All commands, and those of them that have commands of their own, in their order."""


@cache
def help_of(path: tuple[str, ...]) -> str:
    """Return the help of a command."""
    return run_command(*path, "--help").out


def commands_of(path: tuple[str, ...]) -> list[str]:
    """Return the commands of a group; none where it is none."""
    return re.findall(r"^  (\w+) ", help_of(path).partition("Commands:\n")[2], re.MULTILINE)


def options_of(*path: str) -> set[str]:
    """Return the options of a command, long and short."""
    listed = re.findall(r"^  (-\S.*?)(?:  |$)", help_of(path).partition("Options:\n")[2], re.MULTILINE)
    found = {option for left in listed for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", left)}
    return found - {"--help", "-h"}


def exit_codes() -> set[int]:
    """Return the exit codes that there are: those of a run, and that of a recording which cannot be read."""
    codes = {int(code) for code in re.findall(r"^ +(\d+)  ", help_of(("run",)), re.MULTILINE)}
    assert codes == {0, 1, 2, 3, 4, 5, 130, 141}
    return codes | {6}
