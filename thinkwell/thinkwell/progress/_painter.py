"""A thread that draws, so that a slow terminal holds up nothing else."""

from __future__ import annotations

import logging
import queue
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("thinkwell")

_Job: TypeAlias = "tuple[Callable[[], None], anyio.Event]"


class Painter:
    """Runs drawing functions, one after another, in its own thread.

    The thread is a daemon: if it hangs in a terminal that takes no output, the program can still end. A
    failure is logged, once, and nothing is drawn afterwards.

    Args:
        give_up: Called in the thread if drawing has failed, to restore the terminal.
    """

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self.ended = False
        """Whether nothing is drawn any more."""
        self.cost = 0.0
        """Seconds of computing of the last function."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._token = current_token()
        self._thread: threading.Thread | None = None

    async def do(self, work: Callable[[], None]) -> None:
        """Run a function in the thread, and wait for it. If the wait is cancelled, the function continues."""
        await self.begin(work).wait()

    def begin(self, work: Callable[[], None]) -> anyio.Event:
        """Run a function in the thread, and return an event that is set at its end."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=copy_context().run,  # in a notebook, it says which cell the output belongs to
                args=(self._main,),
                name="thinkwell progress",
                daemon=True,
            )
            self._thread.start()
        done = anyio.Event()
        self._jobs.put((work, done))
        return done

    def end(self) -> None:
        """End the thread after its current function; draw nothing more."""
        self.ended = True
        self._jobs.put(None)

    def _main(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, done = job
            if not self.ended:
                began = time.thread_time()
                self._try(work)
                self.cost = time.thread_time() - began
            try:
                anyio.from_thread.run_sync(done.set, token=self._token)
            except RuntimeError:  # the event loop is gone, and the waiting task with it
                return

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            self.ended = True
            # Here and not in the event loop: the log may go to the terminal that takes no output.
            logger.exception("Progress is not shown any more: drawing it failed. The run goes on")
            with suppress(Exception):
                self._give_up()
