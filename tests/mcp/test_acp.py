"""The way over the ACP connection: what only this one has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp_support import ADD, OTHER, Workbench
from trio.testing import MockClock

from thinkwell_acp.mcp import AcpToolHost, CallContext, McpError, ToolOutput, ToolServer
from thinkwell_acp.schema import (
    ConnectMcpRequest,
    DisconnectMcpRequest,
    DisconnectMcpResponse,
    JsonObject,
    JsonValue,
    McpServerAcp,
    MessageMcpNotification,
    MessageMcpRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Agent:
    """An agent's end of the connection."""

    def __init__(self) -> None:
        self.heard: list[MessageMcpNotification] = []
        self.host = AcpToolHost(self._hear)
        self.deaf = False
        self.on_hear: Callable[[], None] = lambda: None

    async def _hear(self, message: MessageMcpNotification) -> None:
        if self.deaf:
            raise anyio.BrokenResourceError
        self.heard.append(message)
        self.on_hear()

    async def connect(self, told: McpServerAcp) -> str:
        return (await self.host.connect(ConnectMcpRequest(server_id=told.server_id))).connection_id

    async def ask(self, connection_id: str, method: str, params: JsonObject | None = None) -> JsonValue:
        with anyio.fail_after(30):
            return await self.host.message(
                MessageMcpRequest(connection_id=connection_id, method=method, params=params)
            )

    async def tell(self, connection_id: str, method: str) -> None:
        await self.host.notification(MessageMcpNotification(connection_id=connection_id, method=method))


async def test_cancelling_the_request_cancels_the_tool() -> None:
    agent, workbench = Agent(), Workbench()
    async with agent.host:
        connection = await agent.connect(agent.host.add(workbench.server))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.ask, connection, "tools/call", {"name": "wait"})
            await workbench.until(waiting=1)
            tasks.cancel_scope.cancel()
        await workbench.until(cancelled=1)
        assert await agent.ask(connection, "ping") == {}


async def test_an_agent_that_cannot_be_told_anything() -> None:
    agent = Agent()
    agent.deaf = True
    async with agent.host:
        connection = await agent.connect(agent.host.add(Workbench().server))
        result = await agent.ask(connection, "tools/call", {"name": "step", "_meta": {"progressToken": 5}})
        assert result["content"][0]["text"] == "stepped"


async def test_every_connection_is_a_session_of_its_own() -> None:
    agent, workbench = Agent(), Workbench()
    async with agent.host:
        told = agent.host.add(workbench.server)
        ready, other = await agent.connect(told), await agent.connect(told)
        assert ready != other
        await agent.tell(ready, "notifications/initialized")
        workbench.server.set_tools([OTHER])
        await anyio.wait_all_tasks_blocked()
        assert [(message.connection_id, message.method) for message in agent.heard] == [
            (ready, "notifications/tools/list_changed")
        ]


async def test_what_is_not_there() -> None:
    agent = Agent()
    async with agent.host:
        with pytest.raises(McpError, match="Unknown MCP server"):
            await agent.connect(McpServerAcp(name="x", server_id="nobody"))
        with pytest.raises(McpError, match="Unknown MCP connection"):
            await agent.ask("nowhere", "ping")
        with pytest.raises(McpError, match="Unknown MCP connection"):
            await agent.host.disconnect(DisconnectMcpRequest(connection_id="nowhere"))
        await agent.tell("nowhere", "notifications/initialized")


async def test_disconnecting_cancels_what_runs() -> None:
    agent, workbench = Agent(), Workbench()
    async with agent.host:
        connection = await agent.connect(agent.host.add(workbench.server))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(expect_cancelled, agent, connection)
            await workbench.until(waiting=1)
            disconnected = await agent.host.disconnect(DisconnectMcpRequest(connection_id=connection))
            assert disconnected == DisconnectMcpResponse()
        assert workbench.cancelled == 1


async def test_removing_a_server_ends_its_sessions_only() -> None:
    agent, gone, kept = Agent(), Workbench(), Workbench()
    async with agent.host:
        told = agent.host.add(gone.server)
        connection, other = await agent.connect(told), await agent.connect(agent.host.add(kept.server))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(expect_cancelled, agent, connection)
            await gone.until(waiting=1)
            agent.host.remove(gone.server)
            agent.host.remove(gone.server)
        with pytest.raises(McpError):
            await agent.connect(told)
        assert await agent.ask(other, "ping") == {}


