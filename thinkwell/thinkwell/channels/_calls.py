"""Calls of what users have written: the methods of their channels."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._display.numbers import seconds
from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("NotAsynchronous", "call", "in_words", "said_by")

ERROR: Final = 500
"""Characters of what an exception says."""


class NotAsynchronous(TypeError):  # noqa: N818 - says what the method is
    """The method of a channel has returned something that cannot be awaited. What it does, it has done."""


async def call(method: Callable[..., Awaitable[None]], limit: float, *arguments: object) -> None:
    """Call a method of a channel.

    Args:
        method: The method.
        limit: Seconds that it may take.
        arguments: What to give it.

    Raises:
        NotAsynchronous: It cannot be awaited.
        TimeoutError: It has taken too long.
        Exception: It has failed.
    """
    name = getattr(method, "__name__", "the method")
    returned: object = method(*arguments)
    if not inspect.isawaitable(returned):
        raise NotAsynchronous(f"{name} is not asynchronous: write async def {name}")
    with anyio.move_on_after(limit) as scope:
        await returned
    if scope.cancelled_caught:
        raise TimeoutError(f"{name} has taken more than {seconds(limit)}")


def said_by(error: BaseException) -> str:
    """Return what an exception says, as a clean line, whatever its type does; may be empty."""
    try:
        return line(str(error), ERROR)
    except Exception:
        return ""


def in_words(error: BaseException) -> str:
    """Return what an exception is and says, as a clean line."""
    return ": ".join(filter(None, (type(error).__name__, said_by(error))))
