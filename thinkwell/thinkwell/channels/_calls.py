"""Calls of what users have written: the methods of their channels."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from thinkwell._display.numbers import seconds
from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("NotAsynchronous", "begun", "call", "in_words", "may_pass", "retry_after", "said_by")

V = TypeVar("V")

ERROR: Final = 500
"""Characters of what an exception says."""


class NotAsynchronous(TypeError):  # noqa: N818 - says what the method is
    """What has to be asynchronous is not.

    Args:
        name: What it is called.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not asynchronous: write async def {name.rpartition('.')[2]}")


def begun(name: str, function: Callable[..., Awaitable[V]], *arguments: object) -> Awaitable[V]:
    """Return what a function has returned, to be awaited.

    Raises:
        NotAsynchronous: It cannot be awaited. What the function does, it has done.
        Exception: The function has raised it.
    """
    returned: object = function(*arguments)
    if not inspect.isawaitable(returned):
        raise NotAsynchronous(name)
    return returned


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
    returned = begun(name, method, *arguments)
    with anyio.move_on_after(limit) as scope:
        await returned
    if scope.cancelled_caught:
        raise TimeoutError(f"{name} has taken more than {seconds(limit)}")


def may_pass(error: BaseException | None) -> bool:
    """Return whether it is worth to try again what a channel could not do: it has not said that it is not."""
    return getattr(error, "temporary", None) is not False


def retry_after(error: Exception) -> float | None:
    """Return the seconds after which a channel can be asked again, where it says so."""
    told: object = getattr(error, "retry_after", None)
    return told if isinstance(told, int | float) and told >= 0 and may_pass(error) else None


def said_by(error: BaseException) -> str:
    """Return what an exception says, as a clean line, whatever its type does; may be empty."""
    try:
        return line(str(error), ERROR)
    except Exception:
        return ""


def in_words(error: BaseException) -> str:
    """Return what an exception is and says, as a clean line."""
    return ": ".join(filter(None, (type(error).__name__, said_by(error))))
