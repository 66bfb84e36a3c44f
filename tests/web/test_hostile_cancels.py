"""Runs that are cancelled at a bad moment, and what the log says of those that fail."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from scripted import ScriptedAgent
from web_stage import ADA, Stage, served, watched

from thinkwell import open_agent
from thinkwell.testing import virtual_backend
from thinkwell.web import RunEnded, RunServer, ServedAgent
from thinkwell_acp import RpcError, memory_transport_pair, serve_agent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from scripted import Turn

    from thinkwell import Agent
    from thinkwell.testing import Backend
    from thinkwell_acp import Transport


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


async def hello(turn: Turn) -> None:
    turn.say("Hello.")


async def test_a_run_whose_agent_is_opened_again_is_cancelled() -> None:
    """The agent has died between two turns, which the second one is the first to notice."""
    opened: list[Transport] = []

    @asynccontextmanager
    async def open_slowly(permissions: object) -> AsyncGenerator[Agent]:
        if opened:
            await anyio.sleep(60)
        ours, theirs = memory_transport_pair()
        opened.append(theirs)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(serve_agent(theirs, ScriptedAgent([hello, hello])))
            yield await stack.enter_async_context(open_agent("scripted", transport=ours))

    async with RunServer({"scripted": ServedAgent(open=open_slowly)}) as server:
        stage = Stage(server)
        first = await stage.start(thread="talk")
        await watched(server, first.id)
        await opened[0].aclose()
        await anyio.sleep(1)
        run = await stage.start(thread="talk")
        await anyio.sleep(10)
        assert len(opened) == 1
        await server.cancel(run.id, caller=ADA)
        end = (await stage.ended(run.id))[-1]
        assert isinstance(end, RunEnded)
        assert end.status == "cancelled"
        assert len(opened) == 1


async def test_an_agent_writes_no_lines_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def forge(turn: Turn) -> None:
        raise RpcError(-32603, "no\nWARNING thinkwell: forged \x1b[31m")

    async with served(forge) as stage:
        run = await stage.start()
        await stage.ended(run.id)
    (message,) = [record.getMessage() for record in caplog.records if run.id in record.getMessage()]
    assert "forged" in message
    assert "\n" not in message
    assert "\x1b" not in message
