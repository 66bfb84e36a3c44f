"""`RunServer`: runs that are started, watched, answered and stopped, and the log that they leave."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from web_stage import ADA, end_of, scripted_agent, served, started, watched

from thinkwell.journal import MemoryJournal
from thinkwell.web import (
    Limits,
    RequestInvalid,
    RunEnded,
    RunNotFound,
    RunServer,
    StartRun,
    TooManyRuns,
)

if TYPE_CHECKING:
    from scripted import Turn

    from thinkwell.journal import RunRecord


async def hello(turn: Turn) -> None:
    turn.think("Who is there?")
    turn.say("Hello ")
    turn.say("Ada.")


async def test_a_run_goes_on_without_watchers() -> None:
    done = anyio.Event()

    async def work(turn: Turn) -> None:
        turn.say("Done.")
        done.set()

    async with served(work) as stage:
        run = await stage.start()
        with anyio.fail_after(30):
            await done.wait()
            while (await stage.server.get(run.id, caller=ADA)).status == "running":
                await stage.server.journal.wait(run.id, 10_000)
        record = await stage.server.get(run.id, caller=ADA)
        assert record.status == "completed"
        assert record.ended is not None
        assert await watched(stage.server, run.id, after=record.last_seq) == []


async def test_turns_of_a_thread_have_one_session() -> None:
    async with served(hello) as stage:
        first = await stage.start(thread="talk")
        second = await stage.start(thread="talk")
        alone = await stage.start()
        for run in (first, second, alone):
            await stage.ended(run.id)
        assert stage.handler is not None
        sessions = Counter(prompt.session_id for prompt in stage.handler.sent.prompts)
        assert sorted(sessions.values()) == [1, 2]


async def test_another_callers_run_is_not_found() -> None:
    async with served(hello) as stage:
        run = await stage.start()
        await stage.ended(run.id)
        for call in (stage.server.get, stage.server.state, stage.server.cancel, stage.server.delete):
            with pytest.raises(RunNotFound):
                await call(run.id, caller="bob")
        with pytest.raises(RunNotFound):
            await watched(stage.server, run.id, caller="bob")
        assert await stage.server.runs(caller="bob") == []
        assert [each.id for each in await stage.server.runs(caller=ADA)] == [run.id]


async def test_the_same_key_starts_nothing_more() -> None:
    async with served(hello) as stage:
        request = StartRun(prompt="Once.")
        first = await stage.server.start(request, caller=ADA, key="k")
        again = await stage.server.start(request, caller=ADA, key="k")
        other = await stage.server.start(request, caller="bob", key="k")
        assert first.id == again.id != other.id
        for run, caller in ((first, ADA), (other, "bob")):
            await stage.ended(run.id, caller=caller)
        late = await stage.server.start(request, caller=ADA, key="k")
        assert (late.id, late.status) == (first.id, "completed")
        assert "0 runs" in repr(stage.server)
        assert stage.handler is not None
        assert len(stage.handler.sent.prompts) == 2


async def test_no_more_runs_than_may_be() -> None:
    async def wait(turn: Turn) -> None:
        await anyio.sleep_forever()

    limits = Limits(max_runs=3, max_runs_per_caller=2)
    async with served(wait, limits=limits) as stage:
        await stage.start()
        await stage.start()
        with pytest.raises(TooManyRuns, match="2 of your runs are running"):
            await stage.start()
        await stage.start(caller="bob")
        with pytest.raises(TooManyRuns, match="the server has as many"):
            await stage.start(caller="bob")


async def test_a_failed_run_says_why_without_the_servers_secrets(caplog: pytest.LogCaptureFixture) -> None:
    def broken(permissions: object) -> object:
        raise OSError("/home/ada/secret is not there")

    agent, _ = scripted_agent(hello)
    async with RunServer({"broken": type(agent)(open=broken)}) as server:  # type: ignore[arg-type]
        run = await started(server)
        with caplog.at_level(logging.WARNING, "thinkwell"):
            end = end_of(await watched(server, run.id))
        assert end.status == "failed"
        assert end.error is not None
        assert "secret" not in f"{end.error}"
    assert "/home/ada/secret" in caplog.text


async def test_leaving_the_server_interrupts_what_runs() -> None:
    async def wait(turn: Turn) -> None:
        turn.say("I begin.")
        await anyio.sleep_forever()

    journal = MemoryJournal()
    async with served(wait, journal=journal) as stage:
        run = await stage.start()
        async with stage.server.watch(run.id, caller=ADA) as watcher:
            first = await watcher.next()
        assert first is not None
    record = await journal.get(run.id)
    assert record is not None
    assert record.status == "interrupted"
    async with served(wait, journal=journal) as stage:
        rest = await watched(stage.server, run.id, after=first.last)
        assert [entry.seq for entry in rest] == list(range(first.last + 1, record.last_seq + 1))
        end = rest[-1]
        assert isinstance(end, RunEnded)
        assert (end.status, end.error, end.stop_reason) == ("interrupted", None, None)


async def test_a_key_has_some_characters() -> None:
    async with served(hello) as stage:
        for key in ("", "k" * 201):
            with pytest.raises(RequestInvalid, match="1 to 200 characters"):
                await stage.server.start(StartRun(prompt="Go."), caller=ADA, key=key)


async def test_cancelling_the_servers_task_ends_runs_in_good_order() -> None:
    async def wait(turn: Turn) -> None:
        turn.say("I begin.")
        await anyio.sleep_forever()

    journal = MemoryJournal()
    runs: list[RunRecord] = []
    with anyio.CancelScope() as scope:
        async with served(wait, journal=journal) as stage:
            runs.append(await stage.start())
            async with stage.server.watch(runs[0].id, caller=ADA) as watcher:
                while (batch := await watcher.next()) is not None and b"I begin." not in batch.sse:
                    pass
            scope.cancel()
            await anyio.sleep_forever()
    record = await journal.get(runs[0].id)
    assert record is not None
    assert record.status == "interrupted"
    assert b"I begin." in b"".join(entry.data for entry in await journal.read(runs[0].id))


async def test_a_request_that_no_http_could_say() -> None:
    async with served() as stage:
        requests: tuple[tuple[dict[str, Any], str], ...] = (
            ({"prompt": "\ud800"}, "prompt: it has lone surrogates"),
            ({"output": {"description": "x" * 50_000}}, "output: it is too long; give at most 50,000 bytes"),
            ({"output": nested(900)}, "output: it is nested too deep"),
        )
        for request, message in requests:
            with pytest.raises(RequestInvalid, match=message):
                await stage.start(**request)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema
