"""Telling the agent of a served run something while it works."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from stream.wire_agent import answer, end_turn, say, wire_agent
from web_stage import ADA, Client, Stage, served

from thinkwell import events as ev
from thinkwell.testing import ScriptedAgent, script
from thinkwell.web import (
    MessageNotTaken,
    RequestInvalid,
    RunNotFound,
    ServedAgent,
    ServerUnavailable,
    web_app,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent
    from thinkwell.testing import Script

LISTENS = script.says("I read it. ").hears("login").says("The login is fine, too.")


@asynccontextmanager
async def serving(told: Script, *, steering: bool = True) -> AsyncGenerator[Stage]:
    agent = ServedAgent(open=lambda _: ScriptedAgent(told, steering=steering, complete=False).open())
    async with served(agents={"scripted": agent}) as stage:
        yield stage


async def begun(stage: Stage, caller: str = ADA) -> str:
    """Start a run, and wait until the agent says something."""
    run = await stage.start(caller=caller)
    async with stage.server.watch(run.id, caller=caller) as watcher:
        while (batch := await watcher.next()) is not None:
            if any(b'"message"' in entry.data for entry in batch.entries):
                return run.id
    raise AssertionError(run)


async def test_the_agent_reads_it_in_its_turn_and_the_log_has_it() -> None:
    async with serving(LISTENS) as stage:
        run = await begun(stage, "")
        client = Client(web_app(stage.server))
        answered = await client.post(f"/api/runs/{run}/steer", {"text": "Also the login"})
        assert (answered.status, await answered.body()) == (204, b"")
        log = await stage.ended(run, caller="")
        assert [e.text for e in log if isinstance(e, ev.Steered)] == ["Also the login"]
        state = await (await client.get(f"/api/runs/{run}")).json()
        assert state["view"]["user_messages"] == ["Also the login"]
        assert state["end"]["result"] == "The login is fine, too."
        answered = await client.post(f"/api/runs/{run}/steer", {"text": "And the tests"})
        assert answered.status == 409
        assert await answered.json() == {
            "error": {"code": "not_taken", "message": "the run has ended; start another one"}
        }


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"text": " "}, 422, "text: it is blank; say what to tell the agent"),
        ({}, 422, "text: it is missing; give a string"),
        ({"text": "x", "otherwise": "queue"}, 422, "otherwise: there is no such field; there are text"),
    ],
)
async def test_what_is_no_message(body: dict[str, str], status: int, message: str) -> None:
    async with serving(LISTENS) as stage:
        run = await begun(stage, "")
        answered = await Client(web_app(stage.server)).post(f"/api/runs/{run}/steer", body)
        assert answered.status == status
        assert (await answered.json())["error"]["message"] == message
        await stage.server.cancel(run, caller="")


async def test_an_agent_that_takes_no_messages() -> None:
    async with serving(script.says("I read it.").hangs(), steering=False) as stage:
        run = await begun(stage)
        with pytest.raises(MessageNotTaken, match="the agent takes no message while it works"):
            await stage.server.steer(run, "Also the login", caller=ADA)
        with pytest.raises(RunNotFound):
            await stage.server.steer(run, "Also the login", caller="bob")
        with pytest.raises(RequestInvalid):
            await stage.server.steer(run, "", caller=ADA)
        await stage.server.cancel(run, caller=ADA)


async def test_a_run_that_has_not_begun() -> None:
    async with serving(LISTENS) as stage:
        first = await stage.start(thread="t")
        second = await stage.start(thread="t")
        with pytest.raises(MessageNotTaken, match="the agent has not begun with the run"):
            await stage.server.steer(second.id, "Also the login", caller=ADA)
        for run in (second, first):
            await stage.server.cancel(run.id, caller=ADA)
            await stage.ended(run.id)


@pytest.mark.virtual_time
async def test_the_run_ends_while_the_message_is_on_its_way() -> None:
    """It is refused, so that it can be the prompt of another run; where nothing is said, that is said."""
    idle = {"outcome": "promptRequired", "reason": "noRunningTurn"}
    async with wire_agent(meta={"steering": {"supported": True}}) as (agent, wire):

        @asynccontextmanager
        async def opened() -> AsyncGenerator[Agent]:
            yield agent

        def open_again(_: object) -> AbstractAsyncContextManager[Agent]:
            return opened()

        async with (
            served(agents={"scripted": ServedAgent(open=open_again)}) as stage,
            anyio.create_task_group() as tasks,
        ):
            run = await stage.start()

            async def steer(refused: type[Exception], words: str) -> None:
                with pytest.raises(refused, match=words):
                    await stage.server.steer(run.id, "Also the login", caller=ADA)

            async def from_elsewhere() -> None:
                said = await stage.server.journal.call(run.id, b'{"what": "steer", "text": "More"}')
                assert b'"refused":"unclear"' in said

            prompt = await wire.begin()
            await wire.write(say("I read it."))
            tasks.start_soon(steer, ServerUnavailable, "it is not known whether the agent has taken it")
            await wire.expect("_session/steering")
            await anyio.sleep(9)
            await wire.expect("$/cancel_request")
            tasks.start_soon(from_elsewhere)
            await wire.expect("_session/steering")
            await anyio.sleep(9)
            await wire.expect("$/cancel_request")
            tasks.start_soon(steer, MessageNotTaken, "the agent has not taken it: noRunningTurn")
            request = await wire.expect("_session/steering")
            await wire.write(end_turn(prompt), answer(request, idle))
            await stage.ended(run.id)

            run = await stage.start()
            prompt = await wire.begin()
            await wire.write(say("I read it."))
            tasks.start_soon(steer, ServerUnavailable, "it is not known whether the agent has taken it")
            await wire.expect("_session/steering")
            await wire.write(end_turn(prompt))
            await stage.ended(run.id)


@pytest.mark.virtual_time
async def test_a_run_that_is_being_cancelled_takes_no_message() -> None:
    async with serving(script.says("I read it. ").hangs(deaf=True)) as stage:
        run = await begun(stage)
        await stage.server.cancel(run, caller=ADA)
        with pytest.raises(MessageNotTaken, match="the run has ended; start another one"):
            await stage.server.steer(run, "Also the login", caller=ADA)


@pytest.mark.virtual_time
async def test_the_run_is_cancelled_before_the_agent_says_whether_it_takes_the_message() -> None:
    async with wire_agent(meta={"steering": {"supported": True}}) as (agent, wire):

        @asynccontextmanager
        async def opened(_: object) -> AsyncGenerator[Agent]:
            yield agent

        async with (
            served(agents={"scripted": ServedAgent(open=opened)}) as stage,
            anyio.create_task_group() as tasks,
        ):
            run = await stage.start()

            async def steer() -> None:
                with pytest.raises(ServerUnavailable, match="it is not known whether the agent has taken it"):
                    await stage.server.steer(run.id, "Also the login", caller=ADA)

            prompt = await wire.begin()
            await wire.write(say("I read it."))
            tasks.start_soon(steer)
            await wire.expect("_session/steering")
            await stage.server.cancel(run.id, caller=ADA)
            await wire.expect("session/cancel")
            await wire.write(end_turn(prompt, "cancelled"))
            await stage.ended(run.id)
