"""The event loop behind the blocking API: one per process, in its own thread.

All agents share it, so that one can supervise another. It starts with the first agent and ends with the
last. When the interpreter exits, it closes everything still open.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
import threading
from concurrent.futures import CancelledError
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, TypeVarTuple

import anyio
from anyio.lowlevel import checkpoint

from thinkwell.errors import AgentClosed
from thinkwell.sync._blocked_loop import warn_of_blocked_loop
from thinkwell.sync._call import Call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from contextvars import Context

T = TypeVar("T")
Args = TypeVarTuple("Args")

ON_THE_LOOP: Final = (
    "thinkwell.sync was called in its own event loop, which that would block: by an async tool or handler, "
    "or by on_phase. Write the function without async, so that it runs in a thread, or use the async API"
)
LOOK_INTERVAL: Final = 0.05
"""Seconds between checks for ended threads while the interpreter exits."""

FORKED: Final = (
    "this process was forked from the one that opened the agent, and cannot use its connection; open an "
    "agent in this process"
)


class LoopEnded(RuntimeError):  # noqa: N818
    """Nothing is open any more, so the loop has ended."""


class WaitedTooLong(TimeoutError):  # noqa: N818
    """The caller's time is up. The call's work continues."""


class Held(Generic[T]):
    """An async context manager that a task of the loop has entered, and leaves on request.

    Args:
        loop: The loop's thread.
        manager: Makes the context manager.
        outer: The object in which it was opened; this one is left first.
        kill: Ends the entered object at once.
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
        self.entered: Call[T] = Call()
        self.left: Call[None] = Call()
        """Done once it was left, or if it was never entered."""
        self._manager = manager
        self._outer = outer
        self._kill = kill
        self.opener: threading.Thread = threading.current_thread()
        self._inner: dict[Held[Any], None] = {}
        self._hurried = False
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
            if self.entered.done:
                raise
            self.entered.set_exception(exc)
        finally:
            if not self.entered.done:
                self.entered.set_exception(CancelledError())
            if self._outer is not None:
                del self._outer._inner[self]
            self._over.set()
            self.loop.dismiss(self)

    async def _hold(self) -> None:
        async with self._manager() as value:
            self.entered.set_result(value)
            await self._leaving.wait()
            while self._inner:
                inner = next(reversed(self._inner))
                inner.let_go()
                await inner._over.wait()
            if self._hurried:
                assert self._scope is not None
                self._scope.cancel()
                await checkpoint()

    def refuse(self, why: Exception) -> None:
        """Refuse to enter it. Called in the loop."""
        self._over.set()
        self.entered.set_exception(why)
        self.left.set_result(None)

    def leave(self) -> bool:
        """Request that it is left; return whether the loop still gets this. Returns at once."""
        return self.loop.leave(self)

    def let_go(self) -> None:
        """Leave it. Called in the loop."""
        self._leaving.set()
        if not self.entered.done and self._scope is not None:
            self._scope.cancel()

    def kill(self) -> None:
        """End the entered object at once, if there is one."""
        self.loop.post(self._end)

    def _end(self) -> None:
        if self._kill is not None and self.entered.done and not self._over.is_set():
            self._kill(self.entered.result())

    def close(self, *, hurried: bool = False) -> None:
        """Leave it and wait for that. Ctrl-C meanwhile kills it, and is raised at the end.

        Args:
            hurried: Whether to leave it as after an exception: without waiting for what runs in it.
        """
        self._hurried = hurried
        if self.loop.forked:
            return  # it belongs to another process
        self.loop.check_elsewhere()
        interrupted: KeyboardInterrupt | None = None
        while True:
            try:
                if self.leave():
                    self.left.wait()
                self.loop.join()
                break
            except KeyboardInterrupt as exc:
                interrupted = exc
                self.kill()
        if interrupted is not None:
            raise interrupted
        if self.left.done:
            self.left.result()


