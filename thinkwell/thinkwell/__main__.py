"""The command ``thinkwell``, or a message if its dependencies are missing."""

from __future__ import annotations

import os
import sys
from typing import Final

MISSING: Final = """\
The command `thinkwell` needs {name}, which is not installed. Install what it needs:

    {python} -m pip install 'thinkwell[cli]'

The library works without it: `python -m thinkwell.doctor` and `python -m thinkwell.agents` do too.
"""

WRONG_USAGE: Final = 2


def main() -> int:
    """Run the command with the arguments of this process, and return its exit code."""
    _open_what_is_closed()
    try:
        import rich  # noqa: F401 - to miss it here rather than later  # pyright: ignore[reportUnusedImport]

        from thinkwell.cli._app import run_app
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] not in ("rich", "typer"):
            raise  # pragma: no cover - a module of ours is missing
        sys.stderr.write(MISSING.format(name=exc.name, python=sys.executable))
        return WRONG_USAGE
    return run_app()


def _open_what_is_closed() -> None:
    """Open closed standard streams as empty ones: the next file or socket would take their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            file = os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            setattr(sys, name, open(file, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


if __name__ == "__main__":  # pragma: no branch - it is a program
    sys.exit(main())
