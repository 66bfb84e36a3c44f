"""`Table`: trials in the terminal while they run."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._display import numbers
from thinkwell.progress import Board, BoardRow, BoardState
from thinkwell.trials._words import spent_words, totals

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
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

    It looks like `thinkwell.progress.Live`, and reads the trials once a second.

    Args:
        read: Returns all trials, always in the same order.
        console: Where to draw; by default standard error.
        style: See `thinkwell.progress.Board`.

    Raises:
        ValueError: The style is unknown.
        ImportError: A live table needs rich: ``pip install 'thinkwell[cli]'``.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[Trial]]],
        *,
        console: Console | None = None,
        style: BoardStyle = "auto",
    ) -> None:
        self._read = read
        self._board = Board(self._state, console=console, style=style)
        self._began = time.monotonic()
        self._ended_before: int | None = None
        """How many trials had ended when the table was opened."""

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        self._began = time.monotonic()
        async with self._board:
            yield self

    async def _state(self) -> BoardState:
        trials = await self._read()
        ended = sum(trial.ended for trial in trials)
        if self._ended_before is None:
            self._ended_before = ended
        elapsed = time.monotonic() - self._began
        times = [numbers.clock(elapsed)]
        if ended > self._ended_before and ended < len(trials):
            left = elapsed * (len(trials) - ended) / (ended - self._ended_before)
            times.append(f"about {numbers.clock(left)} left")
        return BoardState(
            title=numbers.plural(len(trials), "trial"),
            text=" · ".join((f"{ended}/{len(trials)} done", *totals(trials))),
            right=" · ".join(times),
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
