"""How a client and the tool server agree on a revision."""

from __future__ import annotations

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_support import WAYS, AcpLink, Way, Workbench, bench

from thinkwell_acp.mcp import McpError
from thinkwell_acp.schema import ConnectMcpRequest, JsonObject, MessageMcpRequest

MODERN = "io.modelcontextprotocol/protocolVersion"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("discover", [True, False])
async def test_the_official_clients_own_negotiation(way: Way, discover: bool) -> None:
    workbench = Workbench(discover=discover)
    with anyio.fail_after(30):
        async with bench(way) as opened, Client(opened.transport(workbench.server)) as client:
            listing = await client.list_tools()
            assert client.protocol_version == ("2026-07-28" if discover else "2025-11-25")
            assert client.instructions == "Use add."
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == ("bench", "1.0")
            result = await client.call_tool("add", {"a": 1, "b": 1})
    assert len(listing.tools) == len(workbench.server.tools)
    assert result.structured_content == {"sum": 2}


@pytest.mark.parametrize("asked", ["2023-01-01", "2026-07-28", None, 7])
async def test_a_handshake_for_an_unknown_revision_gets_the_newest(asked: object) -> None:
    async with Asking() as ask:
        result = await ask("initialize", {"protocolVersion": asked})
    assert result["protocolVersion"] == "2025-11-25"
    assert result["capabilities"] == {"tools": {"listChanged": True}}


async def test_a_request_of_an_unknown_revision_is_told_what_there_is() -> None:
    async with Asking() as ask:
        with pytest.raises(McpError) as raised:
            await ask("tools/list", {"_meta": {MODERN: "2031-01-01"}})
    assert raised.value.code == -32022
    assert raised.value.data["requested"] == "2031-01-01"
    assert raised.value.data["supported"][-1] == "2026-07-28"


async def test_listening_needs_the_new_revision_and_an_id() -> None:
    wanted: JsonObject = {"notifications": {"toolsListChanged": True}}
    async with Asking() as ask:
        for params in (wanted, wanted | {"_meta": {MODERN: "2026-07-28"}}):
            with pytest.raises(McpError) as raised:
                await ask("subscriptions/listen", params)
            assert raised.value.code == -32601


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": 7}),
        ("tools/call", {"name": "add", "arguments": [1]}),
        ("tools/list", {"_meta": "x"}),
    ],
)
async def test_parameters_of_a_wrong_shape_are_refused(method: str, params: JsonObject) -> None:
    async with Asking() as ask:
        with pytest.raises(McpError) as raised:
            await ask(method, params)
    assert raised.value.code == -32602


async def test_the_official_client_is_refused_by_a_closed_server() -> None:
    workbench = Workbench()
    with anyio.fail_after(30):
        async with bench("http") as opened, opened.connect(workbench.server) as session:
            workbench.server.close()
            with pytest.raises(MCPError, match="closed"):
                await session.list_tools()


class Asking:
    """One session over the ACP way, for requests that the official client cannot make."""

    def __init__(self) -> None:
        self._link = AcpLink()
        self._connection = ""

    async def __aenter__(self) -> Asking:
        await self._link.host.__aenter__()
        told = self._link.host.add(Workbench().server)
        answer = await self._link.host.connect(ConnectMcpRequest(server_id=told.server_id))
        self._connection = answer.connection_id
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._link.host.__aexit__(None, None, None)

    async def __call__(self, method: str, params: JsonObject | None = None) -> JsonObject:
        request = MessageMcpRequest(connection_id=self._connection, method=method, params=params)
        with anyio.fail_after(30):
            result: JsonObject = await self._link.host.message(request)
        return result
