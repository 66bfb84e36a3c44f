"""Writes a report, and what belongs to it, into files."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import anyio
import msgspec
from anyio import to_thread

from thinkwell.errors import RecordingError
from thinkwell.trials._files.atif import trajectory
from thinkwell.trials._files.page import page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path
    from typing import TypeVar

    from thinkwell.trials._statistics import AgentSummary
    from thinkwell.trials._trial import Trial

    T = TypeVar("T")

__all__ = ("save_page", "save_trajectories")

logger = logging.getLogger("thinkwell")


async def save_page(trials: Sequence[Trial], agents: Sequence[AgentSummary], path: Path) -> None:
    """Write a report as a page, with the replays of its runs in a folder beside it.

    Args:
        trials: The trials.
        agents: The statistics of the agents.
        path: The page.

    Raises:
        OSError: A file cannot be written.
    """
    from thinkwell.web import recording_html  # needs an extra

    folder = anyio.Path(path.with_name(f"{path.stem}-runs"))
    replays = dict[int, str]()
    for number, trial in enumerate(trials, 1):
        if (html := await _made(trial, recording_html)) is None:
            continue
        await folder.mkdir(exist_ok=True)
        await (folder / f"{number}.html").write_text(html, "utf-8")
        replays[number] = f"{folder.name}/{number}.html"
    written = await to_thread.run_sync(page, trials, agents, replays)
    await anyio.Path(path).write_text(written, "utf-8")


async def save_trajectories(trials: Sequence[Trial], folder: Path) -> None:
    """Write the recorded runs of trials as trajectories into a folder.

    Raises:
        OSError: A file cannot be written.
    """
    await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
    for number, trial in enumerate(trials, 1):
        about = {"input": trial.input, "repeat": trial.repeat, "status": trial.status, "score": trial.score}
        steps = await _made(trial, partial(trajectory, extra={"trial": about}))
        if steps is not None:
            await anyio.Path(folder, f"{number}.json").write_bytes(msgspec.json.encode(steps))


async def _made(trial: Trial, make: Callable[[str], Awaitable[T]]) -> T | None:
    """Return what is made of a trial's recording; `None` without one that can be read."""
    if trial.recording is None:
        return None
    try:
        return await make(trial.recording)
    except (OSError, RecordingError) as exc:
        logger.warning("The recording of trial %s is left out: %s", trial.name, exc)
        return None
