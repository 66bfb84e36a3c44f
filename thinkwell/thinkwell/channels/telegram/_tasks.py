"""Background tasks of a channel."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVarTuple, cast

import anyio

from thinkwell.channels.telegram._errors import TelegramError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskGroup

Args = TypeVarTuple("Args")

logger = logging.getLogger("thinkwell")


class Tasks:
    """Starts tasks; made by `open_tasks`. An exception in a task is logged, and does not affect others."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._scopes: set[anyio.CancelScope] = set()
        self._ended = False

    def start_soon(self, function: Callable[[*Args], Awaitable[object]], *args: *Args) -> bool:
        """Run a function in a task; return whether that is still possible."""
        if self._ended:
            return False
        scope = anyio.CancelScope(shield=True)
        self._scopes.add(scope)
        self._group.start_soon(self._run, scope, function, args)
        return True

    async def _run(
        self, scope: anyio.CancelScope, function: Callable[[*Args], Awaitable[object]], args: tuple[*Args]
    ) -> None:
        with scope:
            try:
                await function(*args)
            except TelegramError as exc:
                logger.info("%s", exc)
            except Exception as exc:
                # Without its text: the HTTP client may put the address of a request into it, which contains
                # the token.
                kinds = ", ".join(type(each).__name__ for each in _leaves(exc))
                logger.warning("A task of a Telegram channel failed: %s", kinds)
            finally:
                self._scopes.discard(scope)

    def cancel(self) -> None:
        """Cancel the tasks. No more can begin."""
        self._ended = True
        for scope in self._scopes:
            scope.cancel()


@asynccontextmanager
async def open_tasks() -> AsyncGenerator[Tasks]:
    """Run tasks during a block. They are cancelled when it ends.

    An exception of the block is raised unchanged, not in a group. A cancellation from outside reaches the
    block only, which can still use its tasks to end cleanly.
    """
    raised: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            tasks = Tasks(group)
            try:
                yield tasks
            except BaseException as exc:
                raised = exc
                raise
            finally:
                tasks.cancel()
    except BaseExceptionGroup as group_error:
        if raised is None or not set(_leaves(group_error)) <= set(_leaves(raised)):
            raise
    if raised is not None:
        raise raised


def _leaves(error: BaseException) -> list[BaseException]:
    """Return the exceptions in nested groups: trio copies the groups, but not their members."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for inner in group.exceptions for leaf in _leaves(inner)]
