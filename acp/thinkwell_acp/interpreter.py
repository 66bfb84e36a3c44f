"""Find the program that runs helpers: Python, or this program; and detect programs that are not Python."""

from __future__ import annotations

import re
import shlex
import sys
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from thinkwell_acp.errors import ProgramNotStarted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = (
    "helper_command",
    "module_named",
    "python_command",
    "refuse_itself",
    "run_helpers_by",
    "why_no_interpreter",
)

_NAMES: Final = re.compile("python|pypy|graalpy", re.IGNORECASE)
"""Parts of the names of interpreters on which our programs are known to run."""

_OPTIONS: Final = re.compile("-[bBdEiIOPqRsSuvx]+")
"""Options of Python that take no value."""

_ADVICE: Final = (
    "Name a Python that is installed, with the packages that are needed, instead of sys.executable, or a "
    "program that needs none; for thinkwell's own, call thinkwell.frozen.freeze_support() first"
)


_itself: tuple[str, ...] = ()
"""The command that starts this program, if it runs helpers itself; else the interpreter runs them."""

_helpers: Collection[str] = ()
"""The modules that it runs."""


def run_helpers_by(command: Sequence[str], helpers: Collection[str]) -> None:
    """Run helpers with this program, which runs them when its arguments are those for Python.

    Args:
        command: The command that starts this program.
        helpers: The modules that it runs.
    """
    global _itself, _helpers
    _itself, _helpers = tuple(command), helpers


def why_no_interpreter() -> str:
    """Return why no helper can be started; empty if the interpreter or this program runs them."""
    return "" if _itself else _why_it_is_none()


def _why_it_is_none() -> str:
    """Return why `sys.executable` cannot run Python code; empty if it can."""
    itself = f"{sys.executable} is the program, not a Python interpreter"
    if getattr(sys, "frozen", False):
        return f"this program is frozen (as by PyInstaller), so {itself}"
    if not sys.executable:
        return "this program embeds Python, and sys.executable is empty"
    if _NAMES.search(Path(sys.executable).name) is None:
        return f"this program embeds Python, so {itself}"
    arguments = sys.orig_argv[1:]
    if _are_for_python(arguments) and sys.argv[1:] == arguments:  # Python would have consumed them
        return f"{sys.executable} is not Python: started as Python, it did not run {shlex.join(arguments)}"
    return ""


def helper_command(*arguments: str) -> list[str]:
    """Return the command of a helper: the interpreter's with these arguments, or this program's."""
    return [*(_itself or (sys.executable or "",)), *arguments]


def python_command(*arguments: str) -> list[str]:
    """Return the command of a helper that can be started.

    Raises:
        ProgramNotStarted: No program can run it, or it would start this program again.
    """
    command = helper_command(*arguments)
    refuse_itself(command)
    return command


def refuse_itself(command: Sequence[str]) -> None:
    """Refuse a command by which this program would start itself again and again.

    Raises:
        ProgramNotStarted: It is meant for Python, and `sys.executable` is not Python; or this program was
            started by it.
    """
    program, *arguments = command
    if program != (sys.executable or "") or (
        _itself == (program,) and module_named(arguments)[0] in _helpers
    ):
        return
    if _are_for_python(arguments):
        reason = _why_it_is_none()
        if not reason and sys.orig_argv[1:] == arguments:
            reason = "this program was started by the same command, and would start itself forever"
        if reason:
            raise ProgramNotStarted(command, f"{reason}. {_ADVICE}")


def module_named(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the module that Python arguments name, by ``-m`` or its file, and the rest of the arguments.

    For a file, the name is the last three parts of its path. Without either, the name is empty.
    """
    match [*dropwhile(_OPTIONS.fullmatch, arguments)]:
        case ["-m", name, *more]:
            return name, more
        case [file, *more] if file.endswith(".py"):
            return ".".join(Path(file).with_suffix("").parts[-3:]), more
        case _:
            return "", []


def _are_for_python(arguments: Sequence[str]) -> bool:
    return bool(module_named(arguments)[0])
