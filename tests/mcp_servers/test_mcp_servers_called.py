"""Servers of the official `mcp` package, given by the user: their tools are called beside ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import BaseModel

from thinkwell import McpHttp, McpSse, McpStdio, load_mcp_servers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from mcp_agent import McpAgent
    from scripted import Turn

    from thinkwell import Agent, McpServer, Session

# The official client leaves streams to the garbage collector, which trio reports.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")

PROGRAM = str(Path(__file__).parent / "programs" / "user_server.py")
SECRET = "sesame-42-sesame"


def mcp_agent(*wanted: Any, **options: Any) -> AbstractAsyncContextManager[tuple[Agent, McpAgent]]:
    """Open an agent that reaches servers with the official client, which takes seconds to import."""
    from mcp_agent import mcp_agent as opened

    return opened(*wanted, **options)


class Counted(BaseModel):
    said: str
    doubled: int


@asynccontextmanager
async def user_server(kind: str) -> AsyncGenerator[McpServer]:
    """The server, to be given to an agent; one behind an address runs for the time of the block."""
    if kind == "stdio":
        yield McpStdio("inventory", [sys.executable, PROGRAM, kind], env={"STOCK": SECRET})
        return
    env = {**os.environ, "STOCK": SECRET, "TOKEN": SECRET}
    async with await anyio.open_process(
        [sys.executable, PROGRAM, kind], env=env, stdin=subprocess.DEVNULL, stderr=None
    ) as process:
        assert process.stdout is not None
        port = int(await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 20))
        headers = {"X-Token": SECRET}
        if kind == "http":
            yield McpHttp("inventory", f"http://127.0.0.1:{port}/mcp", headers=headers)
        else:
            yield McpSse("inventory", f"http://127.0.0.1:{port}/sse", headers=headers)
        process.send_signal(signal.SIGKILL)  # it would wait for open streams


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


async def count(turn: Turn) -> None:
    inventory = cast("McpAgent", turn.agent).others[turn.session_id, "inventory"]
    assert [tool.name for tool in (await inventory.list_tools()).tools] == ["stock"]
    result = await inventory.call_tool("stock", {"part": "bolts"})
    (block,) = result.content
    assert block.type == "text"
    doubled = await turn.call("double", {"number": 21})
    await turn.returns(said=block.text, doubled=int(doubled["content"][0]["text"]))


async def counted_by(starter: Agent | Session) -> Counted:
    stream = starter.think(Counted).text("Go").tool(double).stream()
    counted = await stream.result
    await stream.wait()
    return counted


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        pytest.param("stdio", "stdio", marks=pytest.mark.long),
        pytest.param("stdio", "acp", marks=pytest.mark.long),
        ("http", "http"),
        pytest.param("sse", "http, sse", marks=pytest.mark.long),
    ],
)
async def test_tools_of_the_users_server_are_called_beside_ours(kind: str, way: str) -> None:
    with anyio.fail_after(60):
        async with user_server(kind) as server, mcp_agent(way, count, mcp_servers=[server]) as (agent, _):
            counted = await counted_by(agent)
    assert counted == Counted(said=f"bolts: {SECRET}", doubled=42)


@pytest.mark.long
@pytest.mark.fast_time(0.1)  # slowly: the agent has 0.3 s to list the tools again
async def test_a_session_has_servers_of_its_own() -> None:
    with anyio.fail_after(60):
        async with user_server("stdio") as server, mcp_agent("http", count) as (agent, handler):
            async with agent.session(mcp_servers=[server]) as session:
                counted = await counted_by(session)
            async with agent.session() as session:
                pass
    assert counted.said == f"bolts: {SECRET}"
    assert [len(request.mcp_servers) for request in handler.sent.sessions] == [2, 1]


async def test_servers_of_a_file_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROGRAM", PROGRAM)
    monkeypatch.setenv("MY_SECRET", SECRET)
    inventory = {
        "command": sys.executable,
        "args": ["${PROGRAM}", "stdio"],
        "env": {"STOCK": "${MY_SECRET}"},
    }
    path = tmp_path / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"inventory": inventory}}))
    with anyio.fail_after(60):
        async with mcp_agent("http", count, mcp_servers=load_mcp_servers(path)) as (agent, _):
            counted = await counted_by(agent)
    assert counted.said == f"bolts: {SECRET}"
