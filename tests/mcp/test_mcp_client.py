"""The MCP client for agents, over the protocol itself: what a client may answer that is no answer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from thinkwell_acp import AgentHandler, AgentSide, ClientHandler, RpcError, connect, memory_transport_pair
from thinkwell_acp import schema as s
from thinkwell_acp.agent import serve_agent
from thinkwell_acp.mcp import _client
from thinkwell_acp.mcp._client import AcpLink, McpClient, McpTrouble, printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

SERVER = s.McpServerAcp(name="box", server_id="1")


class Answers(ClientHandler):
    """Answers as it is told."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    async def _answer(self, name: str) -> Any:
        answer = self.answers.get(name, {})
        if isinstance(answer, Exception):
            raise answer
        if answer == "never":
            await anyio.sleep_forever()
        return answer

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> Any:
        return self.answers.get("connect", s.ConnectMcpResponse(connection_id="c"))

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> Any:
        return await self._answer("disconnect")

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
        return await self._answer(request.method.rpartition("/")[2])


@asynccontextmanager
async def asking(**answers: Any) -> AsyncGenerator[AgentSide]:
    """An agent's side of a connection to a client that answers so."""
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(20):
        async with serve_agent(theirs, AgentHandler()) as side, connect(ours, Answers(**answers)):
            yield side


async def test_a_tool_is_listed_and_called() -> None:
    listed = {
        "tools": [{"name": "add", "description": "Adds.\r\nTwo\x07.", "inputSchema": {"type": "object"}}]
    }
    called = {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}, "isError": True}
    async with asking(list=listed, call=called) as side:
        link = await AcpLink.connect(side.connection, SERVER)
        client = McpClient("box", link, {"name": "test", "version": "1"})
        await client.start()
        (tool,) = client.tools
        assert (tool.name, tool.description, tool.schema) == ("add", "Adds.\nTwo\ufffd.", {"type": "object"})
        outcome = await client.call("add", {})
        assert (outcome.text, outcome.failed, outcome.structured) == ("3", True, {"sum": 3})
        await link.close()


async def test_a_connection_without_an_id_is_an_error() -> None:
    async with asking(connect={"nothing": 1}) as side:
        with pytest.raises(McpTrouble, match="connectionId"):
            await AcpLink.connect(side.connection, SERVER)


async def test_a_refused_connection_is_an_error_with_its_words() -> None:
    ours, theirs = memory_transport_pair()
    async with serve_agent(theirs, AgentHandler()) as side, connect(ours, ClientHandler()):
        with pytest.raises(McpTrouble, match="Method not found: mcp/connect"):
            await AcpLink.connect(side.connection, SERVER)


async def test_a_client_that_is_gone_is_an_error() -> None:
    async with asking() as side:
        link = await AcpLink.connect(side.connection, SERVER)
    with pytest.raises(McpTrouble, match="connection"):
        await McpClient("box", link, {}).call("add", {})
    with pytest.raises(McpTrouble, match="connection"):
        await AcpLink.connect(side.connection, SERVER)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"initialize": "never"}, "^it did not answer initialize within 0.1 seconds$"),
        ({"initialize": RpcError(1, "no \x1b[2J")}, "^no \ufffd\\[2J$"),
        ({"initialize": {"protocolVersion": 7}}, "^its answer to initialize makes no sense"),
        ({"list": {"tools": {}}}, "^its answer to tools/list makes no sense"),
        ({"list": {"tools": [], "nextCursor": 7}}, "^its answer to tools/list makes no sense"),
    ],
)
async def test_what_is_no_answer_is_an_error(
    answers: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_client, "ANSWER_TIMEOUT", 0.1)
    async with asking(**answers) as side:
        link = await AcpLink.connect(side.connection, SERVER)
        with pytest.raises(McpTrouble, match=told):
            await McpClient("box", link, {}).start()


@pytest.mark.parametrize("answer", ["never", RpcError(1, "no")])
async def test_closing_does_not_depend_on_an_answer(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_client, "DISCONNECT_TIMEOUT", 0.1)
    async with asking(disconnect=answer) as side:
        link = await AcpLink.connect(side.connection, SERVER)
        await link.close()


def test_what_is_shown_has_no_control_characters_and_a_length() -> None:
    assert printable("a\x00\x1b[1mb\x7f\x9b\u202e\u2066\u2028\ud800é\U0001f600\t\n", 100) == (
        "a\ufffd\ufffd[1mb\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdé\U0001f600\t\n"
    )
    assert printable("abcdef", 4) == "abc…"
