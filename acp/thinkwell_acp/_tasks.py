"""Tasks that serve a block of code, and live exactly as long as it."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar, TypeVarTuple, cast

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskGroup

Args = TypeVarTuple("Args")
T = TypeVar("T")


class InOrder(Generic[T]):
    """Serves each item in its own task. The tasks begin in the order of the items.

    An event loop may begin tasks in any order, as trio does. So a task is not started for a particular item:
    it takes the first one that is left.

    Args:
        serve: Serves an item. It must not raise.
    """

    def __init__(self, serve: Callable[[T], Awaitable[object]]) -> None:
        self._serve = serve
        self._waiting: deque[T] = deque()

    def start_soon(self, tasks: BackgroundTasks | TaskGroup, item: T) -> None:
        """Serve an item in a task. It may see the context variables of the caller for another item."""
        self._waiting.append(item)
        tasks.start_soon(self._serve_next)

    async def _serve_next(self) -> None:
        await self._serve(self._waiting.popleft())


class BackgroundTasks:
    """Starts tasks; made by `background_tasks`."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._scopes: set[anyio.CancelScope] = set()
        self._ended = False
        self._ordered: InOrder[Callable[[], Awaitable[object]]] = InOrder(_call)

    def start_soon(
        self,
        function: Callable[[*Args], Awaitable[object]],
        *args: *Args,
        never: Callable[[], None] | None = None,
    ) -> None:
        """Run a function in a task. It must not raise.

        Args:
            function: The function to run.
            args: Its arguments.
            never: Called if the block ends before the function has begun: it then never runs.
        """
        if self._ended and never is not None:
            never()
        else:
            self._group.start_soon(self._run, function, args, never)

    def start_in_order(self, function: Callable[[*Args], Awaitable[object]], *args: *Args) -> None:
        """Run a function in a task. Functions run by this method begin in the order of its calls.

        It may see the context variables of another of these calls. It must not raise.
        """
        self._ordered.start_soon(self, partial(function, *args))

    async def _run(
        self,
        function: Callable[[*Args], Awaitable[object]],
        args: tuple[*Args],
        never: Callable[[], None] | None,
    ) -> None:
        with anyio.CancelScope(shield=True) as scope:
            if self._ended:
                if never is not None:
                    never()
                return
            self._scopes.add(scope)
            try:
                await function(*args)
            finally:
                self._scopes.discard(scope)

    def cancel(self) -> None:
        """Cancel the tasks. Those that have not begun never will."""
        self._ended = True
        for scope in self._scopes:
            scope.cancel()


@asynccontextmanager
async def background_tasks() -> AsyncGenerator[BackgroundTasks]:
    """Run tasks during a block. They are cancelled when it ends.

    Three things differ from a task group. An exception of the block is raised unchanged, not in an exception
    group, so that ``except ValueError`` around ``async with connect(…)`` works. A cancellation from outside
    reaches the block only, so that its ``finally`` can still use its tasks to end cleanly. And trio raises
    Ctrl-C only in the program's main task, as asyncio does, never in these tasks.
    """
    if "trio" in sys.modules:  # otherwise trio is not running, and may not be installed
        from trio.lowlevel import enable_ki_protection

        enable_ki_protection(BackgroundTasks._run)
    raised: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            tasks = BackgroundTasks(group)
            try:
                yield tasks
            except BaseException as exc:
                raised = exc
                raise
            finally:
                tasks.cancel()
    except BaseExceptionGroup as group_error:
        leaves = _leaves(group_error)
        if raised is None or not set(leaves) <= set(_leaves(raised)):
            if all(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
                raise leaves[0] from None  # pragma: no cover - Ctrl-C on asyncio, in whichever task it comes
            raise
    if raised is not None:
        raise raised


async def _call(function: Callable[[], Awaitable[object]]) -> None:
    await function()


def _leaves(error: BaseException) -> list[BaseException]:
    """Return the exceptions within nested groups: trio copies the groups, but not their members."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for inner in group.exceptions for leaf in _leaves(inner)]
