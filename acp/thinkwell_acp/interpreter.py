"""What runs helpers, Python or this program itself, and programs that are none though they seem to be."""

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
"""What is in the name of every interpreter that a program of ours is known to run on."""

_OPTIONS: Final = re.compile("-[bBdEiIOPqRsSuvx]+")
"""Options of Python that take no value."""

_ADVICE: Final = (
    "Name a Python that is installed, with the packages that are needed, instead of sys.executable, or a "
    "program that needs none; for thinkwell's own, call thinkwell.frozen.freeze_support() first"
)


_itself: tuple[str, ...] = ()
"""What starts this program, where it runs helpers by itself; else the interpreter runs them."""

_helpers: Collection[str] = ()
"""The modules that it then runs."""


def run_helpers_by(command: Sequence[str], helpers: Collection[str]) -> None:
    """Have helpers run by this program, which does so wherever its arguments are those for Python.

    Args:
        command: What starts this program.
        helpers: The modules that it runs.
    """
    global _itself, _helpers
    _itself, _helpers = tuple(command), helpers


def why_no_interpreter() -> str:
    """Return why no helper can be started; nothing where the interpreter or this program runs them."""
    return "" if _itself else _why_it_is_none()


def _why_it_is_none() -> str:
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


def helper_command(*arguments: str) -> list[str]:
    """Return the command of a helper: of the interpreter with these arguments, or of this program."""
    return [*(_itself or (sys.executable or "",)), *arguments]


def python_command(*arguments: str) -> list[str]:
    """Return the command of a helper, which can be started.

    Raises:
        ProgramNotStarted: Nothing can run it, or this is that program.
    """
    command = helper_command(*arguments)
    refuse_itself(command)
    return command


def refuse_itself(command: Sequence[str]) -> None:
    """Refuse a command by which this program would start itself, and that one itself, without an end.

    Raises:
        ProgramNotStarted: It is meant for Python, and `sys.executable` is none; or this program was started
            by it.
    """
    program, *arguments = command
    if program != (sys.executable or "") or (
        _itself == (program,) and module_named(arguments)[0] in _helpers
    ):
        return
    if _are_for_python(arguments):
        reason = _why_it_is_none()
        if not reason and sys.orig_argv[1:] == arguments:
            reason = "this program was started by that very command, and would start itself without an end"
        if reason:
            raise ProgramNotStarted(command, f"{reason}. {_ADVICE}")


def module_named(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the module that arguments name for Python, by ``-m`` or its file, and what follows.

    Of a file that is the last three parts of its path. Without any the name is empty.
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
