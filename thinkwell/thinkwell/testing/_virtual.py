"""Virtual time, and an order of tasks that a seed decides, on both event loops.

A wait of an hour takes no time: if nothing can run, the clock jumps to the next timer. With a seed, tasks
that could run at the same time do so in an order that the seed decides, and that is the same in every
process: sets of tasks, which are ordered by address, have no influence.

Threads, processes and sockets still use real time. While a task waits for a thread that anyio or asyncio has
started for it, the clock stands still: otherwise hours might pass for the thread.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import time
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, ref

from thinkwell.testing import _virtual_threads
from thinkwell.testing._virtual_threads import Threads, follow_threads

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine

    from typing_extensions import TypeVarTuple, Unpack

    T = TypeVar("T")
    Ts = TypeVarTuple("Ts")

Backend: TypeAlias = tuple[str, dict[str, Any]]
"""The backend and the backend options of `anyio.run`; an ``anyio_backend`` fixture may return it."""

FIRST_TIME: Final = 1000.0

FOR_EVER: Final = 24 * 3600.0
"""The seconds that asyncio waits without a timer. Such a wait is for a thread."""

WAIT: Final = 0.01
"""Seconds to wait for a thread, in real time."""

LEAST_STEP: Final = 1e-6
"""Less than this may be invisible on the clock."""


class _JumpingSelector(selectors.SelectSelector):
    """Moves the clock to the next timer instead of waiting for it, unless a file is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now = FIRST_TIME
        self.threads = Threads()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout >= FOR_EVER:
            return super().select(None if timeout is None else WAIT)
        ready = super().select(_virtual_threads.PATIENCE if timeout > 0 and self.threads else 0)
        if not ready and timeout > 0:
            self.threads.give_up()
            self.now += max(timeout, LEAST_STEP)
        return ready


class _Task(asyncio.Task[Any]):
    number = 0
    """Identifies tasks in the same way in every process."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio with a virtual clock, like `trio.testing.MockClock` for trio.

    Args:
        seed: Decides the order of tasks that are ready at the same time; ``None``: asyncio's own order.
    """

    _ready: deque[asyncio.Handle]

    def __init__(self, seed: int | None = None) -> None:
        self._jumping = _JumpingSelector()
        self._numbers = count(1)
        self._dice = None if seed is None else random.Random(seed)  # noqa: S311 - nothing secret
        super().__init__(self._jumping)
        if seed is not None:
            self.set_task_factory(self._new_task)

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._jumping.now

    @property
    def threads(self) -> Threads:
        """The threads that tasks wait for."""
        return self._jumping.threads

    def run_in_executor(
        self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in a thread of asyncio, while the clock stands still."""
        future = super().run_in_executor(executor, func, *args)
        work = self.threads.begin()
        future.add_done_callback(lambda _: self.threads.end(work))
        return future

    async def shutdown_default_executor(self, *args: Any) -> None:
        """Wait for those threads, while the clock stands still; otherwise the time limit ends at once."""
        work = self.threads.begin()
        try:
            await super().shutdown_default_executor(*args)
        finally:
            self.threads.end(work)

    def _new_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task: Coroutine[Any, Any, Any] = coro
        made = _Task(task, loop=loop, **options)
        made.number = next(self._numbers)
        return made

    def _run_once(self) -> None:
        """Shuffle the ready tasks; other callbacks keep their places."""
        if self._dice is not None and len(self._ready) > 1:
            handles = list(self._ready)
            places = [index for index, handle in enumerate(handles) if _number(handle)]
            tasks = sorted((handles[place] for place in places), key=_number)
            self._dice.shuffle(tasks)
            for place, handle in zip(places, tasks, strict=True):
                self._ready[place] = handle
        super()._run_once()  # type: ignore[misc]  # every loop of the standard library has it


def _number(handle: asyncio.Handle) -> int:
    """Return the number of the task of a handle; 0 if it is not a task."""
    owner = getattr(getattr(handle, "_callback", None), "__self__", None)
    return owner.number if isinstance(owner, _Task) else 0


class SeededTrio:
    """Seeds trio's dice during a run: trio uses them for the order of tasks."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._before = False

    def before_run(self) -> None:
        """Start."""
        scheduler = _trio_scheduler()
        scheduler._r.seed(self._seed)
        self._before = scheduler._ALLOW_DETERMINISTIC_SCHEDULING
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True

    def after_run(self) -> None:
        """End."""
        scheduler = _trio_scheduler()
        scheduler._r.seed()
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = self._before


def _trio_scheduler() -> Any:
    import trio

    return trio._core._run


def virtual_backend(name: str, seed: int | None = None) -> Backend:
    """Return an event loop with virtual time, for an ``anyio_backend`` fixture or `anyio.run`.

    Args:
        name: ``asyncio`` or ``trio``.
        seed: Decides the order of tasks; ``None`` for the event loop's own order.

    Raises:
        ValueError: The event loop is unknown.
    """
    if name == "asyncio":
        follow_threads(name, _threads_of_asyncio)
        return name, {"loop_factory": partial(VirtualLoop, seed)}
    if name != "trio":
        raise ValueError(f'virtual_backend({name!r}): choose "asyncio" or "trio"')
    from trio.testing import MockClock

    follow_threads(name, _threads_of_trio)
    clock = MockClock(autojump_threshold=0)
    threads = _clocks[clock] = Threads(partial(_hold, ref(clock)))
    instruments = (_Impatience(threads), *(() if seed is None else (SeededTrio(seed),)))
    return name, {"clock": clock, "instruments": instruments}


_clocks: Final[WeakKeyDictionary[Any, Threads]] = WeakKeyDictionary()
"""The threads that tasks wait for, by trio's clocks."""


class _Impatience:
    """Gives up threads that trio has waited for too long, before its clock jumps."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._since = 0.0

    def before_io_wait(self, timeout: float) -> None:
        """Note that trio begins to wait."""
        self._since = time.monotonic()

    def after_io_wait(self, timeout: float) -> None:
        """Note that trio has waited."""
        if self._threads and time.monotonic() - self._since >= _virtual_threads.PATIENCE:
            self._threads.give_up()


def _hold(clock: Callable[[], Any], held: bool) -> None:
    """Stop a clock of trio while there are threads, or let it continue."""
    clock().autojump_threshold = _virtual_threads.PATIENCE if held else 0


def _threads_of_asyncio() -> Threads | None:
    loop = asyncio.get_running_loop()
    return loop.threads if isinstance(loop, VirtualLoop) else None


def _threads_of_trio() -> Threads | None:
    from trio.lowlevel import current_clock

    return _clocks.get(current_clock())
