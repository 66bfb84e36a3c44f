"""Resources that are opened in an event loop, and may be closed by any of its tasks.

A task group must be left by the task that entered it. So a separate task of the event loop opens, holds and
closes a resource with task groups, and callers only wait for that task.
"""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import anyio

from thinkwell._core.log.owner import Owner, in_trio
from thinkwell._core.schema.misuse import hints, not_open

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_holding: Final[set[object]] = set()
"""The tasks that hold resources: asyncio itself would lose them."""


class Hold:
    """Holds a resource open until it is closed, or until the event loop ends.

    Args:
        name: Its name, for errors.
    """

    def __init__(self, name: str) -> None:
        self.owner: Owner = Owner(name)
        """The place where it is open."""
        self.hurry: Callable[[], None] = lambda: None
        """Called when the wait for its end is interrupted, as by a second Ctrl-C."""
        self.patience: anyio.CancelScope = anyio.CancelScope()
        """Entered around the patient part of its end: when neither an exception nor a cancellation closes
        it."""
        self._leaving = anyio.Event()
        self._over = anyio.Event()
        self._error: BaseException | None = None

    async def open(self, make: Callable[[Hold], AbstractAsyncContextManager[T]]) -> T:
        """Open it. Raises what its block would."""
        block = make(self)
        entered: list[T] = []
        tried = anyio.Event()
        scope = anyio.CancelScope()

        async def main() -> None:
            try:
                with scope:
                    async with block as value:
                        entered.append(value)
                        tried.set()
                        await self._leaving.wait()
            except anyio.get_cancelled_exc_class():
                raise  # the event loop ends
            except BaseException as exc:
                self._error = exc
            finally:
                tried.set()
                self._over.set()

        _spawn(main)
        try:
            await tried.wait()
        except BaseException:
            scope.cancel()
            await self._wait()
            raise
        if not entered:
            self._raise()
        return entered[0]

    async def close(self, *, hurried: bool = False) -> None:
        """Close it, and wait for that. No effect if it is already closed.

        Args:
            hurried: Whether an exception or a cancellation closes it.
        """
        if self.owner.forked:
            return  # it belongs to the parent
        if not self._over.is_set():
            self.owner.check()
        if hurried:
            self.patience.cancel()
        self._leaving.set()
        try:
            if not hurried:
                await self._over.wait()
        except BaseException:
            self.patience.cancel()
            await self._wait()
            raise
        await self._wait()
        self._raise()

    async def _wait(self) -> None:
        """Wait for its end. The closed resource bounds that time."""
        with anyio.CancelScope(shield=True):
            try:
                await self._over.wait()
            except BaseException:  # Ctrl-C, or a cancellation of asyncio's own
                self.hurry()
                await self._over.wait()
                raise

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # it refers to this frame


_BLOCK: Final = "write `async with open_agent(…) as agent:`, or use thinkwell.sync; sessions open likewise"


@not_open("async with open_agent(…) as agent:")
@hints(
    __await__="it cannot be awaited: write `async with open_agent(…) as agent:`, or "
    "`agent = await open_agent(…).start()`; sessions open likewise",
    __enter__=_BLOCK,
    __exit__=_BLOCK,
)
class Opening(Generic[T_co]):
    """Opens something with ``async with``, or with `start`.

    Another task in the same event loop may close it.

    Args:
        name: What is opened, for errors.
        make: Creates its block, given what holds it.
        again: Whether that can be done more than once.
    """

    def __init__(
        self, name: str, make: Callable[[Hold], AbstractAsyncContextManager[T_co]], *, again: bool = False
    ) -> None:
        self.name: str = name
        self.again: bool = again
        self.make: Callable[[Hold], AbstractAsyncContextManager[T_co]] = make
        self._hold: Hold | None = None

    async def start(self) -> T_co:
        """Open it until you call its ``close``, or the event loop ends. Raises the errors of the block."""
        if self._hold is not None:
            raise RuntimeError(f"this opens {self.name} only once; call the function that returned it again")
        self._hold = Hold(self.name)
        return await self._hold.open(self.make)

    async def __aenter__(self) -> T_co:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._hold is not None
        await self._hold.close(hurried=error is not None)


def _spawn(main: Callable[[], Coroutine[object, None, None]]) -> None:
    """Start a task without a parent."""
    if in_trio():
        import trio

        trio.lowlevel.spawn_system_task(main, context=copy_context())
        return
    import asyncio

    task = asyncio.get_running_loop().create_task(main())
    _holding.add(task)
    task.add_done_callback(_holding.discard)
