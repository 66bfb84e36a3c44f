"""Writes a report, and what belongs to it, into files."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from thinkwell.errors import RecordingError
from thinkwell.trials._report_page import page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from thinkwell.trials._statistics import AgentSummary
    from thinkwell.trials._trial import Trial

__all__ = ("save_page",)

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
    replays: dict[tuple[str, str, int], str] = {}
    for number, trial in enumerate(trials, 1):
        if trial.recording is None:
            continue
        try:
            html = await recording_html(trial.recording)
        except (OSError, RecordingError) as exc:
            logger.warning("Trial %s has no replay: %s", trial.name, exc)
            continue
        await folder.mkdir(exist_ok=True)
        await (folder / f"{number}.html").write_text(html, "utf-8")
        replays[trial.name] = f"{folder.name}/{number}.html"
    html = await to_thread.run_sync(page, trials, agents, replays)
    await anyio.Path(path).write_text(html, "utf-8")