class LoopThread:
    """An event loop in its own thread, as long as something is open in it."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._held: dict[Held[Any], None] = {}
        self._nothing_held = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        # A daemon: the interpreter waits for other threads before it tells us that it exits.
        self._thread = threading.Thread(target=self._main, name="thinkwell.sync", daemon=True)
        self.ended: bool = False
        """Whether it takes no more calls."""

    def start(self) -> None:
        """Start the thread."""
        try:
            self._thread.start()
        except RuntimeError:  # pragma: no cover - the machine has no more, or the interpreter exits
            self._loop.close()
            raise

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the loop's process."""
        return os.getpid() != self._pid

    def check_elsewhere(self) -> None:
        """Check that the caller is not in the loop's own thread.

        Raises:
            RuntimeError: The caller is in it.
        """
        if self._is_here:
            raise RuntimeError(ON_THE_LOOP)

    @property
    def _is_here(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def _post(self, function: Callable[[*Args], None], *args: *Args) -> None:
        """Call a function in the loop, guaranteed; it sees the caller's context variables.

        Raises:
            LoopEnded: Nothing is open any more.
            RuntimeError: This process is a fork.
        """
        if self.forked:
            raise RuntimeError(FORKED)
        with _lock:  # a call posted before the loop ends runs before its end
            if self.ended:
                raise LoopEnded
            self._loop.call_soon_threadsafe(function, *args, context=_context())

    def _begin(self, call: Call[T], function: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> None:
        if not call.given_up:
            call.task = self._loop.create_task(_settle(call, function, args))
            self._tasks.add(call.task)
            call.task.add_done_callback(self._tasks.discard)

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the loop at some time, unless the loop has ended. It must not raise."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function)

    def call(
        self, function: Callable[[*Args], Awaitable[T]], *args: *Args, timeout: float | None = None
    ) -> T:
        """Call an async function in the loop and wait for its result.

        Args:
            function: The function.
            args: Its arguments.
            timeout: Seconds to wait.

        Raises:
            WaitedTooLong: The time is up. The call is cancelled.
            LoopEnded: Nothing is open any more.
            RuntimeError: This is the loop's own thread, or a fork.
        """
        self.check_elsewhere()
        warn_of_blocked_loop()
        return self._call(function, args, timeout)

    def _call(
        self, function: Callable[..., Awaitable[T]], args: tuple[Any, ...], timeout: float | None = None
    ) -> T:
        call: Call[T] = Call()
        try:
            self._post(self._begin, call, function, args)
            if not call.wait(timeout):
                raise WaitedTooLong
        except BaseException:
            self._give_up(call)
            raise
        return call.result()

    def _give_up(self, call: Call[T]) -> None:
        call.given_up = True

        def cancel() -> None:
            if call.task is not None:
                call.task.cancel()

        self.post(cancel)

    def ask(self, function: Callable[[*Args], T], *args: *Args) -> T:
        """Call a function that does not block, at a moment when nothing changes.

        Raises:
            RuntimeError: This process is a fork.
        """
        if self._is_here:
            return function(*args)
        try:
            value: T = self._call(_called, (function, args))
        except LoopEnded:
            self._thread.join()
            with _lock:
                return function(*args)
        return value

    # Open objects

    def admit(self, held: Held[Any]) -> None:
        """Add an open object.

        It is noted in the loop's thread: Ctrl-C could interrupt the caller between any two steps.

        Raises:
            LoopEnded: Nothing is open any more. If that happens a moment later, `Held.entered` says so.
            RuntimeError: This process is a fork.
        """
        self._post(self._admit, held)

    def _admit(self, held: Held[Any]) -> None:
        if self.ended:
            held.refuse(LoopEnded())
        else:
            self._held[held] = None
            self._begin(held.left, held.main, ())

    def leave(self, held: Held[Any]) -> bool:
        """Request that an object is left, if it was added; return whether the loop still gets this."""
        try:
            self._post(self._leave, held)
        except LoopEnded:
            return False
        return True

    def _leave(self, held: Held[Any]) -> None:
        if held in self._held:
            held.let_go()
        elif not held.left.done:
            held.refuse(LoopEnded())

    def dismiss(self, held: Held[Any]) -> None:
        """Forget an object that was left. The last one ends the loop."""
        with _lock:
            del self._held[held]
            self._end_without_any()

    def _end_without_any(self) -> None:
        if not self._held:
            self.ended = True
            self._nothing_held.set()

    def join(self) -> None:
        """If the loop has ended, wait for its thread."""
        if self.ended:
            self._thread.join()

    def close(self) -> None:
        """Leave everything that is open; Ctrl-C meanwhile kills it."""
        while not self.ended:
            try:
                for held in tuple(self._held):
                    held.leave()
                self.post(self._end_without_any)  # the caller may have been interrupted
                self._thread.join()
            except KeyboardInterrupt:
                for held in tuple(self._held):
                    held.kill()
        self._thread.join()

    def leave_abandoned(self) -> None:
        """Leave what its users cannot leave any more: when the main thread has ended, and now and then.

        Objects that another thread opened stay open as long as Python waits for that thread.
        """
        for held in tuple(self._held):
            if held.opener.daemon or held.opener is threading.main_thread() or not held.opener.is_alive():
                held.leave()
        self.post(lambda: self._loop.call_later(LOOK_INTERVAL, self.leave_abandoned))

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            main = runner.get_loop().create_task(self._serve())
            while not main.done():
                # An exception of a user's function stops the loop, and also goes to the waiter.
                with contextlib.suppress(KeyboardInterrupt, SystemExit):
                    self._loop.run_until_complete(main)

    async def _serve(self) -> None:
        await self._nothing_held.wait()
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))


