"""Checks of functions that open an agent or a session."""

from __future__ import annotations

import inspect
from contextlib import AbstractAsyncContextManager
from typing import TypeVar, cast

V = TypeVar("V")


def check_context(name: str, given: V, example: str) -> V:
    """Check a function's result that opens something, and return it.

    Args:
        name: The name of the function's argument.
        given: Its result.
        example: An example of a function.

    Raises:
        TypeError: It is not a context manager.
    """
    if not isinstance(cast("object", given), AbstractAsyncContextManager):
        close_coroutine(given)
        raise TypeError(
            f"MessageRouter({name}=…) has returned a {type(given).__name__}, which async with does not take; "
            f"give a function such as {example}"
        )
    return given


def close_coroutine(given: object) -> None:
    """Close a coroutine that will not be awaited, so that Python does not warn about it."""
    if inspect.iscoroutine(given):
        given.close()
