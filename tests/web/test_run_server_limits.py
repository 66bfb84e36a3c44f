"""Time and runs that nobody needs: what a server of runs does by itself."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
import pytest
from asking import permission
from scripted import EVERY_SESSION_CALL
from web_stage import ADA, end_of, entries_of, scripted_agent, served, started, watched

from thinkwell import events as ev
from thinkwell.journal import Entry, JournalError, MemoryJournal, Retention, RunRecord
from thinkwell.web import (
    Limits,
    RequestInvalid,
    RunEnded,
    RunNotFound,
    RunServer,
    ServerUnavailable,
    StartRun,
    TooManyRuns,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripted import Turn
    from web_stage import LogEntry

    from thinkwell.web import Watcher

pytestmark = pytest.mark.virtual_time


async def wait(turn: Turn) -> None:
    turn.say("I begin.")
    await anyio.sleep_forever()


async def slow(turn: Turn) -> None:
    turn.say("One.")
    await anyio.sleep(100)
    turn.say("Two.")


async def asked(watcher: Watcher) -> ev.QuestionAsked:
    """Watch until something is asked."""
    while (batch := await watcher.next()) is not None:
        for entry in entries_of(batch):
            if isinstance(entry, ev.QuestionAsked):
                return entry
    raise AssertionError("nothing was asked")


async def ended_unwatched(server: RunServer, run_id: str) -> list[LogEntry]:
    """Wait until a run has ended, without watching it, and return its log."""
    while (record := await server.get(run_id, caller=ADA)).status == "running":
        await server.journal.wait(run_id, record.last_seq)
    return await watched(server, run_id)


async def test_an_unwatched_run_is_cancelled_where_the_operator_wants_that() -> None:
    async with served(wait, abandoned_after=30) as stage:
        began = anyio.current_time()
        run = await stage.start()
        async with stage.server.watch(run.id, caller=ADA):
            async with stage.server.watch(run.id, caller=ADA):
                await anyio.sleep(50)
            await anyio.sleep(50)  # with a watcher it goes on
            assert (await stage.server.get(run.id, caller=ADA)).status == "running"
        await anyio.sleep(20)
        assert (await stage.server.get(run.id, caller=ADA)).status == "running"
        async with stage.server.watch(run.id, caller=ADA):  # he comes back in time
            await anyio.sleep(15)
        await anyio.sleep(31)
        end = end_of(await watched(stage.server, run.id))
        assert end.status == "cancelled"
        assert 165 <= end.at <= anyio.current_time() - began


async def test_a_run_that_waits_for_an_answer_is_not_abandoned() -> None:
    async def ask_and_wait(turn: Turn) -> None:
        request = permission(turn.session_id)
        for _ in range(2):
            await turn.client.request_permission(request)
        await anyio.sleep_forever()

    async with served(ask_and_wait, abandoned_after=30) as stage:
        run = await stage.start()
        async with stage.server.watch(run.id, caller=ADA) as watcher:
            question = await asked(watcher)
        await anyio.sleep(250)  # whoever was asked may be thinking about it
        await stage.server.answer(run.id, question.id, "allow", caller=ADA)
        answered = anyio.current_time()
        log = await ended_unwatched(stage.server, run.id)
        assert anyio.current_time() - answered == pytest.approx(330, abs=1)
        answers = [each for each in log if isinstance(each, ev.QuestionAnswered)]
        assert [each.by for each in answers] == ["human", "deadline"]  # which ends the waiting, too
        end = end_of(log)
        assert end.status == "cancelled"


async def test_a_question_that_a_policy_answers_keeps_no_run_going() -> None:
    async def ask_and_wait(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id))
        await anyio.sleep_forever()

    agent, _ = scripted_agent(ask_and_wait, permissions={"allow": "allow"})
    async with served(agents={"a": agent}, abandoned_after=30) as stage:
        began = anyio.current_time()
        run = await stage.start()
        await ended_unwatched(stage.server, run.id)
        assert anyio.current_time() - began == pytest.approx(30, abs=1)


async def test_a_run_may_take_no_longer_than_the_agent_allows() -> None:
    agent, _ = scripted_agent(wait, timeout=200.0)
    async with served(agents={"a": agent}) as stage:
        with pytest.raises(RequestInvalid, match="timeout: it is too long; give at most 200 seconds"):
            await stage.start(timeout=900.0)
        for timeout, took in ((None, 200), (10.0, 10), (200.0, 200)):
            run = await stage.start(timeout=timeout)
            end = end_of(await ended_unwatched(stage.server, run.id))  # without watchers it goes on
            assert end.error is not None
            assert end.error.name == "ThoughtTimeout"
            assert took <= end.at < took + 6


async def test_only_so_many_turns_of_a_conversation_wait() -> None:
    async with served(slow, limits=Limits(max_waiting=1)) as stage:
        for _ in range(2):
            await stage.start(thread="talk")
        with pytest.raises(TooManyRuns, match="1 runs of that conversation wait"):
            await stage.start(thread="talk")
        await stage.start(thread="another")


async def test_runs_of_a_server_that_has_died_are_ended() -> None:
    journal = MemoryJournal()
    async with journal:
        await journal.create(RunRecord(id="run-1", agent="scripted", created=0.0, caller=ADA))
        message = b'{"type":"message","seq":1,"at":2.5,"text":"Half of it"}'
        await journal.append("run-1", [Entry(1, message)])
        await journal.create(RunRecord(id="run-2", agent="scripted", created=0.0, caller=ADA))
    async with served(wait, journal=journal) as stage:
        log = await watched(stage.server, "run-1")
        assert log == [
            ev.Message(seq=1, at=2.5, text="Half of it"),
            RunEnded(seq=2, at=2.5, status="interrupted"),
        ]
        assert await watched(stage.server, "run-1", after=1) == log[1:]
        assert await watched(stage.server, "run-1", after=2) == []
        assert await watched(stage.server, "run-2") == [RunEnded(seq=1, at=0.0, status="interrupted")]
        state = await stage.server.state("run-1", caller=ADA)
        assert state.view.text == "Half of it"
        assert state.end == log[1]
        assert state.record.status == "interrupted"


class FullDisk(MemoryJournal):
    """A journal on a disk that is full for some time."""

    full = False

    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        self.look()
        await super().append(run_id, entries)

    async def get(self, run_id: str) -> RunRecord | None:
        self.look()
        return await super().get(run_id)

    def look(self) -> None:
        if self.full:
            raise JournalError("the journal", "the disk is full; make room on it")


async def test_a_run_whose_log_cannot_be_kept_is_stopped_and_ended_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(turn: Turn) -> None:
        turn.say("One.")
        await anyio.sleep(10)
        turn.say("Two.")
        await anyio.sleep_forever()

    journal = FullDisk()
    async with served(work, journal=journal) as stage:
        run = await stage.start()
        async with stage.server.watch(run.id, caller=ADA) as watcher:
            first = await watcher.next()
            assert first is not None
            journal.full = True
            seen = first.last
            with anyio.fail_after(60):
                while (batch := await watcher.next()) is not None:
                    seen = batch.last
            assert not watcher.ended  # so that he comes back
        journal.full = False
        await anyio.sleep(10)
        rest = await watched(stage.server, run.id, after=seen)
        assert rest == [RunEnded(seq=seen + 1, at=rest[-1].at, status="interrupted")]
    assert "the disk is full" in caplog.text
    assert any(record.levelno == logging.ERROR for record in caplog.records)


async def test_a_server_is_opened_again() -> None:
    agent, _ = scripted_agent(slow)
    server = RunServer({"a": agent})
    assert "closed" in repr(server)
    with pytest.raises(ServerUnavailable):
        await started(server)
    for _ in range(2):
        async with server:
            assert "0 runs" in repr(server)
            with pytest.raises(RuntimeError, match="already been entered"):
                async with server:
                    raise AssertionError
            assert isinstance((await watched(server, (await started(server)).id))[-1], RunEnded)


async def test_a_deleted_run_lets_go_of_those_who_read_it() -> None:
    async with served(slow) as stage:
        run = await stage.start()
        await watched(stage.server, run.id)
        async with stage.server.watch(run.id, caller=ADA) as watcher:
            await stage.server.delete(run.id, caller=ADA)
            assert await watcher.next() is None
            assert not watcher.ended
        with pytest.raises(RunNotFound):
            await stage.server.delete(run.id, caller=ADA)


async def test_keys_do_not_reach_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-ant-api03-Zk3bV9qLm2XyT7wR5uP1"
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)

    async def tell(turn: Turn) -> None:
        turn.say(f"It is {key}.")
        await turn.returns(key=key, fine="yes")

    schema = {"type": "object", "properties": {"key": {"type": "string"}, "fine": {"type": "string"}}}
    journal = MemoryJournal()
    async with served(tell, journal=journal) as stage:
        run = await stage.start(f"What is behind {key}?", output=schema)
        log = await watched(stage.server, run.id)
        assert isinstance(log[-1], RunEnded)
        assert log[-1].result == {"key": "[redacted:ANTHROPIC_API_KEY]", "fine": "yes"}
        kept = await journal.read(run.id)
        assert key.encode() not in b"".join(entry.data for entry in kept)
        assert key not in repr(await stage.server.runs(caller=ADA))
        assert key not in repr(await stage.server.state(run.id, caller=ADA))


async def test_an_exception_of_the_block_passes_as_it_is() -> None:
    async def fail() -> None:
        async with served(slow) as stage:
            await stage.start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()


async def test_a_journal_that_fails_for_a_while_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(MemoryJournal):
        failing = True

        async def orphans(self) -> list[RunRecord]:
            return self.look(await super().orphans())

        async def oldest(self, limit: int = 100) -> list[RunRecord]:
            return self.look(await super().oldest(limit))

        def look(self, records: list[RunRecord]) -> list[RunRecord]:
            if self.failing:
                raise JournalError("the journal", "it is away")
            return records

    journal = Failing()
    journal.failing = False
    async with served(slow, journal=journal, retention=Retention(max_age=0)) as stage:
        run = await stage.start()
        await watched(stage.server, run.id)
        journal.failing = True
        await anyio.sleep(70)
        assert "whose server has died: the journal: it is away" in caplog.text
        assert "cannot be forgotten: the journal: it is away" in caplog.text
        journal.failing = False
        await anyio.sleep(70)
        with pytest.raises(RunNotFound):
            await stage.server.get(run.id, caller=ADA)


async def test_a_caller_at_the_limit_of_runs_can_repeat_a_request() -> None:
    async with served(wait, limits=Limits(max_runs_per_caller=1)) as stage:
        request = StartRun(prompt="Once.")
        first = await stage.server.start(request, caller=ADA, key="k")
        assert (await stage.server.start(request, caller=ADA, key="k")).id == first.id
        with pytest.raises(TooManyRuns):
            await stage.server.start(request, caller=ADA, key="other")


async def test_abandoned_conversations_do_not_pile_up() -> None:
    async with served(slow, limits=Limits(max_conversations=2)) as stage:
        assert stage.handler is not None
        stage.handler.capabilities = EVERY_SESSION_CALL
        runs = [await stage.start(thread=name) for name in "abcd"]
        for run in runs:  # all of them go on, so none is closed
            assert isinstance((await watched(stage.server, run.id))[-1], RunEnded)
        await anyio.sleep(1)
        assert list(stage.handler.sent.closed) == []
        await watched(stage.server, (await stage.start(thread="a")).id)
        await anyio.sleep(1)
        assert len(stage.handler.sent.closed) == 2
        again = await watched(stage.server, (await stage.start(thread="b")).id)
        assert not [entry for entry in again if isinstance(entry, ev.Notice)]
        assert len(stage.handler.sent.all("session/resume")) == 1
