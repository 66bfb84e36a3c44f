"""The event loop behind the blocking API: one for the process, in a thread of its own.

All agents share it, so that one can supervise another. It begins with the first of them and ends with the
last. Whoever is left open when the interpreter exits is closed then.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
import threading
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, TypeVarTuple

import anyio

from thinkwell.errors import AgentClosed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from contextvars import Context

T = TypeVar("T")
Args = TypeVarTuple("Args")

ON_THE_LOOP: Final = (
    "thinkwell.sync was called in its own event loop, which that would block: by an async tool or handler, "
    "or by on_phase. Write the function without async, so that it runs in a thread, or use the async API"
)
LOOK_INTERVAL: Final = 0.05
"""Seconds between looks for ended threads while the interpreter exits."""

FORKED: Final = (
    "this process was forked from the one that opened the agent, and cannot use its connection; open an "
    "agent in this process"
)

WAIT_SLICE: Final = 0.1
"""Seconds after which a wait is begun anew on Windows, where Ctrl-C does not interrupt it."""


def _result(future: Future[T], timeout: float | None) -> T:
    if sys.platform == "win32":
        while not future.done() and (timeout is None or timeout > WAIT_SLICE):
            with contextlib.suppress(TimeoutError):
                future.exception(WAIT_SLICE)
            timeout = None if timeout is None else timeout - WAIT_SLICE
    return future.result(timeout)


class LoopEnded(RuntimeError):  # noqa: N818
    """Nothing is open any more that the loop would run for."""


class WaitedTooLong(TimeoutError):  # noqa: N818
    """The caller's time is up. What it waited for goes on."""


def wait(future: Future[T], timeout: float | None = None) -> T:
    """Wait for a call and return what it returns. A caller who does not wait to its end cancels it.

    Raises:
        WaitedTooLong: The time is up.
    """
    try:
        return _result(future, timeout)
    except TimeoutError:
        if future.done():  # it is the call's own, or it came just when the time was up
            return future.result()
        future.cancel()
        raise WaitedTooLong from None
    except BaseException:
        future.cancel()
        raise


