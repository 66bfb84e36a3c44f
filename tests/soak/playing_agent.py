"""``python -m soak.playing_agent``: an agent on standard input and output that plays what it is asked for."""

from __future__ import annotations

import sys
from itertools import count
from typing import Final

import anyio
from soak.plays import Piece, Play

from thinkwell_acp import AgentHandler, AgentSide, own_stdio, serve_agent
from thinkwell_acp import schema as s
from thinkwell_acp.errors import RpcError

HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "playing", "version": "1"},
}


class PlayingAgent(AgentHandler):
    """Plays any number of turns at once."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._client: AgentSide

    def connected(self, client: AgentSide, /) -> None:
        self._client = client

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        return s.InitializeResponse(
            protocol_version=1,
            agent_capabilities=s.AgentCapabilities(
                mcp_capabilities=s.McpCapabilities(acp=True),
                session_capabilities=s.SessionCapabilities(close=s.SessionCloseCapabilities()),
            ),
            agent_info=s.Implementation(name="playing", version="1"),
        )

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        for server in request.mcp_servers:
            if isinstance(server, s.McpServerAcp):
                await self._list_tools(server.server_id)
        return s.NewSessionResponse(session_id=f"session-{next(self._numbers)}")

    async def _list_tools(self, server_id: str) -> None:
        """Look which tools there are, as every agent does. None of them is used."""
        connection = (await self._client.connect_mcp(s.ConnectMcpRequest(server_id=server_id))).connection_id
        for method, params in (("initialize", HELLO), ("tools/list", {})):
            request = s.MessageMcpRequest(connection_id=connection, method=method, params=params)
            await self._client.message_mcp(request)

    async def close_session(self, request: s.CloseSessionRequest, /) -> s.CloseSessionResponse:
        return s.CloseSessionResponse()

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        text = "".join(block.text for block in request.prompt if isinstance(block, s.TextContent))
        play = Play.of_prompt(text)
        for burst in play.all_bursts():
            await anyio.sleep(burst.pause)
            for piece in burst.pieces:
                self._client.update(request.session_id, update_of(piece))
            await self._client.drain()
        if play.ending == "fails":
            raise RpcError(-32603, "the play has a bad end")
        if play.ending == "waits":
            await anyio.sleep_forever()
        return s.PromptResponse(stop_reason="end_turn")


def update_of(piece: Piece) -> s.SessionUpdate:
    """Return a piece as the protocol has it."""
    match piece.kind:
        case "thought":
            return s.AgentThoughtChunk(content=s.TextContent(text=piece.text))
        case "message":
            return s.AgentMessageChunk(content=s.TextContent(text=piece.text))
        case "tool_start":
            return s.ToolCallStart(tool_call_id=piece.text, title="Look", kind="read", status="in_progress")
        case "tool_done":
            return s.ToolCallProgress(tool_call_id=piece.text, status="completed")


async def main() -> None:
    async with serve_agent(own_stdio(), PlayingAgent()) as side:
        await side.wait_closed()


if __name__ == "__main__":
    anyio.run(main)
    sys.exit(0)
