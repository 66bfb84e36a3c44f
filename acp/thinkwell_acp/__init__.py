"""The Agent Client Protocol, version 1, from the client's and from the agent's side.

::

    async with stdio_transport(["my-agent", "--acp"]) as transport, connect(transport, MyHandler()) as client:
        await client.initialize()
        session = await client.new_session(NewSessionRequest(cwd="/project", mcp_servers=()))
        await client.prompt(PromptRequest(session_id=session.session_id, prompt=(TextContent(text="Hello"),)))

The wire models are in `thinkwell_acp.schema`, the tool server in `thinkwell_acp.mcp`.
"""

from __future__ import annotations

from thinkwell_acp.agent import AgentSide, serve_agent
from thinkwell_acp.client import Client, connect
from thinkwell_acp.errors import (
    AcpError,
    CapabilityMissing,
    ConnectionBroken,
    ConnectionClosed,
    ConnectionEnded,
    FrameTooLong,
    ProcessExited,
    ProgramNotFound,
    ProgramNotStarted,
    RpcError,
    VersionMismatch,
)
from thinkwell_acp.handlers import AgentHandler, ClientHandler
from thinkwell_acp.schema import DecodeError
from thinkwell_acp.stdio import StdioTransport, own_stdio, stdio_transport
from thinkwell_acp.transport import MemoryTransport, Transport, memory_transport_pair

__all__ = (
    "AcpError",
    "AgentHandler",
    "AgentSide",
    "CapabilityMissing",
    "Client",
    "ClientHandler",
    "ConnectionBroken",
    "ConnectionClosed",
    "ConnectionEnded",
    "DecodeError",
    "FrameTooLong",
    "MemoryTransport",
    "ProcessExited",
    "ProgramNotFound",
    "ProgramNotStarted",
    "RpcError",
    "StdioTransport",
    "Transport",
    "VersionMismatch",
    "connect",
    "memory_transport_pair",
    "own_stdio",
    "serve_agent",
    "stdio_transport",
)
