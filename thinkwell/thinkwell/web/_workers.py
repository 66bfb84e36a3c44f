"""A warning if the workers of an HTTP server have their own runs in memory."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import sys
from typing import TYPE_CHECKING, Final

from thinkwell.journal import MemoryJournal

if TYPE_CHECKING:
    from thinkwell.journal import Journal

_SEVERAL: Final = (
    "this process is one of several workers, and keeps its runs in memory: a request for a run that reaches "
    "another worker gets 404. Give RunServer a journal that they share, journal=RedisJournal(…), or have one "
    "worker"
)

_OPTION: Final = re.compile(r"(?<!\S)(?:--workers[ =]|-w[ =]?)(\d+)(?!\S)")
"""The options for workers of uvicorn, gunicorn, hypercorn and granian on the command line."""


logger = logging.getLogger("thinkwell")


def warn_of_workers(journal: Journal) -> None:
    """Log a warning if this process is one of several workers, and its journal is in memory."""
    if isinstance(journal, MemoryJournal) and _has_several():
        logger.warning(_SEVERAL)


def _has_several() -> bool:
    """Return whether this process is one of several workers, if that is visible.

    A worker has the command line of its server, even if it was spawned. Settings elsewhere, in
    ``uvicorn.run(workers=…)`` or in a configuration file of gunicorn, are invisible.
    """
    if multiprocessing.parent_process() is None and "gunicorn.arbiter" not in sys.modules:
        return False
    told = _OPTION.findall(" ".join(sys.argv)) or _OPTION.findall(os.environ.get("GUNICORN_CMD_ARGS", ""))
    count: str = told[-1] if told else os.environ.get("WEB_CONCURRENCY", "")
    return count.isdecimal() and int(count) > 1
