"""The common part of both sides: typed calls, common requests, and the routes to handlers."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import schema as s
from thinkwell_acp.errors import INVALID_PARAMS, RpcError
from thinkwell_acp.schema import DecodeError, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    import msgspec

    from thinkwell_acp._jsonrpc import Malformed, Request, RequestId
    from thinkwell_acp.connection import Connection
    from thinkwell_acp.errors import AcpError

logger = logging.getLogger("thinkwell.acp")


class CommonHandler:
    """Requests and notifications that both sides may receive."""

    async def ext_request(self, method: str, params: s.JsonValue, /) -> s.JsonValue:
        """Serve an extension request; `method` starts with an underscore."""
        raise RpcError.method_not_found(method)

    def ext_notification(self, method: str, params: s.JsonValue, /) -> None:
        """Handle an extension notification, or one that the protocol does not define."""

    def malformed(self, report: Malformed, /) -> None:
        """Handle malformed input. The default logs it."""
        logger.warning("Not a message: %s, %d bytes", report.reason, len(report.line))
        logger.debug("That line: %.200r", report.line)

    def closed(self, reason: AcpError, /) -> None:
        """Handle the end of the connection."""

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> s.JsonValue:
        """Serve a request inside an MCP connection; the answer is the inner result."""
        raise RpcError.method_not_found("mcp/message")

    def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
        """Handle a notification inside an MCP connection."""


T = TypeVar("T")
H = TypeVar("H", bound=CommonHandler)


class Side(Generic[H]):
    """One end of a connection, with typed calls to the other.

    Args:
        connection: The connection underneath.
        handler: Serves the other end's requests, or a function that makes it from this object.
    """

    requests: ClassVar[Mapping[str, str]]
    """The handler's method for each request."""
    notifications: ClassVar[Mapping[str, str]]
    """The handler's method for each notification."""

    def __init__(self, connection: Connection, handler: H | Callable[[Self], H]) -> None:
        self.connection = connection
        """The connection underneath."""
        self._handler: H = handler(self) if callable(handler) else handler

    async def wait_closed(self) -> None:
        """Wait until the connection has ended."""
        await self.connection.wait_closed()

    async def call(
        self, method: str, params: s.Model, result: type[T], heard: Callable[[T], None] | None = None
    ) -> T:
        """Send a request and return its typed result.

        `heard` is called with it while messages are being read: after every update that was read before the
        answer has been handed over, and before any later one is.

        Raises:
            RpcError: The other side answered with an error.
            ConnectionClosed, ConnectionBroken: There will be no answer.
            DecodeError: The answer does not fit its type.
        """
        if heard is None:
            return decode(result, await self.connection.request(method, params))
        answers: list[T | DecodeError] = []

        def read(raw: msgspec.Raw) -> None:
            try:
                answer = decode(result, raw)
            except DecodeError as exc:
                answers.append(exc)
            else:
                answers.append(answer)
                heard(answer)

        await self.connection.request(method, params, read)
        answer = answers[0]
        if isinstance(answer, DecodeError):
            raise answer
        return answer

    async def ext_call(self, method: str, params: s.JsonValue = None) -> s.JsonValue:
        """Send an extension request. `method` starts with an underscore, which stays on the wire."""
        return decode(
            object, await self.connection.request(_extension(method), {} if params is None else params)
        )

    def ext_notify(self, method: str, params: s.JsonValue = None) -> None:
        """Send an extension notification. `method` starts with an underscore."""
        self.connection.notify(_extension(method), {} if params is None else params)

    async def message_mcp(self, request: s.MessageMcpRequest) -> s.JsonValue:
        """Send a request inside an MCP connection and return the inner result."""
        return decode(object, await self.connection.request("mcp/message", request))

    def notify_mcp(self, notification: s.MessageMcpNotification) -> None:
        """Send a notification inside an MCP connection."""
        self.connection.notify("mcp/message", notification)

    # The handler's side of a connection

    def arrived(self, request: Request, /) -> None:
        """Handle a request's arrival, in order among the messages; `request` serves it, in its own task."""

    async def request(self, id: RequestId, method: str, params: msgspec.Raw, /) -> object:  # noqa: A002
        """Serve a request of the other side."""
        if method not in self.requests:
            if not method.startswith("_"):
                raise RpcError.method_not_found(method)
            return await self._handler.ext_request(method, _decode_params(object, method, params))
        typed = _decode_params(s.REQUESTS[method].params, method, params)
        self.connection.serving[id].params = typed
        result = await self.serve(id, method, typed, getattr(self._handler, self.requests[method]))
        return {} if result is None else result

    async def serve(
        self,
        id: RequestId,  # noqa: A002 - the field's name
        method: str,
        params: s.Model,
        handle: Callable[..., object],
    ) -> object:
        """Call the handler of one request. Sides override it to check and to track."""
        del id, method
        result = handle(params)
        return await result if inspect.isawaitable(result) else result

    def notification(self, method: str, params: msgspec.Raw, /) -> None:
        """Hand a notification to its handler."""
        known = method in self.notifications
        kind: type[Any] = s.NOTIFICATIONS[method].params if known else object
        try:
            decoded = decode(kind, params)
        except DecodeError as exc:
            self.malformed(rpc.Malformed(bytes(params), f"{method}: {exc}"))
            return
        if known:
            self.notified(method, decoded)
        else:
            self._handler.ext_notification(method, decoded)

    def notified(self, method: str, params: s.Model) -> None:
        """Call the handler of one notification."""
        getattr(self._handler, self.notifications[method])(params)

    def malformed(self, report: Malformed, /) -> None:
        """Pass on malformed input."""
        self._handler.malformed(report)

    def closed(self, reason: AcpError, /) -> None:
        """Pass on that the connection has ended."""
        self._handler.closed(reason)


def _decode_params(type_: type[T], method: str, params: msgspec.Raw) -> T:
    try:
        return decode(type_, params)
    except DecodeError as exc:
        raise RpcError(INVALID_PARAMS, f"Invalid params of {method}: {exc}") from exc


def _extension(method: str) -> str:
    if not method.startswith("_"):
        raise ValueError(f"an extension method starts with an underscore, {method!r} does not")
    return method
