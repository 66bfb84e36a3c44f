"""Tools over loopback HTTP: a listener on 127.0.0.1 that requires a secret."""

from __future__ import annotations

import hmac
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import SocketAttribute, SocketStream

from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.mcp._http_connection import HttpConnection, HttpError, HttpLimits, HttpRequest
from thinkwell_acp.mcp._http_endpoint import HttpEndpoint, HttpTimes
from thinkwell_acp.mcp._server import KEEPALIVE, ToolServer
from thinkwell_acp.mcp._sockets import accept_forever
from thinkwell_acp.schema import HttpHeader, McpServerHttp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

PATIENCE = 5.0
"""Seconds after which a reply becomes a stream of events. Agents give up a silent plain reply after 60 s at
the earliest."""


class HttpToolHost(AsyncContextManagerMixin):
    """Makes tool servers reachable over HTTP from this machine. It listens while its block runs.

    Args:
        patience: Seconds after which the reply to a running call becomes a stream of events.
        keepalive: Seconds between comments on a stream of events.
        limits: The limits of a client.
    """

    def __init__(
        self, *, patience: float = PATIENCE, keepalive: float = KEEPALIVE, limits: HttpLimits | None = None
    ) -> None:
        self._times = HttpTimes(patience=patience, keepalive=keepalive)
        self._limits = limits or HttpLimits()
        self._endpoints: dict[str, HttpEndpoint] = {}
        self._count = 0
        self._port = 0

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[HttpToolHost]:
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listeners,
            background_tasks() as tasks,
        ):
            (listener,) = listeners.listeners
            self._port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - no Django
            tasks.start_soon(accept_forever, listener, self._serve, self._limits.max_connections)
            try:
                yield self
            finally:
                for endpoint in self._endpoints.values():
                    endpoint.close()
                self._endpoints.clear()

    def add(self, server: ToolServer) -> McpServerHttp:
        """Make a server reachable at once, and return its declaration for the agent."""
        endpoint = HttpEndpoint(server, self._times)
        self._count += 1
        path = f"/{self._count}/mcp"
        self._endpoints[path] = endpoint
        header = HttpHeader(name="Authorization", value=f"Bearer {endpoint.secret}")
        return McpServerHttp(name=server.name, url=f"http://127.0.0.1:{self._port}{path}", headers=(header,))

    def remove(self, server: ToolServer) -> None:
        """End the server's sessions here, and accept no more. An unknown server is ignored."""
        for path, endpoint in tuple(self._endpoints.items()):
            if endpoint.server is server:
                del self._endpoints[path]
                endpoint.close()

    async def _serve(self, stream: SocketStream) -> None:
        http = HttpConnection(stream, self._limits)
        idle: float | None = self._limits.request_time
        reusable = True
        while reusable:
            try:
                request = await http.next_request(idle)
                if request is None:
                    return
                endpoint = self._admit(request)
                # A client that knows the secret may be silent for any time: closing would race with its next
                # request.
                idle = None
                reusable = await endpoint.serve(http, request)
            except HttpError as refused:
                text = ("content-type", "text/plain; charset=utf-8")
                reusable = await http.respond(refused.status, refused.reason.encode(), text, *refused.headers)
        await http.linger()

    def _admit(self, request: HttpRequest) -> HttpEndpoint:
        """Return the endpoint of a request.

        Raises:
            HttpError: It comes from a web page, has an unknown path, or lacks the secret.
        """
        hosts = {f"127.0.0.1:{self._port}", f"localhost:{self._port}"}
        # These two reveal a page whose name was rebound to 127.0.0.1 (MCP, security of streamable
        # HTTP).
        if request.headers.get("host", "").lower() not in hosts:
            raise HttpError(403, "Host is not this server")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower().removeprefix("http://") not in hosts:
            raise HttpError(403, "Origin is not this server")
        endpoint = self._endpoints.get(request.target.partition("?")[0])
        if endpoint is None:
            raise HttpError(404, "There is nothing here")
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(secret.encode(), endpoint.secret.encode()):
            raise HttpError(401, "Authorization is missing or wrong", ("www-authenticate", "Bearer"))
        return endpoint
