"""One MCP client of a tool server: the protocol, over any transport.

Two families of revisions are served. Up to 2025-11-25 a client shakes hands (``initialize``) and gets
changes as plain notifications. Revision 2026-07-28 has no handshake: every request has its revision in
``_meta``, results are stamped, and a client subscribes to changes with ``subscriptions/listen``.
"""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec
from msgspec import Raw, Struct, field

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
)
from thinkwell_acp.mcp._progress import CallContext, Notify
from thinkwell_acp.mcp._types import McpError, ToolOutput
from thinkwell_acp.schema import JsonObject, JsonValue, RequestId

if TYPE_CHECKING:
    from collections.abc import Generator

    from thinkwell_acp.mcp._server import ToolServer

T = TypeVar("T")

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ENVELOPE_REVISIONS = ("2026-07-28",)

UNSUPPORTED_REVISION = -32022
"""Error code of MCP 2026-07-28 for a revision that the server does not serve."""
SERVER_CLOSED = -32000

_REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_LIST_CHANGED = "notifications/tools/list_changed"
_CAPABILITIES: JsonObject = {"tools": {"listChanged": True}}
_NEVER_CACHED: JsonObject = {"ttlMs": 0, "cacheScope": "private"}

logger = logging.getLogger("thinkwell.acp")


class CallCancelledError(McpError):
    """The client withdrew its request, or its session ended."""

    def __init__(self) -> None:
        super().__init__(REQUEST_CANCELLED, "The request was cancelled")


class Reply(Struct, frozen=True):
    """The result of a request."""

    result: Raw
    listed: int | None = None
    """The set of tools in it, if it is the answer to ``tools/list``."""


class Answer(Struct, frozen=True):
    """The answer to a request, as a line of JSON-RPC."""

    line: bytes
    listed: int | None = None
    cancelled: bool = False
    """Whether the client withdrew the request, and needs no answer."""


class _Params(Struct):
    meta: JsonObject | None = field(default=None, name="_meta")


class _Initialize(Struct):
    protocol_version: JsonValue = field(default=None, name="protocolVersion")


class _Call(Struct):
    name: str
    arguments: JsonObject | None = None


class _Listen(Struct):
    notifications: JsonObject


class _Cancelled(Struct):
    request_id: int | str = field(name="requestId")


