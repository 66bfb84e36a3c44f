"""A tool server behind one path: streamable HTTP (MCP 2025-11-25, basic/transports).

A reply to a JSON-RPC request always has HTTP status 200, even for errors: every client reads that.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import anyio
from msgspec import Struct

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp._framing import trimmed
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.mcp._http_connection import Header, HttpConnection, HttpError, HttpRequest
from thinkwell_acp.mcp._outbox import Outbox
from thinkwell_acp.mcp._session import Answer, ToolSession, decode_params, malformed_line, notification_line
from thinkwell_acp.mcp._types import McpError

if TYPE_CHECKING:
    from thinkwell_acp.mcp._server import ToolServer
    from thinkwell_acp.schema import JsonObject

JSON_TYPE = "application/json"
EVENTS_TYPE = "text/event-stream"
SESSION_HEADER = "mcp-session-id"

Lines: TypeAlias = "Outbox[bytes | Answer]"


class HttpTimes(Struct, frozen=True, kw_only=True):
    """When a slow answer becomes a stream of events, and how often a comment is sent on it. In seconds."""

    patience: float
    keepalive: float


class _Client:
    """A client that shook hands: its session, and the stream of events that it opened by GET, if any."""

    def __init__(self, server: ToolServer) -> None:
        self.session = ToolSession(server, self._notify)
        self._stream: Lines | None = None

    def open_stream(self) -> Lines:
        """Return the queue of a new stream. An older stream ends: a message goes to one stream only."""
        if self._stream is not None:
            self._stream.close()
        self._stream = Outbox()
        if self.session.stale:
            self.session.announce()
        return self._stream

    def _notify(self, method: str, params: JsonObject) -> None:
        if self._stream is not None:
            self._stream.put(notification_line(method, params))


class HttpEndpoint:
    """Serves the requests for one tool server."""

    def __init__(self, server: ToolServer, times: HttpTimes) -> None:
        self.server = server
        self.secret = secrets.token_urlsafe(32)
        self._times = times
        self._clients: dict[str, _Client] = {}
        self._passing: set[ToolSession] = set()

    def close(self) -> None:
        """End all sessions."""
        for session in [*(client.session for client in self._clients.values()), *self._passing]:
            session.close()

    async def serve(self, http: HttpConnection, request: HttpRequest) -> bool:
        """Answer a request, and return whether the connection can serve another one.

        Raises:
            HttpError: The request cannot be served.
            anyio.EndOfStream: The client left.
        """
        match request.method:
            case "POST":
                return await self._post(http, request)
            case "GET" if SESSION_HEADER in request.headers:
                return await self._get(http, request)
            case "DELETE" if SESSION_HEADER in request.headers:
                return await self._delete(http, request)
            case _:
                # Some agents probe with GET or HEAD whether there is a stream; with this answer they continue
                # with POST.
                raise HttpError(405, "POST, or GET and DELETE of a session", ("allow", "POST, GET, DELETE"))

    async def _post(self, http: HttpConnection, request: HttpRequest) -> bool:
        if not request.accepts(JSON_TYPE) and not request.accepts(EVENTS_TYPE):
            raise HttpError(406, f"Accept has to allow {JSON_TYPE} or {EVENTS_TYPE}")
        if request.content_type != JSON_TYPE:
            raise HttpError(415, f"Content-Type has to be {JSON_TYPE}")
        client = self._client(request) if SESSION_HEADER in request.headers else None
        match rpc.parse(trimmed(await http.read_body())):
            case rpc.Malformed(reason=reason):
                return await http.respond(400, malformed_line(reason), ("content-type", JSON_TYPE))
            case rpc.Request(method="initialize") as message:
                session_id = secrets.token_urlsafe(16)
                client = self._clients[session_id] = _Client(self.server)
                return await self._request(
                    http, request, message, client.session, (SESSION_HEADER, session_id)
                )
            case rpc.Request() as message if client is not None:
                return await self._request(http, request, message, client.session)
            case rpc.Request() as message:
                return await self._pass(http, request, message)
            case rpc.Notification(method, params) if client is not None:
                with suppress(McpError):
                    client.session.notification(method, decode_params(params))
                return await http.respond(202)
            case _:
                return await http.respond(202)

    async def _pass(self, http: HttpConnection, request: HttpRequest, message: rpc.Request) -> bool:
        """Serve a request without a session: MCP 2026-07-28 has none, and some agents leave out its id."""
        session = ToolSession(self.server, None)
        self._passing.add(session)
        try:
            return await self._request(http, request, message, session)
        finally:
            self._passing.discard(session)
            session.close()

    async def _request(
        self,
        http: HttpConnection,
        request: HttpRequest,
        message: rpc.Request,
        session: ToolSession,
        *headers: Header,
    ) -> bool:
        """Serve a request while watching its client: if it leaves, the request is cancelled."""
        lines: Lines = Outbox()

        def notify(method: str, params: JsonObject) -> None:
            if request.accepts(EVENTS_TYPE):
                lines.put(notification_line(method, params))

        async def work() -> None:
            lines.put(await session.answer(message, notify))

        async with background_tasks() as tasks:
            tasks.start_soon(work)
            tasks.start_soon(_close_when_gone, lines, http)
            reusable, listed = await self._reply(http, request, lines, *headers)
        session.sent(listed)
        return reusable

    async def _reply(
        self, http: HttpConnection, request: HttpRequest, lines: Lines, *headers: Header
    ) -> tuple[bool, int | None]:
        """Send the answer: plain if it comes soon and first, else as the last event of a stream."""
        first: bytes | Answer | None = None
        if request.accepts(JSON_TYPE):
            with anyio.move_on_after(self._times.patience if request.accepts(EVENTS_TYPE) else None):
                first = await lines.peek()
        if isinstance(first, Answer):
            reusable = await http.respond(200, first.line, ("content-type", JSON_TYPE), *headers)
            return reusable, first.listed
        await http.start_events(*headers)
        answer = await self._send_events(http, lines)
        return await http.end_events(), answer.listed

    async def _send_events(self, http: HttpConnection, lines: Lines) -> Answer:
        """Send events up to the answer, and a comment after each pause.

        Raises:
            anyio.EndOfStream: There will be no answer.
        """
        while True:
            item: bytes | Answer | None = None
            with anyio.move_on_after(self._times.keepalive):
                item = await lines.get()
            match item:
                case None:
                    await http.send_comment()
                case Answer():
                    await http.send_event(item.line)
                    return item
                case _:
                    await http.send_event(item)

    async def _get(self, http: HttpConnection, request: HttpRequest) -> bool:
        """Stream messages except answers until the client leaves or reopens it, or its session ends."""
        if not request.accepts(EVENTS_TYPE):
            raise HttpError(406, f"Accept has to allow {EVENTS_TYPE}")
        client = self._client(request)
        await http.read_body()
        await http.start_events()
        lines = client.open_stream()
        async with background_tasks() as tasks:
            tasks.start_soon(_close_when_gone, lines, http)
            tasks.start_soon(_close_after, lines, client.session)
            with suppress(anyio.EndOfStream):
                await self._send_events(http, lines)
        return await http.end_events()

    async def _delete(self, http: HttpConnection, request: HttpRequest) -> bool:
        self._client(request).session.close()
        del self._clients[request.headers[SESSION_HEADER]]
        await http.read_body()
        return await http.respond(200)

    def _client(self, request: HttpRequest) -> _Client:
        client = self._clients.get(request.headers[SESSION_HEADER])
        if client is None:
            raise HttpError(404, "There is no such session")
        return client


async def _close_when_gone(lines: Lines, http: HttpConnection) -> None:
    await http.wait_gone()
    lines.close()


async def _close_after(lines: Lines, session: ToolSession) -> None:
    await session.closed.wait()
    lines.close()
