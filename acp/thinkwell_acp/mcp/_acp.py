"""Tools over the ACP connection itself (`mcp/connect`, `mcp/message`, `mcp/disconnect`; unstable).

MCP messages are sent without their envelope: the outer request's id, result and error are also the inner
ones.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import anyio
import msgspec
from anyio import AsyncContextManagerMixin

from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.errors import INVALID_PARAMS
from thinkwell_acp.mcp._outbox import Outbox
from thinkwell_acp.mcp._session import ToolSession
from thinkwell_acp.mcp._types import McpError
from thinkwell_acp.schema import (
    ConnectMcpRequest,
    ConnectMcpResponse,
    DisconnectMcpRequest,
    DisconnectMcpResponse,
    JsonObject,
    JsonValue,
    McpServerAcp,
    MessageMcpNotification,
    MessageMcpRequest,
    RequestId,
)

if TYPE_CHECKING:
    from thinkwell_acp.mcp._server import ToolServer

SendMessage: TypeAlias = Callable[[MessageMcpNotification], Awaitable[None]]
"""Sends the agent an `mcp/message` notification."""

logger = logging.getLogger("thinkwell.acp")


class AcpToolHost(AsyncContextManagerMixin):
    """Makes tool servers reachable through an ACP connection. Its methods serve that connection's requests.

    Args:
        send: Sends the agent progress and changes of the tools. Its exceptions are logged: a closed
            connection ends the host from elsewhere.
    """

    def __init__(self, send: SendMessage) -> None:
        self._send = send
        self._servers: dict[str, ToolServer] = {}
        self._sessions: dict[str, ToolSession] = {}
        self._outbox: Outbox[MessageMcpNotification | anyio.Event] = Outbox()

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[AcpToolHost]:
        async with background_tasks() as tasks:
            tasks.start_soon(self._pump)
            try:
                yield self
            finally:
                for server_id in tuple(self._servers):
                    self._drop(server_id)

    def add(self, server: ToolServer) -> McpServerAcp:
        """Make a server reachable at once, and return its declaration for the agent."""
        server_id = os.urandom(12).hex()
        self._servers[server_id] = server
        return McpServerAcp(name=server.name, server_id=server_id)

    def remove(self, server: ToolServer) -> None:
        """End the server's sessions here, and accept no more. An unknown server is ignored."""
        for server_id in [id_ for id_, known in self._servers.items() if known is server]:
            self._drop(server_id)

    async def connect(self, request: ConnectMcpRequest) -> ConnectMcpResponse:
        """Serve `mcp/connect`: open a session.

        Raises:
            McpError: The server is unknown.
        """
        server = self._servers.get(request.server_id)
        if server is None:
            raise McpError(INVALID_PARAMS, "Unknown MCP server", {"serverId": request.server_id})
        connection_id = os.urandom(12).hex()
        self._sessions[connection_id] = ToolSession(server, partial(self._notify, connection_id))
        return ConnectMcpResponse(connection_id=connection_id)

    async def message(self, request: MessageMcpRequest, request_id: RequestId = None) -> JsonValue:
        """Serve `mcp/message` as a request and return the bare result. Cancelling it cancels the tool.

        The tools count as listed when this returns. The connection must queue the answer before anything that
        a waiter of `ToolServer.wait_listed` sends: it does so if it does not suspend in between.

        Args:
            request: The parameters.
            request_id: The id of the outer request. It names the subscription that ``subscriptions/listen``
                opens.

        Raises:
            McpError: The MCP request failed, or the session is unknown.
        """
        session = self._session(request.connection_id)
        notify = partial(self._notify, request.connection_id)
        reply = await session.request(request.method, request.params or {}, request_id, notify)
        if request.method == "tools/call":
            await self._flush()
        session.sent(reply.listed)
        result: JsonValue = msgspec.json.decode(reply.result)
        return result

    async def notification(self, notification: MessageMcpNotification) -> None:
        """Serve `mcp/message` as a notification. Those of unknown sessions are ignored."""
        session = self._sessions.get(notification.connection_id)
        if session is not None:
            session.notification(notification.method, notification.params or {})

    async def disconnect(self, request: DisconnectMcpRequest) -> DisconnectMcpResponse:
        """Serve `mcp/disconnect`: end a session.

        Raises:
            McpError: The session is unknown.
        """
        self._session(request.connection_id).close()
        del self._sessions[request.connection_id]
        return DisconnectMcpResponse()

    def _session(self, connection_id: str) -> ToolSession:
        session = self._sessions.get(connection_id)
        if session is None:
            raise McpError(INVALID_PARAMS, "Unknown MCP connection", {"connectionId": connection_id})
        return session

    def _drop(self, server_id: str) -> None:
        server = self._servers.pop(server_id)
        for id_, session in tuple(self._sessions.items()):
            if session.server is server:
                session.close()
                del self._sessions[id_]

    def _notify(self, connection_id: str, method: str, params: JsonObject) -> None:
        self._outbox.put(MessageMcpNotification(connection_id=connection_id, method=method, params=params))

    async def _flush(self) -> None:
        """Return when the queue so far is sent: a result must not overtake its progress."""
        mark = anyio.Event()
        self._outbox.put(mark)
        await mark.wait()

    async def _pump(self) -> None:
        while True:
            item = await self._outbox.get()
            if isinstance(item, anyio.Event):
                item.set()
                continue
            try:
                await self._send(item)
            except Exception:
                logger.debug("an MCP notification was not sent", exc_info=True)
