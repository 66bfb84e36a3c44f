"""What is checked of what opens an agent or a session."""

from __future__ import annotations

import inspect
from contextlib import AbstractAsyncContextManager
from typing import TypeVar, cast

V = TypeVar("V")


def check_context(name: str, given: V, example: str) -> V:
    """Return what a function has returned that opens something.

    Args:
        name: What the function was given as.
        given: What it has returned.
        example: What it could be.

    Raises:
        TypeError: There is nothing to be opened.
    """
    if not isinstance(cast("object", given), AbstractAsyncContextManager):
        close_coroutine(given)
        raise TypeError(
            f"MessageRouter({name}=…) has returned a {type(given).__name__}, which async with does not take; "
            f"give a function such as {example}"
        )
    return given


def close_coroutine(given: object) -> None:
    """Close what will not be awaited, so that Python does not warn of it."""
    if inspect.iscoroutine(given):
        given.close()
