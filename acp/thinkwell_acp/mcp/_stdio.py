"""MCP as lines of JSON-RPC over a stream of bytes (MCP 2025-11-25, basic/transports, stdio)."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

import anyio

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp._framing import LineSplitter, trimmed
from thinkwell_acp._tasks import InOrder
from thinkwell_acp.errors import FrameTooLong
from thinkwell_acp.mcp._outbox import Outbox
from thinkwell_acp.mcp._session import Answer, ToolSession, decode_params, malformed_line, notification_line
from thinkwell_acp.mcp._types import McpError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from thinkwell_acp.mcp._server import ToolServer
    from thinkwell_acp.mcp._sockets import Stream
    from thinkwell_acp.schema import JsonObject

logger = logging.getLogger("thinkwell.acp")


class LineSession:
    """A client's session with a tool server over a stream.

    Requests begin in the order in which they come, and are served at the same time.

    Args:
        stream: Carries the bytes.
        server: The server.
    """

    def __init__(self, stream: Stream, server: ToolServer) -> None:
        self.session = ToolSession(server, self._notify)
        self._stream = stream
        self._outbox: Outbox[bytes | Answer] = Outbox()
        self._messages = InOrder(self._serve)

    async def run(self, first: bytes) -> None:
        """Serve the client until it leaves or the session is closed, and send the remaining answers.

        Args:
            first: Bytes that were already received.
        """
        try:
            async with anyio.create_task_group() as writing:
                writing.start_soon(self._write, writing.cancel_scope)
                async with anyio.create_task_group() as requests:
                    with anyio.CancelScope() as reading:
                        requests.start_soon(self._stop, reading)
                        await self._read(first, requests)
                    if not self.session.closed.is_set():
                        requests.cancel_scope.cancel()
                self._outbox.close()
        finally:
            self.session.close()

    def _notify(self, method: str, params: JsonObject) -> None:
        self._outbox.put(notification_line(method, params))

    async def _stop(self, reading: anyio.CancelScope) -> None:
        """Stop reading when the session is closed. Earlier requests are still answered."""
        await self.session.closed.wait()
        reading.cancel()

    async def _read(self, data: bytes, requests: TaskGroup) -> None:
        """Handle messages until the client leaves."""
        splitter = LineSplitter()
        try:
            while True:
                for line in splitter.feed(data):
                    self._take(trimmed(line), requests)
                data = await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return
        except FrameTooLong as exc:
            logger.warning("an MCP client was dropped: %s", exc)

    def _take(self, line: bytes, requests: TaskGroup) -> None:
        if not line:
            return
        match rpc.parse(line):
            case rpc.Request() | rpc.Notification() as message:
                # Notifications too: one may withdraw a request that was read with it.
                self._messages.start_soon(requests, message)
            case rpc.Malformed(reason=reason):
                self._outbox.put(malformed_line(reason))
            case _:
                pass

    async def _serve(self, message: rpc.Request | rpc.Notification) -> None:
        if isinstance(message, rpc.Notification):
            with contextlib.suppress(McpError):
                self.session.notification(message.method, decode_params(message.params))
            return
        answer = await self.session.answer(message, self._notify)
        if not answer.cancelled or self.session.closed.is_set():
            self._outbox.put(answer)

    async def _write(self, conversation: anyio.CancelScope) -> None:
        try:
            while True:
                item = await self._outbox.get()
                await self._stream.send(item if isinstance(item, bytes) else item.line)
                if isinstance(item, Answer):
                    self.session.sent(item.listed)
        except anyio.EndOfStream:
            return
        except anyio.BrokenResourceError:
            conversation.cancel()
