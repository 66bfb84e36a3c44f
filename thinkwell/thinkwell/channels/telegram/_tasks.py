"""What a channel does beside the calls that are made of it."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVarTuple, cast

import anyio

from thinkwell.channels.telegram._errors import TelegramError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskGroup

__all__ = ("Tasks", "open_tasks")

Args = TypeVarTuple("Args")

logger = logging.getLogger("thinkwell")


class Tasks:
    """Starts tasks; made by `open_tasks`. What one of them raises is logged, and does no harm to others."""

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
                # No text of it: the HTTP client may name the address of a request, which holds the token.
                kinds = ", ".join(type(each).__name__ for each in _leaves(exc))
                logger.warning("A task of a Telegram channel has failed: %s", kinds)
            finally:
                self._scopes.discard(scope)

    def cancel(self) -> None:
        """Cancel the tasks; none begins any more."""
        self._ended = True
        for scope in self._scopes:
            scope.cancel()


@asynccontextmanager
async def open_tasks() -> AsyncGenerator[Tasks]:
    """Run tasks for the time of a block; they are cancelled when it ends.

    An exception of the block passes as it is, not in a group. A cancellation from outside reaches the block
    only: what that does to end well still has its tasks at work.
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
    """Return the exceptions in nested groups: trio copies the groups, but not what they hold."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for inner in group.exceptions for leaf in _leaves(inner)]
