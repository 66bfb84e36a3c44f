"""Background tasks of a channel."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVarTuple

from thinkwell._core.exit import background_tasks
from thinkwell.channels.telegram._errors import TelegramError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from thinkwell._core.exit import BackgroundTasks

Args = TypeVarTuple("Args")

logger = logging.getLogger("thinkwell")


class Tasks:
    """Starts tasks; made by `open_tasks`. An exception in a task is logged, and does not affect others."""

    def __init__(self, tasks: BackgroundTasks) -> None:
        self._tasks = tasks

    def start_soon(
        self,
        function: Callable[[*Args], Awaitable[object]],
        *args: *Args,
        never: Callable[[], None] = lambda: None,
    ) -> None:
        """Run a function in a task; call `never` if the channel is closed before the function has begun."""
        self._tasks.start_soon(_run, function, args, never=never)


async def _run(function: Callable[[*Args], Awaitable[object]], args: tuple[*Args]) -> None:
    try:
        await function(*args)
    except TelegramError as exc:
        logger.info("%s", exc)
    except Exception as exc:
        # Without its text: the HTTP client may put the address of a request, with the token, into it.
        logger.warning("A task of a Telegram channel failed: %s", _kinds(exc))


def _kinds(error: BaseException) -> str:
    """Return the class of an exception; of a group, those of its members."""
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return ", ".join(map(_kinds, inner)) or type(error).__name__


@asynccontextmanager
async def open_tasks() -> AsyncGenerator[Tasks]:
    """Run tasks during a block. They are cancelled when it ends; see `background_tasks`."""
    async with background_tasks() as tasks:
        yield Tasks(tasks)
