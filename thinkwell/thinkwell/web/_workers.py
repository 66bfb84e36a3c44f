"""Workers of an HTTP server, as one of them sees that there are several."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from typing import Final

__all__ = ("has_several_workers",)

_OPTION: Final = re.compile(r"(?<!\S)(?:--workers[ =]|-w[ =]?)(\d+)(?!\S)")
"""How uvicorn, gunicorn, hypercorn and granian are told on their command line."""


def has_several_workers() -> bool:
    """Return whether this process is one of several workers, as far as can be seen.

    A worker has the command line of its server, also where it was spawned. What stands elsewhere, in
    ``uvicorn.run(workers=…)`` or in a configuration file of gunicorn, cannot be seen.
    """
    if multiprocessing.parent_process() is None and "gunicorn.arbiter" not in sys.modules:
        return False
    told = _OPTION.findall(" ".join(sys.argv)) or _OPTION.findall(os.environ.get("GUNICORN_CMD_ARGS", ""))
    count: str = told[-1] if told else os.environ.get("WEB_CONCURRENCY", "")
    return count.isdecimal() and int(count) > 1
