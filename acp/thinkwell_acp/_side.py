"""What the client's and the agent's side have in common: typed calls, and the table from methods to handlers."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from thinkwell_acp import schema as s
from thinkwell_acp.errors import RpcError
from thinkwell_acp.schema import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec

    from thinkwell_acp._jsonrpc import Malformed, RequestId
    from thinkwell_acp.connection import Connection
    from thinkwell_acp.errors import AcpError
    from thinkwell_acp.handlers import CommonHandler

T = TypeVar("T")

logger = logging.getLogger("thinkwell.acp")


class Route(NamedTuple):
    """Where a method goes: the type of its parameters and the handler's method."""

    params: type[s.Model]
    attribute: str


class Side:
    """One end of a connection, with typed calls to the other."""

    requests: Mapping[str, Route]
    notifications: Mapping[str, Route]

    def __init__(self, handler: CommonHandler) -> None:
        self._handler = handler
        self._attached: Connection | None = None

    def attach(self, connection: Connection) -> None:
        """Take the connection; called once, before anything is received."""
        self._attached = connection

    @property
    def connection(self) -> Connection:
        """The connection underneath."""
        assert self._attached is not None
        return self._attached

    async def wait_closed(self) -> None:
        """Wait until the connection has ended."""
        await self.connection.wait_closed()

    async def call(self, method: str, params: s.Model, result: type[T]) -> T:
        """Send a request and return its typed result.

        Raises:
            RpcError: The other side answered with an error.
            ConnectionClosed, ConnectionBroken: There will be no answer.
            DecodeError: The answer does not fit its type.
        """
        return decode(result, await self.connection.request(method, params))

    async def ext_call(self, method: str, params: s.JsonValue = None) -> s.JsonValue:
        """Send an extension request. `method` starts with an underscore, which stays on the wire."""
        return decode(object, await self.connection.request(_extension(method), {} if params is None else params))

    def ext_notify(self, method: str, params: s.JsonValue = None) -> None:
        """Send an extension notification. `method` starts with an underscore."""
        self.connection.notify(_extension(method), {} if params is None else params)

    # The handler's side of a connection

    async def request(self, id: RequestId, method: str, params: msgspec.Raw, /) -> object:  # noqa: A002
        """Serve a request of the other side."""
        route = self.requests.get(method)
        if route is None:
            if not method.startswith("_"):
                raise RpcError.method_not_found(method)
            return await self._handler.ext_request(method, decode(object, params))
        return await self.serve(id, method, decode(route.params, params), getattr(self._handler, route.attribute))

    async def serve(self, id: RequestId, method: str, params: s.Model, handle: Callable[..., object]) -> object:  # noqa: A002
        """Call the handler of one request. Sides override it to check and to track."""
        del id, method
        result = handle(params)
        return await result if inspect.isawaitable(result) else result

    def notification(self, method: str, params: msgspec.Raw, /) -> None:
        """Hand a notification to its handler. What the handler raises is logged and costs this message only."""
        route = self.notifications.get(method)
        try:
            if route is None:
                self._handler.ext_notification(method, decode(object, params))
            else:
                self.notified(method, decode(route.params, params))
        except Exception:
            logger.exception("The notification %s could not be handled", method)

    def notified(self, method: str, params: s.Model) -> None:
        """Call the handler of one notification."""
        getattr(self._handler, self.notifications[method].attribute)(params)

    def malformed(self, report: Malformed, /) -> None:
        """Pass on what is no message."""
        self._handler.malformed(report)

    def closed(self, reason: AcpError, /) -> None:
        """Pass on that the connection has ended."""
        self._handler.closed(reason)


def _extension(method: str) -> str:
    if not method.startswith("_"):
        msg = f"an extension method starts with an underscore, {method!r} does not"
        raise ValueError(msg)
    return method
