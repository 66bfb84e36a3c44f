"""Secrets of ``thinkwell serve`` that the agents which it starts shall not find in it."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

__all__ = ("keep_private",)

PR_SET_DUMPABLE: Final = 4
"""What to tell the kernel (Linux, prctl(2))."""


def keep_private() -> None:
    """Let no process of the same user read the memory of this one, where the system can do that.

    A variable that was taken out of the environment still stands where the process has begun, and Linux shows
    that to all of the user's processes: ``/proc/PID/environ``. Programs that are started are as they always
    are, as that ends with ``execve``.
    """
    if sys.platform != "linux":  # pragma: no cover - the tests run on Linux
        return
    with suppress(ImportError, OSError, AttributeError):  # a Python or a system without
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
