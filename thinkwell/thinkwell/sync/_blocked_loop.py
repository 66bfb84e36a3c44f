"""A warning if a blocking call holds up the caller's event loop."""

from __future__ import annotations

import asyncio
import sys
import warnings
from typing import Final

BLOCKED: Final = (
    "thinkwell.sync blocks the event loop of {library} that runs in this thread: none of its tasks continues "
    "before the call returns. Use thinkwell itself, with await, or make the call in a thread, by {in_thread}"
)

_IN_THREAD: Final = {"asyncio": "asyncio.to_thread", "trio": "trio.to_thread.run_sync"}


def warn_of_blocked_loop() -> None:
    """Warn if an event loop runs in this thread. In IPython and Jupyter a cell may block the kernel's."""
    library = _running_library()
    if library is None or _in_ipython():
        return
    level, frame = 1, sys._getframe()
    while frame.f_globals["__name__"].startswith("thinkwell.") and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    message = BLOCKED.format(library=library, in_thread=_IN_THREAD[library])
    warnings.warn(message, RuntimeWarning, stacklevel=level)


def _running_library() -> str | None:
    if "trio" in sys.modules:  # otherwise it cannot be running, and need not be installed
        import trio

        if trio.lowlevel.in_trio_run():
            return "trio"
    return None if asyncio._get_running_loop() is None else "asyncio"


def _in_ipython() -> bool:
    ipython = sys.modules.get("IPython.core.getipython")  # if IPython runs, it is imported
    return ipython is not None and ipython.get_ipython() is not None
