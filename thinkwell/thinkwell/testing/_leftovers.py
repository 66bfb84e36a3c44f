"""Leftovers of a run: tasks, files, warnings, lost exceptions, errors in the log."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

LOGGERS: Final = ("thinkwell", "thinkwell_acp", "asyncio")
DESCRIPTORS: Final = Path("/proc/self/fd")


def other_tasks() -> int:
    """Return the number of tasks besides the caller's; on trio, its own tasks count too."""
    try:
        return len(asyncio.all_tasks()) - 1
    except RuntimeError:  # asyncio is not running
        import trio

        return trio.lowlevel.current_statistics().tasks_living


class _Keeper(logging.Handler):
    def __init__(self, keep: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(logging.WARNING)
        self._keep = keep

    def emit(self, record: logging.LogRecord) -> None:
        self._keep(record)


class Leftovers:
    """The leftovers, filled by `leftovers`."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.lost: list[str] = []
        """Exceptions that could not be raised anywhere."""
        self.errors: list[str] = []
        """Errors in the log."""
        self.files: list[str] = []
        """Temporary files."""
        self.descriptors: list[str] = []
        """Open files and sockets."""


@contextmanager
def leftovers(logged: Callable[[logging.LogRecord], None]) -> Generator[Leftovers]:
    """Look for leftovers of a block. Garbage is collected at its end, and not during it.

    Args:
        logged: Called with log records, from warnings on.
    """
    found = Leftovers()

    def keep(record: logging.LogRecord) -> None:
        logged(record)
        if record.levelno >= logging.ERROR:
            found.errors.append(f"{record.name}: {record.getMessage()}")

    def lose(unraisable: Any) -> None:
        found.lost.append(f"{unraisable.exc_value!r} in {unraisable.object!r}")

    keeper = _Keeper(keep)
    before, folder, hook, collects = _descriptors(), tempfile.tempdir, sys.unraisablehook, gc.isenabled()
    with tempfile.TemporaryDirectory() as own, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tempfile.tempdir = own
        sys.unraisablehook = lose
        gc.disable()
        gc.freeze()  # older objects are none of these, and take most of the time
        for name in LOGGERS:
            logging.getLogger(name).addHandler(keeper)
        try:
            yield found
            gc.collect()
        finally:
            for name in LOGGERS:
                logging.getLogger(name).removeHandler(keeper)
            gc.unfreeze()
            if collects:
                gc.enable()
            sys.unraisablehook = hook
            tempfile.tempdir = folder
        found.files += [path.name for path in Path(own).iterdir()]
    found.warnings += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    found.descriptors += sorted(_descriptors() - before)


def _descriptors() -> set[str]:
    """Return the open files; nothing if the system does not tell."""
    if not DESCRIPTORS.exists():  # pragma: no cover - only where there is no /proc
        return set()
    opened: set[str] = set()
    for descriptor in list(DESCRIPTORS.iterdir()):
        try:
            opened.add(f"{descriptor.name} {descriptor.readlink()}")
        except OSError:  # the listing itself
            continue
    return opened
