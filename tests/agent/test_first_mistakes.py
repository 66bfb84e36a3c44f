"""What people try first, and what the error tells them to write instead."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from scripted import Turn, scripted

import thinkwell.sync
import thinkwell.sync.progress as sync_progress
from thinkwell import AgentClosed, open_agent
from thinkwell.listen import Handlers, listen
from thinkwell.progress import Live, show
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def one_word(turn: Turn) -> None:
    turn.say("Done")


async def looped(things: Any) -> None:
    async for _ in things:
        pass


async def entered(thing: Any) -> None:
    with thing:
        pass


async def aentered(thing: Any) -> None:
    async with thing:
        pass


async def waited(thing: Any) -> Any:
    return await thing


MISTAKES: list[tuple[str, Callable[[Any], Awaitable[object]], str]] = [
    ("await stream", lambda agent: waited(agent.think().text("Go").stream()), "await stream.result"),
    ("await task", lambda agent: waited(agent.think().text("Go")), "await task.run()"),
    ("await think(int).text()", lambda agent: waited(agent.think(int).text("a")), "await task.run()"),
    ("await agent", waited, "await agent.think(…).text(…).run()"),
    (
        "async for over a task",
        lambda agent: looped(agent.think().text("Go")),
        "async for event in task.stream()",
    ),
    ("async for over an agent", looped, "async for event in agent.think(…).text(…).stream()"),
    (
        "for over a stream",
        lambda agent: anyio.to_thread.run_sync(list, agent.think().text("Go").stream()),
        "async for event in stream",
    ),
    (
        "for over a task",
        lambda agent: anyio.to_thread.run_sync(list, agent.think().text("Go")),
        "async for event in task.stream()",
    ),
    ("think of a prompt", lambda agent: agent.think("a prompt").run(), "think().text('a prompt')"),
    ("think of a type and a prompt", lambda agent: agent.think(int, "Go").run(), "think(…).text('Go')"),
    ("no prompt", lambda agent: agent.think().run(), 'agent.think(…).text("…").run()'),
    ("no prompt to stream", lambda agent: agent.think().stream(), ".stream()"),
    ("run a prompt", lambda agent: agent.think().run("Go"), '.text("…").run()'),
    ("stream a prompt", lambda agent: agent.think().stream("Go"), '.text("…").stream()'),
    ("with stream", lambda agent: entered(agent.think().text("Go").stream()), "async with stream:"),
    ("await outcomes", lambda agent: waited(agent.map(agent.think(), ["a"])), "await outcomes.results()"),
    (
        "for over outcomes",
        lambda agent: anyio.to_thread.run_sync(list, agent.map(agent.think(), ["a"])),
        "async for outcome in outcomes",
    ),
    (
        "call the result",
        lambda agent: waited(agent.think().text("Go").stream().result()),
        "await stream.result",
    ),
    (
        "call the result with a limit",
        lambda agent: waited(agent.think().text("Go").stream().result(timeout=3)),
        "await stream.result",
    ),
    ("steer by no text", lambda agent: agent.think().text("Go").stream().steer(5), "steer(5): give a str"),
    ("async with agent", lambda agent: aentered(agent), "async with open_agent(…) as agent:"),
    ("show a task", lambda agent: show(agent.think().text("Go")), 'show(agent.think().text("…").stream())'),
    ("show a coroutine", lambda agent: show(agent.think().text("Go").run()), "not a coroutine: begin"),
    (
        "Live of an agent",
        lambda agent: aentered(Live(agent)),
        "Live() takes a run that has begun",
    ),
    ("listen to a task", lambda agent: listen(agent.think().text("Go"), Handlers()), "listen(agent.think()"),
    ("with agent.session()", lambda agent: entered(agent.session()), "async with"),
    ("await agent.session()", lambda agent: waited(agent.session()), ".start()"),
]


@pytest.mark.parametrize(
    ("mistake", "hint"), [pytest.param(mistake, hint, id=name) for name, mistake, hint in MISTAKES]
)
async def test_a_mistake_says_what_to_write(mistake: Callable[[Any], Awaitable[object]], hint: str) -> None:
    async with scripted(one_word) as agent:
        with pytest.raises((TypeError, ValueError)) as caught:
            await mistake(agent)
    assert hint in str(caught.value)


async def test_an_agent_that_is_not_open_says_how_to_open_it() -> None:
    opening: Any = open_agent()
    with pytest.raises(
        AttributeError, match=r"async with open_agent\(…\) as agent:.* `agent\.think`"
    ) as caught:
        opening.think()
    assert caught.value.name == "think"
    with pytest.raises(TypeError, match=r"async with .*, or `agent = await open_agent\(…\)\.start\(\)`"):
        await opening
    with pytest.raises(TypeError, match="async with"), opening:
        pass
    assert not hasattr(opening, "nothing")
    assert copy.copy(opening).name == opening.name


def blocking() -> thinkwell.sync.Opener[thinkwell.sync.Agent]:
    return thinkwell.sync.open_agent(transport=ScriptedAgent(script.says("Done")).connect())


def test_a_blocking_agent_that_is_not_open_says_how_to_open_it() -> None:
    opening: Any = blocking()
    with pytest.raises(AttributeError, match=r"`with open_agent\(…\) as agent:`.* `agent\.think`"):
        opening.think()
    with pytest.raises(TypeError, match="run\\(\\) takes no prompt"), blocking() as agent:
        agent.think().run("Go")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_async_code_over_the_blocking_api_says_so() -> None:
    with pytest.raises(TypeError, match=r"write `with open_agent"):
        anyio.run(aentered, blocking())
    with blocking() as agent:
        with pytest.raises(TypeError, match="write `for event in stream`"):
            anyio.run(looped, agent.think().text("Go").stream())
        task: Any = agent.think()
        calls: list[Callable[[Any], object]] = [
            sync_progress.show,
            sync_progress.Live,
            lambda it: thinkwell.sync.listen(it, Handlers()),
        ]
        for call in calls:
            with pytest.raises(TypeError, match="takes a run that has begun, not a ThinkBuilder"):
                call(task)
        stream: Any = agent.think().text("Go").stream()
        with pytest.raises(TypeError, match=r"of the blocking API: use the show\(\) of thinkwell\.sync"):
            anyio.run(show, stream)


async def test_a_stream_after_its_agents_block_says_so() -> None:
    async with scripted(one_word) as agent:
        stream = agent.think(int).text("Go").stream()
    with pytest.raises(AgentClosed, match="wait for their results, before that"):
        await stream.result


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_result_as_a_task_says_how_to_make_one() -> None:
    async with scripted(one_word) as agent:
        stream = agent.think().text("Go").stream()
        given: Any = stream.result
        with pytest.raises(TypeError, match=r"asyncio\.ensure_future\(stream\.result\)"):
            asyncio.create_task(given)  # noqa: RUF006 - it makes none
        assert await asyncio.ensure_future(stream.result) == "Done"
