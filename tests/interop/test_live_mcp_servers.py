"""MCP servers of the user's, which agents that this project did not write start or connect to."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from interop.live import PLAIN, TIMEOUT
from interop.model_server import CallTool, ModelServer, Say
from thinkwell import CapabilityMissing, McpHttp, McpSse, McpStdio, open_agent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from interop.agents import Launch
    from thinkwell import McpServer

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", PLAIN, ids=lambda recipe: recipe.name),
]

PROGRAM = str(Path(__file__).parents[1] / "mcp_servers" / "programs" / "user_server.py")
TOKEN = "of-the-user"


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """The file that is there once the server was asked for its tools."""
    return tmp_path / "listed"


def started(listed: Path) -> McpStdio:
    """Return the server as one that the agent starts."""
    command = [sys.executable, PROGRAM, "stdio"]
    return McpStdio("inventory", command, env={"STOCK": "42", "LISTED": str(listed)})


@asynccontextmanager
async def served(transport: str, listed: Path) -> AsyncGenerator[str]:
    """Run the user's server and give its address, without a path."""
    env = {**os.environ, "STOCK": "42", "TOKEN": TOKEN, "LISTED": str(listed)}
    async with await anyio.open_process([sys.executable, PROGRAM, transport], env=env, stderr=None) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(await server.stdout.receive())}"
        finally:
            server.kill()


async def _works(launch: Launch, models: ModelServer, project: Path, server: McpServer, listed: Path) -> None:
    """Have an agent's model call the tool of a server, once the agent has fetched it."""
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(
                command=launch.command,
                env=launch.env,
                cwd=project,
                permissions="allow",
                mcp_servers=[server],
            ) as agent,
            agent.session() as session,
        ):
            # Not every agent holds its first prompt back until the servers are ready that it starts.
            while not listed.exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(0.05)
            models.play(
                CallTool("stock", {"part": "bolts"}), CallTool("return_result", {"result": 42}), Say("Done.")
            )
            stream = session.think(int).text("How many bolts are in stock?").stream()
            assert await stream.result == 42
            await stream.wait()
    assert models.remaining == ()
    assert b"bolts: 42" in models.requests[-1].body


@pytest.mark.scenario("user's MCP server over stdio")
async def test_a_server_that_the_agent_starts(
    launch: Launch, models: ModelServer, project: Path, listed: Path
) -> None:
    await _works(launch, models, project, started(listed), listed)


@pytest.mark.scenario("user's MCP server over http")
async def test_a_server_behind_http(launch: Launch, models: ModelServer, project: Path, listed: Path) -> None:
    async with served("http", listed) as url:
        server = McpHttp("inventory", f"{url}/mcp", headers={"X-Token": TOKEN})
        await _works(launch, models, project, server, listed)


@pytest.mark.scenario("user's MCP server over sse")
async def test_a_server_behind_http_with_sse(
    launch: Launch,
    models: ModelServer,
    project: Path,
    listed: Path,
    tell: Callable[[str, str], None],
) -> None:
    async with served("sse", listed) as url:
        server = McpSse("inventory", f"{url}/sse", headers={"X-Token": TOKEN})
        refused: CapabilityMissing | None = None
        try:
            await _works(launch, models, project, server, listed)
        except CapabilityMissing as exc:
            refused = exc
    if refused is not None:
        assert refused.capability == "mcpCapabilities.sse"
        assert not any(request.dialect for request in models.requests)
        tell("not offered", refused.capability)
