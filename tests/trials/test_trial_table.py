"""Trials in the terminal while they run."""

from __future__ import annotations

import io
import logging
import re
import time
from typing import TYPE_CHECKING

import anyio
import pytest
from msgspec.structs import replace
from progress.terminal import Terminal, controls
from rich.console import Console

from thinkwell.progress import Board, BoardRow, BoardState
from thinkwell.trials import Spent, Table, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Changing:
    """Trials that change, and are told to a table."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = list(trials)
        self.table: Table | None = None

    def change(self, number: int, **changes: object) -> None:
        self.trials[number] = replace(self.trials[number], **changes)
        self.tell(self.table)

    def tell(self, table: Table | None) -> None:
        self.table = table
        if table is not None:
            table(list(self.trials))


@pytest.fixture(autouse=True)
def asks_for_a_live_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what asks for lines instead: a server that runs tests sets `CI`."""
    for name in ("CI", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not true():  # noqa: ASYNC110 - a thread draws
            await anyio.sleep(0.01)


def waiting(*inputs: str) -> Changing:
    return Changing([Trial(input=each, agent="claude", repeat=1) for each in inputs])


async def test_it_shows_what_runs_and_prints_what_has_ended() -> None:
    terminal = Terminal(100, 20)
    trials = waiting("issue-7", "issue-8", "issue-9")
    trials.change(0, status="running", phase="working")
    trials.change(
        1, status="running", phase="starting claude", spent=Spent(tool_calls=3, tokens=1200, cost=0.02)
    )
    async with Table(console=terminal.console) as table:
        trials.tell(table)
        await until(lambda: terminal.rows[-1].endswith(" $0.02"))
        title, first, second = terminal.rows
        assert re.fullmatch(r" 0/3 trials done · 2 running · 1 waiting +\$0\.02 · 00:\d\d", title)
        assert first[1] in "◐◓◑◒"
        assert first[2:] == " issue-7 · claude · 1  working"
        assert second[2:].startswith(" issue-8 · claude · 1  starting claude ")
        assert second.endswith(" 3 calls · 1.2k tokens · $0.02")
        trials.change(0, status="passed", score=0.5, seconds=2, spent=Spent(cost=0.01))
        await until(lambda: len(terminal.rows) == 3 and terminal.rows[1].endswith(" left"))
        ended = terminal.rows[0]
        assert ended.startswith(" ✔ issue-7 · claude · 1  passed · score 0.5 ")
        assert ended.endswith(" $0.01 · 2.0s")
        trials.change(1, status="failed", detail="…\n1 failed, 2 passed\n", seconds=70)
        trials.change(2, status="error", error="it has exited\x1b[2J\u202e")
    assert [row[:50].rstrip() for row in terminal.rows] == [
        " ✔ issue-7 · claude · 1  passed · score 0.5",
        " ✘ issue-8 · claude · 1  failed · 1 failed, 2 pass",
        " ✘ issue-9 · claude · 1  it has exited\\u202e",
        "",
        " 3/3 trials done · 1 passed · 1 failed · 1 with an",
    ]
    assert controls(terminal.bytes) == set()


async def test_many_that_run_take_a_third_of_the_terminal() -> None:
    terminal = Terminal(60, 15)
    trials = Changing([Trial(input=str(n), agent="a", repeat=1, status="running") for n in range(30)])
    async with Table(console=terminal.console) as table:
        trials.tell(table)
        await until(lambda: terminal.rows[-1] == "   … 27 more rows")
        assert len(terminal.rows) == 5


async def test_without_a_terminal_it_writes_lines() -> None:
    out = io.StringIO()
    trials = waiting("a", "b")
    async with Table(console=Console(file=out)) as table:
        trials.tell(table)
        trials.change(0, status="passed", seconds=1)
        await until(lambda: "\n" in out.getvalue())
        trials.change(1, status="cancelled")
    assert out.getvalue().splitlines()[:2] == [
        "[done] a · claude · 1 passed 1.0s",
        "[cancelled] b · claude · 1 cancelled",
    ]
    assert out.getvalue().splitlines()[2].startswith("[all] 2/2 trials done 1 passed · 1 cancelled 00:0")


async def test_trials_that_had_ended_before_say_nothing_of_the_time_left() -> None:
    terminal = Terminal(100, 20)
    trials = waiting("a", "b", "c")
    trials.change(0, status="passed")
    async with Table(console=terminal.console) as table:
        trials.tell(table)
        await until(
            lambda: re.search(r" 1/3 trials done .* waiting +00:\d\d$", terminal.rows[-1]) is not None
        )
        trials.change(1, status="cancelled")
        await until(lambda: "2/3 " in terminal.rows[-1] and terminal.rows[-1].endswith(" left"))


async def test_lines_say_how_far_all_is_if_nothing_ends_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    out, reads = io.StringIO(), list[None]()

    def read() -> BoardState:
        reads.append(None)
        return BoardState(title="Work", text="half of it", rows=[BoardRow(label="x")])

    async with Board(read, console=Console(file=out)):
        await until(lambda: len(reads) > 1)
        assert out.getvalue() == ""
        real = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: real() + 31)
        await until(lambda: out.getvalue() == "[all] Work half of it\n")
    assert out.getvalue() == 2 * "[all] Work half of it\n"


async def test_a_start_that_fails_shows_no_table() -> None:
    terminal, out = Terminal(), io.StringIO()
    for console in (terminal.console, Console(file=out)):
        async with Table(console=console):
            pass
    assert (terminal.rows, out.getvalue()) == ([""], "")


async def test_a_board_that_cannot_be_read_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    terminal = Terminal()

    def read() -> BoardState:
        raise OSError("gone")

    with caplog.at_level(logging.ERROR, "thinkwell"):
        async with Board(read, console=terminal.console):
            await until(lambda: bool(caplog.records))
    assert len(caplog.records) == 1
    assert terminal.rows == [""]


def test_a_style_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match='choose "auto", "live" or "lines"'):
        Table(style="json")  # type: ignore[arg-type]