class LoopThread:
    """An event loop in a thread of its own, for as long as something is held open in it."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._held: dict[Held[Any], None] = {}
        self._nothing_held = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        # A daemon: others would have to end before the interpreter lets us know that it exits.
        self._thread = threading.Thread(target=self._main, name="thinkwell.sync", daemon=True)
        self.ended = False
        """Whether it takes no more calls."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of that in which the loop runs."""
        return os.getpid() != self._pid

    @property
    def _is_here(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def submit(self, function: Callable[[*Args], Awaitable[T]], *args: *Args) -> Future[T]:
        """Begin a call in the loop, which sees the caller's context variables.

        Raises:
            LoopEnded: Nothing is open any more.
            RuntimeError: This process is a fork.
        """
        if self.forked:
            raise RuntimeError(FORKED)
        future: Future[T] = Future()
        with _lock:
            if self.ended:
                raise LoopEnded
            self._loop.call_soon_threadsafe(self._begin, future, function, args, context=_context())
        return future

    def _begin(self, future: Future[T], function: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> None:
        task = self._loop.create_task(_settle(future, function, args))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def cancelled(future: Future[T]) -> None:
            if future.cancelled():
                self.post(task.cancel)

        future.add_done_callback(cancelled)

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the loop some time, unless it has ended. It must not raise."""
        with contextlib.suppress(RuntimeError):  # it has
            self._loop.call_soon_threadsafe(function)

    def call(
        self, function: Callable[[*Args], Awaitable[T]], *args: *Args, timeout: float | None = None
    ) -> T:
        """Call an async function in the loop and wait for what it returns.

        Args:
            function: What to call.
            args: Its arguments.
            timeout: Seconds to wait.

        Raises:
            WaitedTooLong: The time is up. The call is cancelled.
            LoopEnded: Nothing is open any more.
            RuntimeError: This is the loop's own thread, or a fork.
        """
        if self._is_here:
            raise RuntimeError(ON_THE_LOOP)
        return wait(self.submit(function, *args), timeout)

    def ask(self, function: Callable[[*Args], T], *args: *Args) -> T:
        """Call a function that does not block where nothing changes meanwhile.

        Raises:
            RuntimeError: This process is a fork.
        """
        if self._is_here:
            return function(*args)
        try:
            future = self.submit(_called, function, args)
        except LoopEnded:
            self._thread.join()
            with _lock:
                return function(*args)
        return wait(future)

    # What is held open

    def admit(self, held: Held[Any]) -> None:
        """Let something be held open. The lock is held."""
        held.left = self.submit(held.main)
        self._held[held] = None

    def dismiss(self, held: Held[Any]) -> None:
        """Forget what was left. With the last of them, the loop ends."""
        with _lock:
            del self._held[held]
            if not self._held:
                self.ended = True
                self._nothing_held.set()

    def join(self) -> None:
        """Where the loop has ended, wait until its thread has."""
        if self.ended:
            self._thread.join()

    def close(self) -> None:
        """Leave all that is held open; Ctrl-C meanwhile kills it."""
        while not self.ended:
            try:
                for held in tuple(self._held):
                    held.leave()
                self._thread.join()
            except KeyboardInterrupt:
                for held in tuple(self._held):
                    held.kill()
        self._thread.join()

    def leave_abandoned(self) -> None:
        """Leave what nobody can leave any more: now that the main thread has ended, and from time to time.

        What another thread has opened stays open for as long as Python waits for that thread.
        """
        for held in tuple(self._held):
            if held.opener.daemon or held.opener is threading.main_thread() or not held.opener.is_alive():
                held.leave()
        self.post(lambda: self._loop.call_later(LOOK_INTERVAL, self.leave_abandoned))

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            main = runner.get_loop().create_task(self._serve())
            while not main.done():
                # What a function of the user's raises stops the loop, and is also on its way to who waits.
                with contextlib.suppress(KeyboardInterrupt, SystemExit):
                    self._loop.run_until_complete(main)

    async def _serve(self) -> None:
        await self._nothing_held.wait()
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))


async def _settle(future: Future[T], function: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> None:
    """Call a function and pass on what comes of it."""
    try:
        value = await function(*args)
    except asyncio.CancelledError:
        future.cancel()
        future.set_running_or_notify_cancel()
    except BaseException as exc:
        if future.set_running_or_notify_cancel():
            future.set_exception(exc)
    else:
        if future.set_running_or_notify_cancel():
            future.set_result(value)


async def _called(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    return function(*args)


def _context() -> Context:
    """Return the caller's context variables, without what says that trio is running."""
    context = copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:  # pragma: no branch - it comes with trio, which the tests have
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context


class Held(Generic[T]):
    """An async context manager that a task of the loop has entered, and leaves when it is told to.

    Args:
        loop: Where.
        manager: Makes it.
        outer: What it was opened within: it is left before that is.
        kill: Ends at once what was entered.
    """

    def __init__(
        self,
        loop: LoopThread,
        manager: Callable[[], AbstractAsyncContextManager[T]],
        *,
        outer: Held[Any] | None = None,
        kill: Callable[[T], None] | None = None,
    ) -> None:
        self.loop = loop
        self.left: Future[None]
        """Done when it was left, or was never entered."""
        self._manager = manager
        self._outer = outer
        self._kill = kill
        self._entered: Future[T] = Future()
        self.opener = threading.current_thread()
        self._inner: dict[Held[Any], None] = {}
        self._leaving = asyncio.Event()
        self._over = asyncio.Event()
        self._scope: anyio.CancelScope | None = None

    async def main(self) -> None:
        """Enter, wait, and leave."""
        if self._outer is not None:
            self._outer._inner[self] = None
        try:
            with anyio.CancelScope() as self._scope:
                if not self._leaving.is_set():
                    await self._hold()
        except BaseException as exc:
            if self._entered.done():
                raise
            self._entered.set_exception(exc)
        finally:
            self._entered.cancel()
            if self._outer is not None:
                del self._outer._inner[self]
            self._over.set()
            self.loop.dismiss(self)

    async def _hold(self) -> None:
        async with self._manager() as value:
            self._entered.set_result(value)
            await self._leaving.wait()
            while self._inner:
                inner = next(reversed(self._inner))
                inner._leave()
                await inner._over.wait()

    def enter(self) -> T:
        """Wait until it was entered. A caller who does not wait to the end leaves it."""
        try:
            return _result(self._entered, None)
        except CancelledError:
            raise AgentClosed from None  # the interpreter exits
        except BaseException:
            self.close()
            raise

    def leave(self) -> None:
        """Ask for it to be left. Returns at once."""
        self.loop.post(self._leave)

    def _leave(self) -> None:
        self._leaving.set()
        if not self._entered.done() and self._scope is not None:
            self._scope.cancel()

    def kill(self) -> None:
        """End at once what was entered, where it was."""
        self.loop.post(self._end)

    def _end(self) -> None:
        if self._kill is not None and self._entered.done() and not self._over.is_set():
            self._kill(self._entered.result())

    def close(self) -> None:
        """Leave it and wait until it was left. Ctrl-C meanwhile kills it, and is raised at the end."""
        if self.loop.forked:
            return  # it is not ours
        self.leave()
        interrupted: KeyboardInterrupt | None = None
        while True:
            try:
                self.left.exception()
                self.loop.join()
                break
            except KeyboardInterrupt as exc:
                interrupted = exc
                self.kill()
        if interrupted is not None:
            raise interrupted
        self.left.result()


def hold(
    manager: Callable[[], AbstractAsyncContextManager[T]],
    *,
    within: Held[Any] | None = None,
    kill: Callable[[T], None] | None = None,
) -> Held[T]:
    """Enter an async context manager in the process's loop, which is started where there is none.

    Args:
        manager: Makes it.
        within: What it is opened within.
        kill: Ends at once what was entered.

    Raises:
        LoopEnded: What it would be opened within is closed, and so is everything else.
        RuntimeError: This is the loop's own thread, or that is another process's.
    """
    global _current
    with _lock:
        loop = _current if within is None else within.loop
        if loop is None or (within is None and loop.ended):
            loop = _current = LoopThread()
            loop.start()
        if loop._is_here:
            raise RuntimeError(ON_THE_LOOP)
        held = Held(loop, manager, outer=within, kill=kill)
        loop.admit(held)
    return held


_lock = threading.RLock()
"""Held for a few steps at a time. A handler of signals may come in between, and use this API too."""

_current: LoopThread | None = None


def _forget() -> None:
    """Begin anew in a process that was forked: the thread is not there."""
    global _lock, _current
    _lock = threading.RLock()
    _current = None


def _main_thread_ended() -> None:
    if _current is not None:
        _current.leave_abandoned()


def _exit() -> None:
    if _current is not None:
        _current.close()


atexit.register(_exit)
# The interpreter waits for threads first, and those that have run a tool end with the loop.
_before_threads: Callable[[Callable[[], None]], object] = getattr(
    threading, "_register_atexit", atexit.register
)
_before_threads(_main_thread_ended)

if hasattr(os, "register_at_fork"):  # pragma: no branch - the tests run on POSIX
    os.register_at_fork(after_in_child=_forget)
