"""Calls of channels' methods, which users have written."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final, TypeVar

from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

V = TypeVar("V")

ERROR: Final = 500
"""Most characters of an exception's text."""


class NotAsynchronous(TypeError):  # noqa: N818 - says what the method is
    """A method that must be asynchronous is not.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not asynchronous: write async def {name.rpartition('.')[2]}")


def begun(name: str, function: Callable[..., Awaitable[V]], *arguments: object) -> Awaitable[V]:
    """Call a function, and return its awaitable.

    Raises:
        NotAsynchronous: The result cannot be awaited. The function has run.
        Exception: Raised by the function.
    """
    returned: object = function(*arguments)
    if not inspect.isawaitable(returned):
        raise NotAsynchronous(name)
    return returned


def may_pass(error: BaseException | None) -> bool:
    """Return whether a retry is worthwhile: the channel has not said that the error is permanent."""
    return getattr(error, "temporary", None) is not False


def retry_after(error: Exception) -> float | None:
    """Return the seconds after which the channel accepts calls again, if it says so."""
    told: object = getattr(error, "retry_after", None)
    return told if isinstance(told, int | float) and told >= 0 and may_pass(error) else None


def said_by(error: BaseException) -> str:
    """Return an exception's text as a clean line, whatever its type does. It may be empty."""
    try:
        return line(str(error), ERROR)
    except Exception:
        return ""


def in_words(error: BaseException) -> str:
    """Return an exception's type and text as a clean line."""
    return ": ".join(filter(None, (type(error).__name__, said_by(error))))
