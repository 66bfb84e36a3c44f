"""Agents for the blocking API: processes that play a script. Threads that use it."""

from __future__ import annotations

import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from thinkwell.sync import Agent, Opener, open_agent

if TYPE_CHECKING:
    import threading

    from thinkwell.testing import Script


def program(told: Script) -> list[str]:
    """The command of a process that plays a script from its beginning."""
    file = f"{tempfile.mkdtemp()}/script"
    told.save(file)
    return [sys.executable, "-m", "thinkwell.testing", file]


def playing(told: Script, **options: Any) -> Opener[Agent]:
    """An agent that plays a script."""
    return open_agent(command=program(told), **options)


def until_it_waits(thread: threading.Thread) -> None:
    """Wait until a thread waits for the loop's."""
    until = time.monotonic() + 60
    assert thread.ident is not None
    while True:
        code = sys._current_frames()[thread.ident].f_code
        if code.co_qualname == "Call.wait":
            return
        assert time.monotonic() < until, code
        time.sleep(0.001)
