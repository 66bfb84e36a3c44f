"""The Python that runs programs of ours, and programs that are none though they seem to be."""

from __future__ import annotations

import re
import shlex
import sys
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from thinkwell_acp.errors import ProgramNotStarted

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("python_command", "refuse_itself", "why_no_interpreter")

_NAMES: Final = re.compile("python|pypy|graalpy", re.IGNORECASE)
"""What is in the name of every interpreter that a program of ours is known to run on."""

_OPTIONS: Final = re.compile("-[bBdEiIOPqRsSuvx]+")
"""Options of Python that take no value."""

_ADVICE: Final = (
    "Name a Python that is installed, with the packages that are needed, instead of sys.executable, or a "
    "program that needs none"
)


def why_no_interpreter() -> str:
    """Return why `sys.executable` cannot run a program in Python; nothing where it can."""
    itself = f"{sys.executable} is the program, not a Python interpreter"
    if getattr(sys, "frozen", False):
        return f"this program is frozen (as by PyInstaller), so {itself}"
    if not sys.executable:
        return "this program embeds Python, and sys.executable is empty"
    if _NAMES.search(Path(sys.executable).name) is None:
        return f"this program embeds Python, so {itself}"
    arguments = sys.orig_argv[1:]
    if _are_for_python(arguments) and sys.argv[1:] == arguments:  # which Python would have taken for itself
        return f"{sys.executable} is no Python: it was started as one, and did not do {shlex.join(arguments)}"
    return ""


def python_command(*arguments: str) -> list[str]:
    """Return the command of a program in Python that this one's interpreter runs.

    Raises:
        ProgramNotStarted: There is no such interpreter, or this is that program.
    """
    command = [sys.executable or "", *arguments]
    refuse_itself(command)
    return command


def refuse_itself(command: Sequence[str]) -> None:
    """Refuse a command by which this program would start itself, and that one itself, without an end.

    Raises:
        ProgramNotStarted: It is meant for Python, and `sys.executable` is none; or this program was started
            by it.
    """
    program, *arguments = command
    if program != (sys.executable or ""):
        return
    if _are_for_python(arguments):
        reason = why_no_interpreter()
        if not reason and sys.orig_argv[1:] == arguments:
            reason = "this program was started by that very command, and would start itself without an end"
        if reason:
            raise ProgramNotStarted(command, f"{reason}. {_ADVICE}")


def _are_for_python(arguments: Sequence[str]) -> bool:
    """Return whether arguments name a module or a script, as those of Python do."""
    what = next(dropwhile(_OPTIONS.fullmatch, arguments), "")
    return what == "-m" or what.endswith(".py")
