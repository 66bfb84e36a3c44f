"""The MCP client of agents of ours, over the protocol itself: what a client may answer that is no answer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Stopwatch

from thinkwell.builtin import BuiltinAgent
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script
from thinkwell_acp import Client, ClientHandler, RpcError, connect, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

pytestmark = pytest.mark.virtual_time

SERVER = s.McpServerAcp(name="box", server_id="1")
NEW = s.NewSessionRequest(cwd="/", mcp_servers=(SERVER,))


class Answers(ClientHandler):
    """Answers as it is told, and keeps what the agent thinks."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.thoughts = ""

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        for update in (notification.update for notification in batch):
            if isinstance(update, s.AgentThoughtChunk) and isinstance(update.content, s.TextContent):
                self.thoughts += update.content.text

    async def _answer(self, name: str) -> Any:
        self.asked.append(name)
        answer = self.answers.get(name, {})
        if isinstance(answer, Exception):
            raise answer
        if answer == "never":
            await anyio.sleep_forever()
        return answer

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> Any:
        if "connect" in self.answers:
            return await self._answer("connect")
        return s.ConnectMcpResponse(connection_id="c")

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> Any:
        return await self._answer("disconnect")

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
        return await self._answer(request.method.rpartition("/")[2])


@asynccontextmanager
async def builtin(handler: ClientHandler) -> AsyncGenerator[tuple[Client, str]]:
    """A client of the built-in agent, with a session that has the server."""
    ours, theirs = memory_transport_pair()
    async with BuiltinAgent() as agent, serve_agent(theirs, agent), connect(ours, handler) as client:
        await client.initialize()
        yield client, (await client.new_session(NEW)).session_id


async def thoughts_of(handler: Answers) -> str:
    """What the built-in agent thinks, when all that it waits for had its time."""
    async with builtin(handler) as (client, session_id):
        await anyio.sleep(100)
        await client.prompt(s.PromptRequest(session_id=session_id, prompt=(s.TextContent(text="Go"),)))
    return handler.thoughts


async def test_a_tool_is_listed_and_called() -> None:
    seen: list[object] = []

    async def call(turn: ScriptedTurn) -> None:
        (tool,) = turn.tools
        seen.append((tool.name, tool.description, tool.schema))
        result = await turn.call("add", {"a": 1})
        seen.append((result.arguments, result.text, result.is_error, result.structured))

    listed = {
        "tools": [{"name": "add", "description": "Adds.\r\nTwo\x07.", "inputSchema": {"type": "object"}}]
    }
    long = "x" * 100_001
    called = {"content": [{"type": "text", "text": long}], "structuredContent": {"sum": 3}, "isError": True}
    handler = Answers(list=listed, call=called)
    played = ScriptedAgent(script.does(call))
    async with played.connect() as transport, connect(transport, handler) as client:
        await client.initialize()
        session_id = (await client.new_session(NEW)).session_id
        await client.prompt(s.PromptRequest(session_id=session_id, prompt=()))
    played.check()
    assert seen == [
        ("add", "Adds.\nTwo\ufffd.", {"type": "object"}),
        ({"a": 1}, "x" * 99_999 + "…", True, {"sum": 3}),
    ]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"connect": {"nothing": 1}}, "connectionId"),
        ({"connect": RpcError.method_not_found("mcp/connect")}, "Method not found: mcp/connect."),
        ({"initialize": "never"}, "box: it did not answer initialize within 60 seconds."),
        ({"initialize": RpcError(1, "no \x1b[2J")}, "box: no \ufffd[2J."),
        (
            {"initialize": RpcError(1, "a\x00\x1b[1mb\x7f\x9b\u202e\u2066\u2028é\U0001f600\t\n!")},
            "box: a\ufffd\ufffd[1mb\ufffd\ufffd\ufffd\ufffd\ufffdé\U0001f600\t\n!.",
        ),
        ({"initialize": RpcError(1, "")}, "box: it refused initialize."),
        ({"initialize": {"protocolVersion": 7}}, "box: its answer to initialize is malformed"),
        ({"list": {"tools": {}}}, "box: its answer to tools/list is malformed"),
        ({"list": {"tools": [], "nextCursor": 7}}, "box: its answer to tools/list is malformed"),
    ],
)
async def test_what_is_no_answer_is_an_error(answers: dict[str, Any], told: str) -> None:
    thoughts = await thoughts_of(Answers(**answers))
    assert "I do without the MCP server box: " in thoughts
    assert told in thoughts


@pytest.mark.parametrize("answer", ["never", RpcError(1, "no")])
async def test_closing_does_not_depend_on_an_answer(answer: Any) -> None:
    handler = Answers(disconnect=answer, list={"tools": []})
    async with builtin(handler) as (client, session_id):
        watch = Stopwatch()
        await client.close_session(s.CloseSessionRequest(session_id=session_id))
        assert watch.seconds == (1 if answer == "never" else 0)
    assert handler.asked[-1] == "disconnect"


async def test_a_client_that_leaves_while_it_is_waited_for_ends_it() -> None:
    handler = Answers(initialize="never")
    watch = Stopwatch()
    async with builtin(handler):
        pass
    assert watch.seconds < 20
    assert handler.asked[0] == "initialize"


async def test_a_list_that_cannot_be_fetched_again_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    handler = Answers(list={"tools": []})
    async with builtin(handler) as (client, _):
        handler.answers["list"] = RpcError(1, "not \x1bnow")
        client.notify_mcp(
            s.MessageMcpNotification(connection_id="c", method="notifications/tools/list_changed")
        )
        await anyio.sleep(1)
    assert "tools/list of box: not \ufffdnow" in caplog.text