class ToolSession:
    """A client's session with a tool server.

    Args:
        server: The server.
        notify: Sends the client notifications outside answers; ``None``: not possible.
    """

    def __init__(self, server: ToolServer, notify: Notify | None) -> None:
        self.server = server
        self.closed = anyio.Event()
        self._notify = notify
        self._ready = False
        self._listed = 0
        self._running: dict[object, anyio.CancelScope] = {}
        self._listening: dict[object, Notify] = {}
        server.join(self)

    @property
    def stale(self) -> bool:
        """Whether the client has an outdated list of tools."""
        return 0 < self._listed < self.server.generation

    async def answer(self, request: rpc.Request, notify: Notify) -> Answer:
        """Serve a request and return the line to send. Call `sent` after sending it.

        Args:
            request: The request.
            notify: Sends the client notifications that belong to this request, until the answer is returned.
        """
        try:
            if request.id is None:
                raise McpError(INVALID_REQUEST, "A request's id is a string or a number")
            reply = await self.request(request.method, decode_params(request.params), request.id, notify)
        except McpError as exc:
            error = rpc.ErrorObject(exc.code, exc.message, exc.data)
            return Answer(
                rpc.encode_failure(request.id, error), cancelled=isinstance(exc, CallCancelledError)
            )
        return Answer(rpc.encode_result(request.id, bytes(reply.result)), reply.listed)

    def sent(self, listed: int | None) -> None:
        """Record that an answer, with this set of tools or none, was sent."""
        if listed is not None:
            self.server.listed(listed)

    async def request(self, method: str, params: JsonObject, id_: RequestId, notify: Notify) -> Reply:
        """Serve a request.

        Args:
            method: The MCP method.
            params: Its parameters.
            id_: The request's id; ``None`` if the transport has none, so that it cannot be referred to.
            notify: Sends the client notifications that belong to this request.

        Raises:
            McpError: The request failed.
        """
        if self.server.closed or self.closed.is_set():
            raise McpError(SERVER_CLOSED, "This tool server is closed")
        meta = _convert(_Params, params).meta or {}
        stamp = self._stamp(meta)
        match method:
            case "initialize":
                return _reply(self._initialize(_convert(_Initialize, params)))
            case "ping":
                return _reply(stamp)
            case "tools/list":
                self._listed, listing = self.server.listing()
                return _reply(listing | (_NEVER_CACHED | stamp if stamp else {}), self._listed)
            case "tools/call":
                return await self._call(_convert(_Call, params), CallContext(meta, notify), id_, stamp)
            case "server/discover" if self.server.discover:
                return _reply(self._discover() | stamp)
            case "subscriptions/listen" if stamp and id_ is not None:
                return await self._listen(_convert(_Listen, params), id_, notify, stamp)
            case _:
                raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}", {"method": method})

    def notification(self, method: str, params: JsonObject) -> None:
        """Handle a notification. Unknown and malformed ones are ignored."""
        if method == "notifications/initialized":
            self._ready = True
            if self.stale:
                self.announce()
        elif method == "notifications/cancelled":
            try:
                scope = self._running.get(_convert(_Cancelled, params).request_id)
            except McpError:
                return
            if scope is not None:
                scope.cancel()

    def announce(self) -> None:
        """Tell the client that the tools have changed, if it is ready."""
        if self._ready and self._notify is not None:
            self._notify(_LIST_CHANGED, {})
        for id_, notify in self._listening.items():
            notify(_LIST_CHANGED, {"_meta": {_SUBSCRIPTION_KEY: id_}})

    def close(self) -> None:
        """End the session: cancel its calls, end its subscriptions, refuse later requests."""
        self.server.leave(self)
        self.closed.set()
        for id_, scope in self._running.items():
            if id_ not in self._listening:
                scope.cancel()

    def _stamp(self, meta: JsonObject) -> JsonObject:
        """Return the stamp of the request's revision for every result; empty with a handshake."""
        revision = meta.get(_REVISION_KEY)
        if revision is None or revision in HANDSHAKE_REVISIONS:
            return {}
        if revision not in ENVELOPE_REVISIONS:
            data = {"supported": [*HANDSHAKE_REVISIONS, *ENVELOPE_REVISIONS], "requested": revision}
            raise McpError(UNSUPPORTED_REVISION, "Unsupported protocol version", data)
        return {"resultType": "complete", "_meta": {_SERVER_KEY: self.server.identity()}}

    def _initialize(self, asked: _Initialize) -> JsonObject:
        known = asked.protocol_version in HANDSHAKE_REVISIONS
        result: JsonObject = {
            "protocolVersion": asked.protocol_version if known else HANDSHAKE_REVISIONS[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": self.server.identity(),
        }
        return result | self._instructions()

    def _discover(self) -> JsonObject:
        result: JsonObject = {
            "supportedVersions": [*HANDSHAKE_REVISIONS, *ENVELOPE_REVISIONS],
            "capabilities": _CAPABILITIES,
        }
        return result | _NEVER_CACHED | self._instructions()

    def _instructions(self) -> JsonObject:
        return {} if self.server.instructions is None else {"instructions": self.server.instructions}

    async def _call(self, call: _Call, context: CallContext, id_: object, stamp: JsonObject) -> Reply:
        self.server.find(call.name)
        outcome: Reply | McpError | None = None
        with (
            anyio.CancelScope() as scope,
            self._known(object() if id_ is None else id_, scope),
            self.server.running(),
        ):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(context.keep_alive, self.server.keepalive)
                try:
                    outcome = await self._run(call, context, stamp)
                finally:
                    context.finish()
                    tasks.cancel_scope.cancel()
        if isinstance(outcome, Reply):
            return outcome
        raise outcome or CallCancelledError

    async def _run(self, call: _Call, context: CallContext, stamp: JsonObject) -> Reply | McpError:
        """Run the handler. Its failure is reported to the agent, and ends only this call."""
        try:
            output = await self.server.call(call.name, call.arguments or {}, context)
            return _reply(output.wire() | stamp)
        except McpError as exc:
            return exc
        except Exception as exc:
            logger.warning("Tool %s raised %s; the agent received the error", call.name, type(exc).__name__)
            logger.debug("Tool %s raised", call.name, exc_info=True)
            failed = str(exc) or type(exc).__name__
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:
                raise
            # This call was not cancelled: its handler raised the cancellation of something that it waited
            # for.
            failed = "The tool was cancelled"
        return _reply(ToolOutput.text(failed, is_error=True).wire() | stamp)

    async def _listen(self, listen: _Listen, id_: RequestId, notify: Notify, stamp: JsonObject) -> Reply:
        wanted = listen.notifications.get("toolsListChanged") is True
        mark: JsonObject = {_SUBSCRIPTION_KEY: id_}
        with anyio.CancelScope() as scope, self._known(id_, scope):
            honoured = {"toolsListChanged": True} if wanted else {}
            notify("notifications/subscriptions/acknowledged", {"notifications": honoured, "_meta": mark})
            self._listening[id_] = notify if wanted else _ignore
            try:
                await self.closed.wait()
            finally:
                del self._listening[id_]
            return _reply(stamp | {"_meta": mark})
        raise CallCancelledError

    @contextmanager
    def _known(self, id_: object, scope: anyio.CancelScope) -> Generator[None]:
        """Let the client withdraw the request during the block."""
        self._running[id_] = scope
        try:
            yield
        finally:
            if self._running.get(id_) is scope:
                del self._running[id_]


def _ignore(_method: str, _params: JsonObject) -> None:
    pass


def _reply(result: JsonObject, listed: int | None = None) -> Reply:
    return Reply(Raw(msgspec.json.encode(result)), listed)


def decode_params(raw: Raw) -> JsonObject:
    """Read the parameters of a request or notification.

    Raises:
        McpError: They are not a JSON object.
    """
    try:
        return msgspec.json.decode(raw, type=JsonObject | None) or {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise McpError(INVALID_PARAMS, f"Invalid params: {exc}") from exc


def notification_line(method: str, params: JsonObject) -> bytes:
    """Return a notification as a line of JSON-RPC."""
    return rpc.encode_notification(method, msgspec.json.encode(params))


def malformed_line(reason: str) -> bytes:
    """Return the answer to malformed input."""
    return rpc.encode_failure(None, rpc.ErrorObject(PARSE_ERROR, f"Not a JSON-RPC message: {reason}"))


def _convert(kind: type[T], params: JsonObject) -> T:
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as exc:
        raise McpError(INVALID_PARAMS, f"Invalid params: {exc}") from exc
