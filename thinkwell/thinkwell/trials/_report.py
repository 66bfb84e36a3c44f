"""`Report`: what trials have come to."""

from __future__ import annotations

import logging
from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from thinkwell.errors import RecordingError
from thinkwell.trials._errors import NonePassed, some_of
from thinkwell.trials._statistics import AgentSummary, summarize
from thinkwell.trials._trial import Spent, Status  # noqa: TC001 - types of fields

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Iterable

    import pandas as pd
    import polars as pl

    from thinkwell.events import JsonValue
    from thinkwell.trials._trial import Trial

__all__ = ("Report",)

T = TypeVar("T")

logger = logging.getLogger("thinkwell")

VERSION: Final = 1


class Row(Struct, frozen=True, kw_only=True):
    """A trial in JSON."""

    input: str
    agent: str
    repeat: int
    status: Status
    score: float | None
    spent: Spent
    seconds: float
    attempts: int
    error: str | None


class Document(Struct, frozen=True, kw_only=True):
    """A report in JSON."""

    version: Literal[1]
    trials: list[Row]


class Report:
    """What trials have come to.

    Args:
        trials: The trials. They may still run: the report is of this moment.
    """

    def __init__(self, trials: Iterable[Trial]) -> None:
        self.trials: tuple[Trial, ...] = tuple(trials)
        """All trials."""

    def __repr__(self) -> str:
        statuses = Counter(trial.status for trial in self.trials)
        told = ", ".join(f"{number} {status}" for status, number in statuses.items())
        return f"<Report {told or 'of no trials'}>"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The keys of the inputs, in their order."""
        return tuple(dict.fromkeys(trial.input for trial in self.trials))

    @cached_property
    def agents(self) -> tuple[AgentSummary, ...]:
        """The statistics of each agent, in their order.

        Raises:
            ImportError: They need scipy: ``pip install 'thinkwell[trials]'``.
        """
        names = dict.fromkeys(trial.agent for trial in self.trials)
        return tuple(
            summarize(name, [trial for trial in self.trials if trial.agent == name]) for name in names
        )

    def best(self, input: str, /) -> Trial:  # noqa: A002 - as in `Trial`
        """Return the best trial of an input that has passed: by its score, then by its cost and time.

        No score counts as the lowest, and a cost that the agent does not say as the highest.

        Args:
            input: The key of the input.

        Raises:
            ValueError: There is no such input.
            NonePassed: No trial of it has passed.
        """
        trials = [trial for trial in self.trials if trial.input == input]
        if not trials:
            raise ValueError(f"report.best({input!r}): there is no such input, but {some_of(self.inputs)}")
        passed = [trial for trial in trials if trial.status == "passed"]
        if not passed:
            raise NonePassed(input, Counter(trial.status for trial in trials))
        return min(passed, key=_rank)

    def to_json(self) -> str:
        """Return the trials as JSON, as `json_schema` describes it."""
        rows = msgspec.convert(self.trials, list[Row], from_attributes=True)
        return msgspec.json.encode(Document(version=VERSION, trials=rows)).decode()

    @staticmethod
    def json_schema() -> dict[str, JsonValue]:
        """Return the JSON Schema of `to_json`."""
        schema = msgspec.json.schema(Document)
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}

    def to_pandas(self) -> pd.DataFrame:
        """Return the trials as a data frame of pandas, a row for each."""
        import pandas as pd

        return pd.DataFrame(self._table())

    def to_polars(self) -> pl.DataFrame:
        """Return the trials as a data frame of polars, a row for each."""
        import polars as pl

        return pl.DataFrame(self._table(), infer_schema_length=None)

    async def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as one page of HTML, and the replays of the runs into a folder beside it.

        A browser shows it without a server; it loads nothing and runs no script. For ``report.html``, the
        folder is ``report-runs``. Files that are there are overwritten. A run whose recording cannot be read
        has no replay; a warning is logged.

        Args:
            path: The page.

        Raises:
            ImportError: It needs packages: ``pip install 'thinkwell[trials]'``.
            OSError: A file cannot be written.
        """
        from thinkwell.trials._files.page import page
        from thinkwell.web import recording_html

        agents = await to_thread.run_sync(lambda: self.agents)
        file = anyio.Path(path)
        folder = file.with_name(f"{file.stem}-runs")
        replays = dict[int, str]()
        for number, trial in enumerate(self.trials, 1):
            if (html := await _read(trial, recording_html)) is not None:
                await folder.mkdir(exist_ok=True)
                await (folder / f"{number}.html").write_text(html, "utf-8")
                replays[number] = f"{folder.name}/{number}.html"
        await file.write_text(await to_thread.run_sync(page, self.trials, agents, replays), "utf-8")

    async def save_trajectories(self, folder: str | os.PathLike[str]) -> None:
        """Write the recorded runs as trajectories in ATIF, the format of Harbor: a JSON file for each.

        The files have the numbers of the trials, from ``1.json`` on. A recording that cannot be read is left
        out; a warning is logged.

        Args:
            folder: The folder, which is made if it does not exist.

        Raises:
            OSError: A file cannot be written.
        """
        from thinkwell.trials._files.atif import trajectory

        await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
        for number, each in enumerate(self.trials, 1):
            about = {"input": each.input, "repeat": each.repeat, "status": each.status, "score": each.score}
            steps = await _read(each, partial(trajectory, extra={"trial": about}))
            if steps is not None:
                await anyio.Path(folder, f"{number}.json").write_bytes(msgspec.json.encode(steps))

    def _table(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = msgspec.json.decode(self.to_json())["trials"]
        return [row | row.pop("spent") for row in rows]


def _rank(trial: Trial) -> tuple[float, ...]:
    score, cost = trial.score, trial.spent.cost
    return score is None, -(score or 0.0), cost is None, cost or 0.0, trial.seconds


async def _read(trial: Trial, make: Callable[[str], Awaitable[T]]) -> T | None:
    """Return what is made of a trial's recording; `None` without one that can be read."""
    if trial.recording is None:
        return None
    try:
        return await make(trial.recording)
    except (OSError, RecordingError) as exc:
        logger.warning("The recording of trial %s is left out: %s", trial.name, exc)
        return None
