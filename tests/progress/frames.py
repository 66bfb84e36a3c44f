"""Recorded runs as displays are given them: look by look, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from pydantic_core import to_json

from thinkwell import replay
from thinkwell.progress._renderer import Shown
from thinkwell.testing import virtual_backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell import ThoughtStream

RECORDINGS: Final = Path(__file__).parent / "recordings"

EVERY: Final = 0.25
"""Seconds between two looks."""


def looks(name: str, *, every: float = EVERY, asked: bool = True) -> list[Shown]:
    """Return a recorded run at each moment; the last one is its end.

    Args:
        name: Which recording.
        every: Seconds between two looks.
        asked: Whether the keyboard answers the questions.
    """
    backend, options = virtual_backend("asyncio")
    return anyio.run(_looks, name, every, asked, backend=backend, backend_options=options)


async def _looks(name: str, every: float, asked: bool) -> list[Shown]:
    stream = replay(RECORDINGS / f"{name}.ndjson", include="all")
    found = [_shown(stream, asked=asked)]
    while found[-1].view.phase not in ("completed", "failed", "cancelled"):
        await anyio.sleep(every)
        found.append(_shown(stream, asked=asked))
    await stream.wait()
    return [*found, _shown(stream, asked=asked)]


def _shown(stream: ThoughtStream[object], *, asked: bool) -> Shown:
    view = stream.view
    result = None
    if stream.result.done() and stream.result.exception() is None:
        (value,) = stream.result._outcome.value
        result = value if isinstance(value, str) else to_json(value, indent=2).decode()
    return Shown(
        label=view.agent,
        view=view,
        now=stream.elapsed,
        result=result,
        recording="run.ndjson",
        asking=view.questions[0].id if view.questions and asked else None,
    )


def at(found: Sequence[Shown], seconds: float) -> Shown:
    """Return the first look at or after a time."""
    return next(each for each in found if each.now >= seconds)
