"""Recordings that every display is tested with, and what each of them makes of it, kept in files.

``THINKWELL_WRITE_GOLDEN=1 pytest tests/progress`` writes the files anew; look at what has changed in them.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from progress.stage import State

from thinkwell import replay
from thinkwell.testing import virtual_backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import ThoughtEvent, ThoughtStream

RECORDINGS: Final = Path(__file__).parent / "recordings"
GOLDEN: Final = Path(__file__).parent / "expected"
WRITE: Final = "THINKWELL_WRITE_GOLDEN"

NAMES: Final = ("rich", "hostile", "died", "missing", "cancelled", "nested")
"""The recordings; ``scenes.py`` says what happens in each."""

WIDTHS: Final = (60, 100, 140)

every_recording: Final = pytest.mark.parametrize("name", NAMES)
every_width: Final = pytest.mark.parametrize("width", WIDTHS)


def recording(name: str) -> Path:
    """Return the file of a recording."""
    return RECORDINGS / f"{name}.ndjson"


def events(name: str) -> tuple[ThoughtEvent, ...]:
    """Return all events of a recorded run."""
    return events_in(recording(name))


def steps(name: str) -> tuple[State, ...]:
    """Return a recorded run as it stood after each moment in which something happened, up to its end."""
    return steps_in(recording(name))


@cache
def events_in(file: Path) -> tuple[ThoughtEvent, ...]:
    """Return all events of the run in a file."""
    stream = replay(file, speed=0, include="all")
    stream.result.exception()  # else a run that failed is said to be forgotten
    return tuple(stream._log.events)


@cache
def steps_in(file: Path) -> tuple[State, ...]:
    """Return the run in a file as it stood after each moment in which something happened, up to its end."""
    with ThreadPoolExecutor(1) as thread:  # the caller's own may have an event loop
        return thread.submit(_run_steps, file).result()


def _run_steps(file: Path) -> tuple[State, ...]:
    backend, options = virtual_backend("asyncio")
    return anyio.run(_steps, file, backend=backend, backend_options=options)


def final(name: str) -> State:
    """Return a recorded run at its end."""
    return steps(name)[-1]


@cache
def together(*names: str) -> tuple[tuple[State, ...], ...]:
    """Return several runs that began at the same time, as they stood after each moment."""
    times = sorted({step.now for name in names for step in steps(name)})
    return tuple(
        tuple(
            replace(
                [step for step in steps(name) if step.now <= now][-1],
                label=name,
                now=min(now, final(name).now),
            )
            for name in names
        )
        for now in times
    )


async def _steps(file: Path) -> tuple[State, ...]:
    times = sorted({max(event.at, 0.0) for event in events_in(file)})
    stream = replay(file, include="all")
    began = anyio.current_time()
    seen: list[State] = []
    for at in times:
        await anyio.sleep_until(began + at)
        seen.append(shown(stream, file.stem))
    assert stream.result.done()
    return tuple(seen)


def shown(stream: ThoughtStream[Any], name: str) -> State:
    """Return a run as it stands, as a display is given it."""
    view = stream.view
    text = None
    if stream.result.done() and stream.result.exception() is None:
        value = stream.result._outcome.value[0]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return State(
        label=view.agent, view=view, now=stream.elapsed, result=text, recording=f"runs/{name}.ndjson"
    )


def check(name: str, renderer: str, width: int | None, text: str, *, suffix: str = "txt") -> None:
    """Compare what a display made of a recording with the file that is kept of it.

    Args:
        name: The recording, or whatever it is made of.
        renderer: The display.
        width: How wide it was, where that makes a difference.
        text: What it made.
        suffix: How the file's name ends.
    """
    middle = "" if width is None else f".{width}"
    file = GOLDEN / f"{name}.{renderer}{middle}.{suffix}"
    if os.environ.get(WRITE):
        GOLDEN.mkdir(exist_ok=True)
        file.write_bytes(text.encode())
    assert file.exists(), f"there is no {file.name}: write it by {WRITE}=1, and look at it"
    assert text == file.read_bytes().decode(), f"{file.name} is otherwise; {WRITE}=1 writes it anew"


def each(draw: Callable[[State], str], name: str) -> str:
    """Return what a display makes of every step of a recording, each under its time."""
    return "".join(f"--- {step.now:.1f}\n{draw(step)}\n" for step in steps(name))
