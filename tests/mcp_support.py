"""Tools to serve, and the official MCP client on each of the three ways to them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
import mcp_types as types
import msgspec
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage

from thinkwell_acp.mcp import (
    AcpToolHost,
    CallContext,
    HttpToolHost,
    McpError,
    ShimToolHost,
    ToolOutput,
    ToolServer,
    ToolSpec,
)
from thinkwell_acp.schema import (
    ConnectMcpRequest,
    DisconnectMcpRequest,
    JsonObject,
    MessageMcpNotification,
    MessageMcpRequest,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.client._transport import TransportStreams
    from mcp.client.session import IncomingMessage

Way: TypeAlias = Literal["http", "shim", "acp"]
WAYS: tuple[Way, ...] = ("http", "shim", "acp")
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")

ANY_OBJECT: JsonObject = {"type": "object"}
ADD = ToolSpec(
    name="add",
    title="Add",
    description="Adds two numbers.",
    input_schema={
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
    output_schema={"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]},
)
OTHER = ToolSpec(name="other", description="Another tool.", input_schema=ANY_OBJECT)


class Workbench:
    """A server whose tools a test can watch and steer."""

    def __init__(self, *, keepalive: float = 15.0, discover: bool = False) -> None:
        names = ("echo", "fail", "refuse", "garbage", "wait", "step", "sleep")
        tools = [ADD, *(ToolSpec(name=n, description=f"Does {n}.", input_schema=ANY_OBJECT) for n in names)]
        self.server = ToolServer(
            "bench",
            self.call,
            tools,
            version="1.0",
            instructions="Use add.",
            keepalive=keepalive,
            discover=discover,
        )
        self.waiting = 0
        self.cancelled = 0
        self.go = anyio.Event()
        self.changed = anyio.Event()
        self.contexts: list[CallContext] = []

    async def call(self, name: str, arguments: JsonObject, context: CallContext) -> ToolOutput:
        self.contexts.append(context)
        match name:
            case "add":
                return ToolOutput(structured={"sum": arguments["a"] + arguments["b"]})
            case "echo":
                return ToolOutput.text(msgspec.json.encode(arguments).decode())
            case "fail":
                raise LookupError(*arguments.values())
            case "refuse":
                raise McpError(-32042, "Not now", {"why": "busy"})
            case "garbage":
                return ToolOutput(content=({"type": "text", "text": object()},))
            case "step":
                for step in (1, 2, 2):
                    context.report(step, 3, f"step {step}")
                return ToolOutput.text("stepped")
            case "sleep":
                await anyio.sleep(arguments["seconds"])
                return ToolOutput.text("slept")
            case _:
                return await self._wait()

    async def _wait(self) -> ToolOutput:
        self._count(waiting=1)
        try:
            await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self._count(cancelled=1)
            raise
        finally:
            self._count(waiting=-1)
        return ToolOutput.text("waited")

    def _count(self, *, waiting: int = 0, cancelled: int = 0) -> None:
        self.waiting += waiting
        self.cancelled += cancelled
        self.changed.set()
        self.changed = anyio.Event()

    async def until(self, *, waiting: int = 0, cancelled: int = 0) -> None:
        """Return when this many calls wait and this many were cancelled."""
        with anyio.fail_after(30):
            while (self.waiting, self.cancelled) != (waiting, cancelled):
                await self.changed.wait()


class Inbox:
    """What a client was told outside of answers."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self._changed = anyio.Event()

    async def __call__(self, message: IncomingMessage) -> None:
        assert not isinstance(message, Exception), message
        self.methods.append(message.method)
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, method: str, count: int = 1) -> None:
        """Return when the client has heard this so often."""
        with anyio.fail_after(30):
            while self.methods.count(method) < count:
                await self._changed.wait()


class Bench:
    """A way to servers, open: `connect` is an official client on it."""

    def __init__(self, way: Way, host: HttpToolHost | ShimToolHost | AcpLink) -> None:
        self.way = way
        self.host = host

    def transport(self, server: ToolServer) -> AbstractAsyncContextManager[TransportStreams]:
        match self.host:
            case HttpToolHost() as host:
                return http_transport(host, server)
            case ShimToolHost() as host:
                told = host.add(server)
                env = {variable.name: variable.value for variable in told.env}
                return stdio_client(
                    StdioServerParameters(command=told.command, args=list(told.args), env=env)
                )
            case AcpLink() as link:
                return link.transport(server)

    @asynccontextmanager
    async def connect(
        self, server: ToolServer, revision: str = "2025-11-25", inbox: Inbox | None = None
    ) -> AsyncGenerator[ClientSession]:
        async with (
            self.transport(server) as (read, write),
            ClientSession(read, write, message_handler=inbox) as session,
        ):
            await shake_hands(session, revision)
            yield session


