"""The event loop, thread and process that something belongs to."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, NamedTuple

from thinkwell.errors import WrongEventLoop

if TYPE_CHECKING:
    from collections.abc import Callable


class Owner:
    """Where an agent was opened. It cannot be used anywhere else.

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
            WrongEventLoop: It is elsewhere.
        """
        try:  # quick, as a reader of events asks each time that it waits; a loop has but one thread
            if self._loop_here() is self._home.loop and not self.forked:
                return
        except RuntimeError:  # none runs here
            pass
        raise WrongEventLoop(self._agent, self._home.described("the"), _here().described("another"))


class _Place(NamedTuple):
    process: int
    thread: threading.Thread
    loop: object

    def described(self, which: str) -> str:
        """Return the place in words."""
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
    """Return whether trio runs here. It need not be there, and is not loaded for that."""
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_run()


def _loop_finder() -> Callable[[], object]:
    """Return what finds the running event loop, also outside of tasks; it raises `RuntimeError` for none."""
    if in_trio():
        import trio

        return trio.lowlevel.current_trio_token
    import asyncio  # not with thinkwell: a program on trio need not load it

    return asyncio.get_running_loop
