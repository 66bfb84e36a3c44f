"""Support for frozen programs, from PyInstaller and similar tools, and for archives of shiv and zipapp.

thinkwell starts some of its own programs: the built-in agent, the program that passes tools on to an agent,
the one that ends MCP servers, and the agents of `thinkwell.testing`. If no Python with thinkwell is available
to run them, your program does, with `freeze_support`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import is_zipfile

from thinkwell_acp.interpreter import module_named, run_helpers_by, why_no_interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("freeze_support",)

_HELPERS: Final = (
    "thinkwell.builtin",
    "thinkwell.testing",
    "thinkwell_acp.mcp.shim",
    "thinkwell_acp.mcp.guard",
)


def freeze_support() -> None:
    """Run one of thinkwell's own programs and exit, if this process was started for that; else return.

    Call it first in your program, like `multiprocessing.freeze_support`. A program that is frozen, embeds
    Python, or is a zip archive then starts itself instead of Python. In other programs it does nothing:

        if __name__ == "__main__":
            freeze_support()
            main()

    Raises:
        SystemExit: The process was started for one of them, which has ended.
    """
    if not sys.executable:
        return
    if why_no_interpreter():
        run_helpers_by([sys.executable], _HELPERS)
    elif is_zipfile(sys.argv[0]):
        run_helpers_by([sys.executable, str(Path(sys.argv[0]).absolute())], _HELPERS)
    else:
        return
    name, arguments = module_named(sys.argv[1:])
    if name in _HELPERS:
        sys.argv = [name, *arguments]
        raise SystemExit(_program(name)())


def _program(name: str) -> Callable[[], object]:
    """Return the main function of a helper. These imports let tools for frozen programs find the modules."""
    match name:
        case "thinkwell.builtin":
            from thinkwell.builtin.__main__ import main as builtin

            return builtin
        case "thinkwell.testing":
            from thinkwell.testing.__main__ import main as testing

            return testing
        case "thinkwell_acp.mcp.shim":  # pragma: no cover - a process of its own, which no tool can look into
            from thinkwell_acp.mcp.shim import main as shim

            return shim
        case _:  # pragma: no cover - the same
            from thinkwell_acp.mcp.guard import main as guard

            return guard
