"""What an agent asks while a run is served, and what callers answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from asking import permission
from web_stage import ADA, Stage, entries_of, served

from thinkwell import events as ev
from thinkwell.journal import JournalError, MemoryJournal
from thinkwell.web import QuestionClosed, RequestInvalid, RunEnded
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from scripted import Turn

    from thinkwell.journal import Entry, RunEnd


async def ask_first(turn: Turn) -> None:
    response = await turn.client.request_permission(permission(turn.session_id))
    outcome = response.outcome
    turn.say(outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else "cancelled")


async def asked(stage: Stage, run_id: str) -> ev.QuestionAsked:
    """Wait for the question."""
    with anyio.fail_after(30):
        async with stage.server.watch(run_id, caller=ADA) as watcher:
            while True:
                batch = await watcher.next()
                assert batch is not None
                for entry in entries_of(batch):
                    if isinstance(entry, ev.QuestionAsked):
                        return entry


async def test_an_unknown_verdict_of_a_program_is_refused() -> None:
    async with served(ask_first) as stage:
        run = await stage.start()
        with pytest.raises(RequestInvalid, match="is not an answer; send one of allow"):
            await stage.server.answer(run.id, "q1", "perhaps", caller=ADA)  # type: ignore[arg-type]


async def test_a_run_that_waits_for_its_turn_has_asked_nothing() -> None:
    go = anyio.Event()

    async def work(turn: Turn) -> None:
        await go.wait()

    async with served(work) as stage:
        first = await stage.start(thread="talk")
        second = await stage.start(thread="talk")
        with pytest.raises(QuestionClosed, match="asked nothing yet"):
            await stage.server.answer(second.id, "q", "allow", caller=ADA)
        await stage.server.cancel(second.id, caller=ADA)
        *waited, end = await stage.ended(second.id)
        assert isinstance(end, RunEnded)
        assert end.status == "cancelled"
        assert all(isinstance(entry, ev.PhaseChanged) for entry in waited)
        go.set()
        await stage.ended(first.id)


async def test_a_run_that_waited_for_an_answer_when_its_server_died_waits_no_more() -> None:
    class Dying(MemoryJournal):
        dead = False

        async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
            self.look()
            await super().finish(run_id, end, status, at)

        async def put(self, kind: str, name: str, data: bytes | None) -> None:
            self.look()
            await super().put(kind, name, data)

        def look(self) -> None:
            if self.dead:
                raise JournalError("the journal", "its process has ended")

    journal = Dying()
    async with served(ask_first, journal=journal) as stage:
        run = await stage.start()
        await asked(stage, run.id)
        assert await stage.server.waiting([run]) == {run.id}
        journal.dead = True
    journal.dead = False
    async with served(ask_first, journal=journal) as stage:
        assert (await stage.server.get(run.id, caller=ADA)).status == "interrupted"
        assert await stage.server.waiting([run]) == set()  # as it was when it was started
