"""The agents that this process has open: a worker that has no time left kills all of them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent, Opening

__all__ = ("kill_all", "killable")

_opened: Final = set["Opening[Agent]"]()


@asynccontextmanager
async def killable(opening: Opening[Agent]) -> AsyncGenerator[Agent]:
    """Open an agent for a block; `kill_all` kills it, also while it starts and while it ends."""
    _opened.add(opening)
    try:
        async with opening as agent:
            yield agent
    finally:
        _opened.discard(opening)


def kill_all() -> None:
    """Kill the agents, from any thread."""
    for hold in filter(None, [opening._hold for opening in tuple(_opened)]):
        hold.hurry()