async def shake_hands(session: ClientSession, revision: str) -> None:
    """Agree on a revision. The client's own `initialize` offers the newest one only."""
    if revision == "2026-07-28":
        session.adopt(
            types.DiscoverResult(
                supported_versions=[revision],
                capabilities=types.ServerCapabilities(),
                result_type="complete",
                ttl_ms=0,
                cache_scope="private",
            )
        )
        return
    params = types.InitializeRequestParams(
        protocol_version=revision,
        capabilities=types.ClientCapabilities(),
        client_info=types.Implementation(name="test", version="0"),
    )
    result = await session.send_request(types.InitializeRequest(params=params), types.InitializeResult)
    assert result.protocol_version == revision
    session.adopt(result)
    await session.send_notification(types.InitializedNotification())


@asynccontextmanager
async def http_transport(host: HttpToolHost, server: ToolServer) -> AsyncGenerator[TransportStreams]:
    told = host.add(server)
    headers = {header.name: header.value for header in told.headers}
    async with (
        create_mcp_http_client(headers) as client,
        streamable_http_client(told.url, http_client=client) as streams,
    ):
        yield streams


class AcpLink:
    """An agent's end of MCP over ACP: takes the official client's messages out of their envelope."""

    def __init__(self) -> None:
        self.host = AcpToolHost(self._hear)
        self._clients: dict[str, anyio.abc.ObjectSendStream[SessionMessage | Exception]] = {}

    async def _hear(self, message: MessageMcpNotification) -> None:
        plain = {"jsonrpc": "2.0", "method": message.method, "params": message.params}
        notification = types.jsonrpc_message_adapter.validate_python(plain)
        await self._clients[message.connection_id].send(SessionMessage(notification))

    @asynccontextmanager
    async def transport(self, server: ToolServer) -> AsyncGenerator[TransportStreams]:
        told = self.host.add(server)
        connection_id = (await self.host.connect(ConnectMcpRequest(server_id=told.server_id))).connection_id
        to_client, read = anyio.create_memory_object_stream[SessionMessage | Exception](100)
        write, from_client = anyio.create_memory_object_stream[SessionMessage](100)
        self._clients[connection_id] = to_client
        async with to_client, read, write, from_client, anyio.create_task_group() as tasks:
            tasks.start_soon(self._carry, connection_id, from_client, tasks)
            yield read, write
            tasks.cancel_scope.cancel()
        await self.host.disconnect(DisconnectMcpRequest(connection_id=connection_id))

    async def _carry(
        self,
        connection_id: str,
        messages: anyio.abc.ObjectReceiveStream[SessionMessage],
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        async for item in messages:
            plain = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            method: str = plain["method"]
            params: JsonObject = plain.get("params") or {}
            if "id" in plain:
                request = MessageMcpRequest(connection_id=connection_id, method=method, params=params)
                tasks.start_soon(self._ask, request, plain["id"])
            else:
                await self.host.notification(
                    MessageMcpNotification(connection_id=connection_id, method=method, params=params)
                )

    async def _ask(self, message: MessageMcpRequest, id_: int | str) -> None:
        answer: JsonObject = {"jsonrpc": "2.0", "id": id_}
        try:
            answer["result"] = await self.host.message(message, id_)
        except McpError as exc:
            answer["error"] = {"code": exc.code, "message": exc.message, "data": exc.data}
        await self._clients[message.connection_id].send(
            SessionMessage(types.jsonrpc_message_adapter.validate_python(answer))
        )


@asynccontextmanager
async def bench(way: Way, *, patience: float = 5.0, keepalive: float = 15.0) -> AsyncGenerator[Bench]:
    """Open a way to servers."""
    match way:
        case "http":
            async with HttpToolHost(patience=patience, keepalive=keepalive) as http:
                yield Bench(way, http)
        case "shim":
            async with ShimToolHost() as shim:
                yield Bench(way, shim)
        case "acp":
            link = AcpLink()
            async with link.host:
                yield Bench(way, link)
