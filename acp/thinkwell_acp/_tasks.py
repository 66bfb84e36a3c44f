"""A task group whose block keeps its own exceptions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """Run tasks that serve a block and are cancelled when it ends.

    A bare task group would wrap whatever the block raises into an exception group, so that ``except ValueError`` around
    ``async with connect(…)`` would not work. Here an exception of the block passes as it is. The tasks themselves must
    not raise; where one does, it is a defect, and the group comes out to show it.
    """
    raised: BaseException | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            except BaseException as exc:
                raised = exc
                raise
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if raised is None or any(exc is not raised for exc in group.exceptions):
            raise
    if raised is not None:
        raise raised