async def _settle(call: Call[T], function: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> None:
    """Call a function and pass on its result or error."""
    try:
        value = await function(*args)
    except asyncio.CancelledError:
        call.set_exception(CancelledError())
    except BaseException as exc:
        call.set_exception(exc)
    else:
        call.set_result(value)


async def _called(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    return function(*args)


def _context() -> Context:
    """Return the caller's context variables, without the one that says that trio is running."""
    context = copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:  # pragma: no branch - it comes with trio, which the tests have
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context


def hold(
    manager: Callable[[], AbstractAsyncContextManager[T]],
    *,
    within: Held[Any] | None = None,
    kill: Callable[[T], None] | None = None,
) -> tuple[Held[T], T]:
    """Enter an async context manager in the process's loop; start the loop if there is none.

    A caller who does not wait to the end leaves it.

    Args:
        manager: Makes the context manager.
        within: The object in which it is opened.
        kill: Ends the entered object at once.

    Returns:
        The object that leaves it, and the entered object.

    Raises:
        LoopEnded: The object around it is closed, and so is everything else.
        RuntimeError: This is the loop's own thread, or the loop belongs to another process.
    """
    while True:
        loop = _running_loop() if within is None else within.loop
        loop.check_elsewhere()
        held = Held(loop, manager, outer=within, kill=kill)
        try:
            loop.admit(held)
            warn_of_blocked_loop()
            held.entered.wait()
            return held, held.entered.result()
        except LoopEnded:
            if within is not None:
                raise
        except CancelledError:
            raise AgentClosed from None  # the interpreter exits
        except BaseException:
            held.close()
            raise


def call_once(function: Callable[[], Awaitable[T]]) -> T:
    """Call an async function that needs nothing open in the process's loop, and return its result.

    Raises:
        RuntimeError: This is the loop's own thread.
    """

    @contextlib.asynccontextmanager
    async def called() -> AsyncGenerator[T]:
        yield await function()

    held, value = hold(called)
    held.close()
    return value


def _running_loop() -> LoopThread:
    global _current
    with _lock:
        if _current is None or _current.ended:
            loop = LoopThread()
            loop.start()
            _current = loop
        return _current


_lock = threading.RLock()
"""Held for a few steps at a time. A signal handler may run in between, and use this API too."""

_current: LoopThread | None = None


def _forget() -> None:
    """Start over in a forked process, which does not have the thread."""
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
# The interpreter waits for threads first; those that ran a tool end with the loop.
_before_threads: Callable[[Callable[[], None]], object] = getattr(
    threading, "_register_atexit", atexit.register
)
_before_threads(_main_thread_ended)

if hasattr(os, "register_at_fork"):  # pragma: no branch - the tests run on POSIX
    os.register_at_fork(after_in_child=_forget)
