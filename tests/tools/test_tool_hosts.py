"""The way to our tools is opened in the background, as long as there is one."""

from __future__ import annotations

import anyio
import pytest

from thinkwell._tooling import ToolHosts
from thinkwell_acp import Client, ClientHandler, ConnectionClosed
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.mcp import ToolOutput, ToolServer


async def test_a_way_that_cannot_be_opened_any_more_fails_as_the_connection_did() -> None:
    async def call(*_: object) -> ToolOutput:
        raise AssertionError("nobody calls")

    server = ToolServer("late", call, version="1")
    with anyio.fail_after(10):
        async with background_tasks() as tasks:
            hosts = ToolHosts(tasks, "stdio")
            hosts.attach(Client(ClientHandler()))
            tasks.cancel()
            with pytest.raises(ConnectionClosed):
                await hosts.add(server)
