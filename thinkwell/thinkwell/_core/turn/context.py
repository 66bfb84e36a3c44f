"""Context variables of the caller, for calls of the caller's code from elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("adopted", "copy_context")


@contextmanager
def adopted(context: Context) -> Generator[None]:
    """Let a block see the context variables of another task: a request's id, a trace, the user."""
    here = copy_context()
    tokens = [(var, var.set(value)) for var, value in context.items() if here.get(var, here) is not value]
    try:
        yield
    finally:
        for var, token in tokens:
            var.reset(token)
