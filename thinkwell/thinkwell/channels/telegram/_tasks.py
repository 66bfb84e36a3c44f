"""Background tasks of a channel."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVarTuple

from thinkwell.channels.telegram._errors import TelegramError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Args = TypeVarTuple("Args")

logger = logging.getLogger("thinkwell")


def logged(function: Callable[[*Args], Awaitable[object]], *args: *Args) -> Callable[[], Awaitable[None]]:
    """Return a function for a background task. An exception is logged, and does not affect other tasks."""

    async def run() -> None:
        try:
            await function(*args)
        except TelegramError as exc:
            logger.info("%s", exc)
        except Exception as exc:
            # Without its text: the HTTP client may put the address of a request, with the token, into it.
            logger.warning("A task of a Telegram channel failed: %s", _kinds(exc))

    return run


def _kinds(error: BaseException) -> str:
    """Return the class of an exception; of a group, those of its members."""
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return ", ".join(map(_kinds, inner)) or type(error).__name__