async def test_leaving_the_host_ends_every_session() -> None:
    agent, workbench = Agent(), Workbench()
    async with anyio.create_task_group() as tasks, agent.host:
        connection = await agent.connect(agent.host.add(workbench.server))
        tasks.start_soon(expect_cancelled, agent, connection)
        await workbench.until(waiting=1)
    assert workbench.cancelled == 1


async def expect_cancelled(agent: Agent, connection: str) -> None:
    with pytest.raises(McpError) as raised:
        await agent.ask(connection, "tools/call", {"name": "wait"})
    assert raised.value.code == -32800


class TestServer:
    """What the product asks of the server, whatever the way."""

    @pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
    async def test_signs_of_life_come_only_after_silence(self) -> None:
        agent, workbench = Agent(), Workbench()
        times: list[float] = []

        async def report_once() -> None:
            await anyio.sleep(10)
            workbench.contexts[0].report(1, 2, "half")

        async with agent.host, anyio.create_task_group() as tasks:
            connection = await agent.connect(agent.host.add(workbench.server))
            tasks.start_soon(report_once)
            began = anyio.current_time()
            agent.on_hear = lambda: times.append(anyio.current_time() - began)
            request = {"name": "sleep", "arguments": {"seconds": 50}, "_meta": {"progressToken": 1}}
            await agent.host.message(
                MessageMcpRequest(connection_id=connection, method="tools/call", params=request)
            )
        assert times == [10, 30, 45]
        assert [message.params and message.params["message"] for message in agent.heard] == ["half"] * 3

    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    async def test_a_cancellation_that_a_handler_lets_out_is_the_tools_error(self) -> None:
        async def call(_name: str, _arguments: JsonObject, _context: CallContext) -> ToolOutput:
            waited_for = asyncio.get_running_loop().create_future()
            waited_for.cancel()
            await waited_for
            raise AssertionError

        agent = Agent()
        async with agent.host:
            connection = await agent.connect(agent.host.add(ToolServer("s", call, [OTHER], version="1")))
            result = await agent.ask(connection, "tools/call", {"name": "other"})
        assert result == {"content": [{"type": "text", "text": "The tool was cancelled"}], "isError": True}

    def test_structured_output_is_sent_as_text_too(self) -> None:
        text = {"type": "text", "text": '{"n":1}'}
        assert ToolOutput(structured={"n": 1}).wire()["content"] == [text]
        said = {"type": "text", "text": "one"}
        assert ToolOutput(structured={"n": 1}, content=(said,)).wire()["content"] == [said]

    async def test_says_when_the_tools_were_seen(self) -> None:
        agent, server = Agent(), Workbench().server
        async with agent.host:
            connection = await agent.connect(agent.host.add(server))
            assert (server.generation, server.listed_generation, server.list_count) == (1, 0, 0)
            with anyio.move_on_after(0) as unseen:
                await server.wait_listed()
            assert unseen.cancelled_caught
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.ask, connection, "tools/list")
                with anyio.fail_after(30):
                    await server.wait_listed()
            assert (server.listed_generation, server.list_count) == (1, 1)
            server.set_tools(server.tools)
            assert server.generation == 1, "the same tools are no change"
            server.set_tools([OTHER])
            assert (server.generation, server.listed_generation, server.tools) == (2, 1, (OTHER,))
            await agent.ask(connection, "tools/list")
            with anyio.fail_after(30):
                await server.wait_listed()
            assert (server.listed_generation, server.list_count) == (2, 2)

    def test_refuses_two_tools_of_one_name(self) -> None:
        server = Workbench().server
        with pytest.raises(ValueError, match="two tools have the name 'add'"):
            server.set_tools([ADD, OTHER, ADD])
        assert len(server.tools) == 8

    async def test_closing_waits_for_the_running_calls(self) -> None:
        agent, workbench = Agent(), Workbench()
        async with agent.host:
            connection = await agent.connect(agent.host.add(workbench.server))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(expect_cancelled, agent, connection)
                tasks.start_soon(expect_cancelled, agent, connection)
                await workbench.until(waiting=2)
                with anyio.fail_after(30):
                    await workbench.server.aclose()
                assert (workbench.waiting, workbench.cancelled) == (0, 2)
            assert workbench.server.closed
            with pytest.raises(McpError, match="closed"):
                await agent.ask(connection, "ping")
