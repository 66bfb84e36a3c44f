"""Counts the threads that tasks wait for, so that virtual time does not jump over their work.

An event loop does not know that it waits for a thread: it only sees that no task can run. So two functions of
anyio's backends are wrapped: the one that runs a function in a thread, and the one by which a thread calls
the event loop. Without virtual time they do nothing else.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

PATIENCE: Final = 2.0
"""Seconds of real time for which a clock stands still while only threads can run. Slower ones may be waiting
for a later time themselves, and stop the clock no longer."""

_followed: Final[set[str]] = set()
_here: Final = threading.local()


class _Work:
    """The work of a thread."""

    __slots__ = ("is_awaited",)

    def __init__(self) -> None:
        self.is_awaited = True
        """Whether a task still waits for it."""


class Threads:
    """The threads that the tasks of an event loop wait for.

    Args:
        on_change: Called with whether there are any, when that changes.
    """

    def __init__(self, on_change: Callable[[bool], None] | None = None) -> None:
        self._working: set[_Work] = set()
        self._on_change = on_change

    def __bool__(self) -> bool:
        return bool(self._working)

    def begin(self) -> _Work:
        """Note that a task waits for a thread."""
        work = _Work()
        self._note(work, works=True)
        return work

    def end(self, work: _Work) -> None:
        """Note that the task waits no more: the work is done, or not needed."""
        work.is_awaited = False
        self._note(work, works=False)

    def give_up(self) -> None:
        """Ignore the running threads from now on."""
        for work in tuple(self._working):
            self.end(work)

    @contextmanager
    def away(self, work: _Work) -> Generator[None]:
        """During a block, the thread itself waits for the event loop."""
        self._note(work, works=False)
        try:
            yield
        finally:
            self._note(work, works=work.is_awaited)

    def _note(self, work: _Work, *, works: bool) -> None:
        had = bool(self._working)
        if works:
            self._working.add(work)
        else:
            self._working.discard(work)
        if self._on_change is not None and had != bool(self._working):
            self._on_change(not had)


def follow_threads(name: str, threads_here: Callable[[], Threads | None]) -> None:
    """Let one of anyio's backends report threads from now on.

    Args:
        name: The name of the backend.
        threads_here: Returns those of the running event loop; ``None``: it has no virtual time.
    """
    if name not in _followed:
        _followed.add(name)
        backend = import_module(f"anyio._backends._{name}").backend_class
        _follow_to_threads(backend, threads_here)
        _follow_from_threads(backend, threads_here)


def _follow_to_threads(backend: Any, threads_here: Callable[[], Threads | None]) -> None:
    run_there = backend.run_sync_in_worker_thread

    async def counted(func: Callable[..., object], args: tuple[object, ...], *rest: Any, **named: Any) -> Any:
        threads = threads_here()
        if threads is None:
            return await run_there(func, args, *rest, **named)
        work = threads.begin()

        def known() -> object:
            _here.work = work
            try:
                return func(*args)
            finally:
                del _here.work

        try:
            return await run_there(known, (), *rest, **named)
        finally:
            threads.end(work)

    backend.run_sync_in_worker_thread = counted


def _follow_from_threads(backend: Any, threads_here: Callable[[], Threads | None]) -> None:
    run_here = backend.run_async_from_thread

    def counted(
        func: Callable[..., Awaitable[object]], args: tuple[object, ...], *rest: Any, **named: Any
    ) -> Any:
        work: _Work | None = getattr(_here, "work", None)

        async def known() -> object:
            threads = threads_here()
            if threads is None or work is None:
                return await func(*args)
            with threads.away(work):
                return await func(*args)

        return run_here(known, (), *rest, **named)

    backend.run_async_from_thread = counted
