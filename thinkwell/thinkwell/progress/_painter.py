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
    """Does what draws, one thing after another, in a thread of its own.

    The thread is a daemon: one that hangs in a terminal that takes no output keeps no program from ending.
    What fails is logged, once, and nothing is drawn afterwards.

    Args:
        give_up: Called in the thread where drawing has failed, so that the terminal is as it should be.
    """

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self.ended = False
        """Whether nothing is drawn any more."""
        self.cost = 0.0
        """Seconds of computing that the last thing took."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._token = current_token()
        self._thread: threading.Thread | None = None

    async def do(self, work: Callable[[], None]) -> None:
        """Do this in the thread, and wait until it is done. Where the wait is cancelled, it goes on."""
        await self.begin(work).wait()

    def begin(self, work: Callable[[], None]) -> anyio.Event:
        """Do this in the thread, and return what is set when it is done."""
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
        """Let the thread end as soon as it has done what it is at; draw nothing more."""
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
            # Here and not in the event loop: the log may go to the very terminal that takes no output.
            logger.exception("Progress is not shown any more: drawing it failed. The run goes on")
            with suppress(Exception):
                self._give_up()
