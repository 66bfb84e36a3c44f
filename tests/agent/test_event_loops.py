"""An agent, its sessions and its runs belong to the event loop that opened them."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from thinkwell import Agent, Session, ThoughtStream, WrongEventLoop
from thinkwell.listen import Handlers, listen
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

LOOPS = ("asyncio", "trio")


@asynccontextmanager
async def opened() -> AsyncGenerator[tuple[Agent, Session, ThoughtStream[str]]]:
    """Open an agent with a session, whose turn goes on until the block is left."""
    over = anyio.Event()

    async def wait(_: ScriptedTurn) -> None:
        await over.wait()

    with anyio.fail_after(30):
        async with (
            ScriptedAgent(script.does(wait).says("Done.").stops().says("And more.")).open() as agent,
            agent.session() as session,
        ):
            stream = session.think().text("Go.").stream()
            yield agent, session, stream
            over.set()
            assert await stream.result == "Done."  # what was tried elsewhere has done no harm
            assert await session.think().text("Go on.").run() == "And more."


async def enter(session: Any) -> None:
    async with session:
        pass


async def read(stream: Any) -> None:
    async for _ in stream:
        pass


def at_once(function: Callable[..., object]) -> Callable[..., Any]:
    async def called(*args: object) -> None:
        function(*args)

    return called


SYNC: dict[str, Callable[[Agent, Session, ThoughtStream[str]], object]] = {
    "stream": lambda agent, _, __: agent.think().text("Hi.").stream(),
    "a turn": lambda _, session, __: session.think().text("Hi.").stream(),
    "fork": lambda _, session, __: session.fork(),
    "cancel": lambda _, __, stream: stream.cancel(),
    "kill the run's agent": lambda _, __, stream: stream.kill(),
    "kill": lambda agent, _, __: agent.kill(),
}

ASYNC: dict[str, Callable[[Agent, Session, ThoughtStream[str]], Any]] = {
    "run": lambda agent, _, __: agent.think().text("Hi.").run(),
    "open a session": lambda agent, _, __: enter(agent.session()),
    "list sessions": lambda agent, _, __: agent.list_sessions(),
    "delete a session": lambda agent, _, __: agent.delete_session("s"),
    "log in": lambda agent, _, __: agent.authenticate("a"),
    "set the mode": lambda _, session, __: session.set_mode("m"),
    "set an option": lambda _, session, __: session.set_option("o", "v"),
    "what comes between": lambda _, session, __: read(session.events()),
    "the result": lambda _, __, stream: stream.result._wait(),
    "wait": lambda _, __, stream: stream.wait(),
    "events": lambda _, __, stream: read(stream),
    "the block of a run": lambda _, __, stream: enter(stream),
    "listen": lambda _, __, stream: listen(stream, Handlers()),
    **{name: at_once(function) for name, function in SYNC.items()},
}


@pytest.mark.parametrize("name", ASYNC)
async def test_another_event_loop_is_refused(name: str) -> None:
    async with opened() as (agent, session, stream):

        async def use() -> None:
            with anyio.fail_after(30):
                await ASYNC[name](agent, session, stream)

        for loop in LOOPS:
            with pytest.raises(WrongEventLoop) as caught:
                await anyio.to_thread.run_sync(partial(anyio.run, use, backend=loop))
            assert caught.value.agent == "scripted"
            assert f"another event loop of {loop}, in thread" in caught.value.used_in
            assert "MainThread" in caught.value.opened_in
            for fix in ("anyio.from_thread.run(", "BlockingPortal", "thinkwell.sync"):
                assert fix in str(caught.value)


@pytest.mark.parametrize("name", SYNC)
async def test_a_thread_without_an_event_loop_is_refused(name: str) -> None:
    async with opened() as (agent, session, stream):
        with pytest.raises(WrongEventLoop, match="without an event loop"):
            await anyio.to_thread.run_sync(SYNC[name], agent, session, stream)


async def test_what_is_over_may_be_read_anywhere() -> None:
    async with ScriptedAgent(script.says("Done.")).open() as agent:
        stream = agent.think().text("Go.").stream()
        await stream.wait()

    async def use() -> str:
        stream.cancel()
        stream.kill()
        agent.kill()
        await stream.wait()
        assert [event.type async for event in stream] == ["message"]
        return await stream.result

    for loop in LOOPS:
        assert await anyio.to_thread.run_sync(partial(anyio.run, use, backend=loop)) == "Done."


async def test_a_thread_goes_back_to_the_loop() -> None:
    async with ScriptedAgent(script.says("Done.").stops().says("And more.")).open() as agent:
        task = agent.think().text("Go.")
        assert await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(task.run)) == "Done."
        texts: list[str] = []
        async with anyio.from_thread.BlockingPortal() as portal:
            thread = threading.Thread(target=lambda: texts.append(portal.call(task.run)))
            thread.start()
            await anyio.to_thread.run_sync(thread.join)
        assert texts == ["And more."]
