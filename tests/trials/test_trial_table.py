"""Trials in the terminal while they run."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

import anyio
import pytest
from msgspec.structs import replace
from progress.terminal import Terminal, controls
from rich.console import Console

from thinkwell.trials import Spent, Table, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Store:
    """Trials that change."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = list(trials)
        self.reads = 0
        self.error: Exception | None = None

    async def read(self) -> list[Trial]:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return list(self.trials)

    def change(self, number: int, **changes: object) -> None:
        self.trials[number] = replace(self.trials[number], **changes)


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not true():  # noqa: ASYNC110 - a thread draws
            await anyio.sleep(0.01)


def waiting(*inputs: str) -> Store:
    return Store([Trial(input=each, agent="claude", repeat=1) for each in inputs])


async def test_it_shows_what_runs_and_prints_what_has_ended() -> None:
    terminal = Terminal(100, 20)
    store = waiting("issue-7", "issue-8", "issue-9")
    store.change(0, status="running", phase="working")
    store.change(
        1, status="running", phase="starting claude", spent=Spent(tool_calls=3, tokens=1200, cost=0.02)
    )
    async with Table(store.read, console=terminal.console):
        await until(lambda: len(terminal.rows) == 3)
        title, first, second = terminal.rows
        assert title.startswith(" 3 trials · 0/3 done · 2 running · 1 waiting · $0.02")
        assert title.endswith(" 00:00")
        assert first[1] in "◐◓◑◒"
        assert first[2:] == " issue-7 · claude · 1  working"
        assert second[2:].startswith(" issue-8 · claude · 1  starting claude ")
        assert second.endswith(" 3 calls · 1.2k tokens · $0.02")
        store.change(0, status="passed", score=0.5, seconds=2, spent=Spent(cost=0.01))
        await until(lambda: len(terminal.rows) == 3 and "1/3" in terminal.rows[1])
        ended, title, _ = terminal.rows
        assert ended.startswith(" ✔ issue-7 · claude · 1  passed · score 0.5 ")
        assert ended.endswith(" $0.01 · 2.0s")
        assert " left" in title
        store.change(1, status="failed", detail="…\n1 failed, 2 passed\n", seconds=70)
        store.change(2, status="error", error="it has exited\x1b[2J\u202e")
    assert [row[:50].rstrip() for row in terminal.rows] == [
        " ✔ issue-7 · claude · 1  passed · score 0.5",
        " ✘ issue-8 · claude · 1  failed · 1 failed, 2 pass",
        " ✘ issue-9 · claude · 1  it has exited\\u202e",
        "",
        " 3 trials · 3/3 done · 1 passed · 1 failed · 1 wit",
    ]
    assert controls(terminal.bytes) == set()


async def test_many_that_run_take_a_third_of_the_terminal() -> None:
    terminal = Terminal(60, 15)
    store = Store([Trial(input=str(n), agent="a", repeat=1, status="running") for n in range(30)])
    async with Table(store.read, console=terminal.console):
        await until(lambda: len(terminal.rows) == 5)
        assert terminal.rows[-1] == "   … 27 more rows"


async def test_without_a_terminal_it_writes_lines() -> None:
    out = io.StringIO()
    store = waiting("a", "b")
    async with Table(store.read, console=Console(file=out)):
        store.change(0, status="passed", seconds=1)
        await until(lambda: "\n" in out.getvalue())
        store.change(1, status="cancelled")
    assert out.getvalue().splitlines()[:2] == [
        "[done] a · claude · 1 passed 1.0s",
        "[cancelled] b · claude · 1 cancelled",
    ]
    assert out.getvalue().splitlines()[2].startswith("[all] 2 trials 2/2 done · 1 passed · 1 cancelled 00:0")


async def test_a_store_that_fails_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    terminal = Terminal()
    store = waiting("a")
    store.error = OSError("gone")
    with caplog.at_level(logging.ERROR, "thinkwell"):
        async with Table(store.read, console=terminal.console):
            await until(lambda: store.reads > 1)
            store.error = None
            store.change(0, status="passed")
            await until(lambda: "1/1" in "".join(terminal.rows))
            store.error = OSError("gone")
    assert [record.getMessage() for record in caplog.records] == [
        "The board is not up to date: its state cannot be read. It is tried again"
    ]
    assert "✔ a" in "".join(terminal.everything)


async def test_nothing_read_is_nothing_drawn() -> None:
    out, terminal = io.StringIO(), Terminal()
    store = waiting("a")
    store.error = OSError("gone")
    for console in (terminal.console, Console(file=out)):
        async with Table(store.read, console=console):
            pass
    assert out.getvalue() == ""
    assert terminal.rows == [""]


def test_a_style_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match='choose "auto", "live" or "lines"'):
        Table(waiting("a").read, style="json")  # type: ignore[arg-type]
