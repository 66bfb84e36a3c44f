"""Calls into the event loop from other threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def call_soon(loop: Any, function: Callable[[], object]) -> None:
    """Call a function in an event loop from another thread. It does not wait; anyio's own function would."""
    if hasattr(loop, "run_sync_soon"):  # trio
        loop.run_sync_soon(function)
    else:
        loop.call_soon_threadsafe(function)
