"""`Table`: trials in the terminal while they run."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._display import numbers
from thinkwell.progress import Board, BoardRow, BoardState
from thinkwell.trials._files.words import spent_words, total_cost, totals

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from typing import Self

    from rich.console import Console

    from thinkwell.progress import BoardStyle, RowStatus
    from thinkwell.trials._trial import Status, Trial

__all__ = ("Table",)

_ROWS: Final[Mapping[Status, RowStatus]] = {
    "waiting": "waiting",
    "running": "running",
    "passed": "done",
    "failed": "failed",
    "error": "failed",
    "cancelled": "cancelled",
}


class Table(anyio.AsyncContextManagerMixin):
    """Shows trials while its block is open: which run and what they do, the cost, the time left.

    For example:

        async with Table() as table:
            report = await trials(task, inputs=issues, agents=["claude"], on_change=table)

    It looks like `thinkwell.progress.Live`.

    Args:
        console: Where to draw; by default standard error.
        style: See `thinkwell.progress.Board`.

    Raises:
        ValueError: The style is unknown.
        ImportError: A live table needs rich: ``pip install 'thinkwell[cli]'``.
    """

    def __init__(self, *, console: Console | None = None, style: BoardStyle = "auto") -> None:
        self._board = Board(self._state, console=console, style=style)
        self._trials: Sequence[Trial] = ()
        self._began = 0.0
        self._ended_before: int | None = None
        """How many trials had ended when the first ones were given."""

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        self._began = time.monotonic()
        async with self._board:
            yield self

    def __call__(self, trials: Sequence[Trial], /) -> None:
        """Show these trials: all of them, always in the same order."""
        self._trials = trials
        if self._ended_before is None:
            self._ended_before = sum(trial.ended for trial in trials)

    def _state(self) -> BoardState | None:
        trials = self._trials
        if self._ended_before is None:
            return None
        ended = sum(trial.ended for trial in trials)
        elapsed = time.monotonic() - self._began
        right = [*total_cost(trials), numbers.clock(elapsed)]
        new = ended - self._ended_before
        if new > 0 and ended < len(trials):
            right.append(f"about {numbers.clock(elapsed * (len(trials) - ended) / new)} left")
        return BoardState(
            title=f"{ended:,}/{len(trials):,} trials done",
            text=" · ".join(totals(trials)),
            right=" · ".join(right),
            rows=[_row(trial) for trial in trials],
        )


def _row(trial: Trial) -> BoardRow:
    match trial.status:
        case "running":
            text = trial.phase
        case "error":
            text = trial.error or ""
        case _:
            told = trial.detail.strip().splitlines()
            score = "" if trial.score is None else f"score {trial.score:g}"
            text = " · ".join(filter(None, (trial.status, score, *told[-1:])))
    time_ = numbers.seconds(trial.seconds) if trial.seconds else ""
    return BoardRow(
        label=" · ".join((trial.input, trial.agent, str(trial.repeat))),
        status=_ROWS[trial.status],
        text=text,
        right=" · ".join(filter(None, (*spent_words(trial.spent), time_))),
    )
