"""The event loop, thread and process in which an agent was opened."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, NamedTuple

from thinkwell.errors import WrongEventLoop

if TYPE_CHECKING:
    from collections.abc import Callable


class Owner:
    """The place where an agent was opened. It cannot be used anywhere else.

    Args:
        agent: Name of the agent.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._loop_here = _loop_finder()
        self._home = _here()

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one in which the agent was opened."""
        return os.getpid() != self._home.process

    def check(self) -> None:
        """Check that the caller is there.

        Raises:
            WrongEventLoop: The caller is elsewhere.
        """
        try:  # fast, because every waiting reader calls it; a loop has one thread
            if self._loop_here() is self._home.loop and not self.forked:
                return
        except RuntimeError:  # no event loop is running
            pass
        raise WrongEventLoop(self._agent, self._home.described("the"), _here().described("another"))


class _Place(NamedTuple):
    process: int
    thread: threading.Thread
    loop: object

    def described(self, which: str) -> str:
        """Return the place as text."""
        place = f"thread {self.thread.name!r} of process {self.process}"
        if self.loop is None:
            return f"{place}, without an event loop"
        library = type(self.loop).__module__.partition(".")[0]
        return f"{which} event loop of {library}, in {place}"


def _here() -> _Place:
    try:
        loop = _loop_finder()()
    except RuntimeError:
        loop = None
    return _Place(os.getpid(), threading.current_thread(), loop)


def in_trio() -> bool:
    """Return whether trio is running here. It is not imported for that."""
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_run()


def _loop_finder() -> Callable[[], object]:
    """Return a function that finds the running event loop, even outside tasks; it raises `RuntimeError`."""
    if in_trio():
        import trio

        return trio.lowlevel.current_trio_token
    import asyncio  # imported late: a program on trio does not need it

    return asyncio.get_running_loop
