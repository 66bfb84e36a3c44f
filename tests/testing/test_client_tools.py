"""What an agent that plays a script makes of a client whose MCP answers are wrong."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from thinkwell.testing._client_tools import ClientTools
from thinkwell_acp import AgentHandler, ClientHandler, RpcError, connect, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s


class Confused(ClientHandler):
    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        return s.ConnectMcpResponse(connection_id="c")

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
        return {"tools": "none"}


async def test_an_answer_that_makes_no_sense_is_the_fault_of_the_client() -> None:
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(20):
        async with serve_agent(theirs, AgentHandler()) as side, connect(ours, Confused()):
            with pytest.raises(RpcError, match="its answer to tools/list makes no sense"):
                await ClientTools.open(side.connection, s.McpServerAcp(name="box", server_id="1"))
