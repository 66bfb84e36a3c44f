"""The asynchronous skin of a `Peer`: reads, writes, and runs handlers.

One task reads. It hands over updates and answers in the order in which they were read, and waits only for
bytes: a slow consumer, handler or user cannot delay it. Each request from the other side runs in its own
task; they begin in the order in which they were read. Bytes that the transport does not accept at once are
written by one task, so that a cancelled caller never leaves half a message.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVarTuple, cast

import anyio
import msgspec
from anyio.lowlevel import checkpoint_if_cancelled
from typing_extensions import TypeVar

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp._framing import MAX_LINE
from thinkwell_acp._peer import Answer, Peer
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.errors import (
    INTERNAL_ERROR,
    REQUEST_CANCELLED,
    AcpError,
    ConnectionBroken,
    ConnectionClosed,
    RpcError,
)
from thinkwell_acp.schema import CancelRequestNotification, DecodeError, SessionNotification, decode, encode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell_acp._peer import Received
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.transport import DirectTransport, Transport

__all__ = (
    "CANCEL_REQUEST",
    "CLOSE_FLUSH_TIMEOUT",
    "SEND_HIGH_WATER",
    "WRITE_FAILURE_GRACE",
    "Connection",
    "Handler",
    "Outcome",
    "ServedRequest",
    "Settle",
    "open_connection",
)

logger: logging.Logger = logging.getLogger("thinkwell.acp")

SEND_HIGH_WATER = 256 * 1024
"""Bytes waiting to be written beyond which `Connection.drain` waits."""

WRITE_FAILURE_GRACE = 3.0
"""Seconds for a peer that no longer reads to report the reason, before the connection is given up. The
transport of a process that ends needs less, even if its pipes are held open."""

CLOSE_FLUSH_TIMEOUT = 1.0
"""Seconds that closing waits for the last messages to be written: a peer that does not read must not block
it."""

CANCEL_REQUEST = "$/cancel_request"

_CANNOT_SEND = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)

Outcome: TypeAlias = msgspec.Raw | AcpError
"""The outcome of a request: its raw result, or the error."""

Settle: TypeAlias = Callable[[Outcome], None]
"""Called with the outcome of a request."""

Args = TypeVarTuple("Args")


class Handler(Protocol):
    """Handles the messages that a connection receives. Only `request` may wait.

    An exception in a method is logged and costs only the one message.
    """

    def updates(self, batch: list[SessionNotification], /) -> None:
        """Handle updates, in the order in which they were read."""
        ...

    def arrived(self, request: rpc.Request, /) -> None:
        """Handle that a request arrived, in order among the messages; `request` follows, in its own task."""
        ...

    async def request(self, id: rpc.RequestId, method: str, params: msgspec.Raw, /) -> object:  # noqa: A002
        """Serve a request of the other side; raise `RpcError` to fail it."""
        ...

    def notification(self, method: str, params: msgspec.Raw, /) -> None:
        """Handle a notification other than an update."""
        ...

    def malformed(self, report: rpc.Malformed, /) -> None:
        """Handle malformed input."""
        ...

    def closed(self, reason: AcpError, /) -> None:
        """Handle the end of the input."""
        ...


H_co = TypeVar("H_co", bound=Handler, default=Handler, covariant=True)


class ServedRequest:
    """A request of the other side that is being served."""

    def __init__(self, request: rpc.Request) -> None:
        self.request = request
        self.params: object = None
        """The parameters, once the handler has read them."""
        self.scope: anyio.CancelScope = anyio.CancelScope()
        """The scope of its handler."""
        self.outcome: bytes | rpc.ErrorObject = rpc.ErrorObject(REQUEST_CANCELLED, "Request cancelled")
        """The answer: cancelled, unless its handler returns something."""

    def cancel(self, answer: object) -> None:
        """Cancel its handler. The answer is then this one, unless the handler returns another."""
        self.outcome = encode(answer)
        self.scope.cancel()


class Connection(Generic[H_co]):
    """A running connection. Made by `open_connection`."""

    def __init__(
        self,
        transport: Transport,
        handler: H_co | Callable[[Connection], H_co],
        tasks: BackgroundTasks,
        max_line: int,
    ) -> None:
        self._transport = transport
        self._direct = _as_direct(transport)
        self._tasks = tasks
        self._peer: Peer[Settle] = Peer(max_line=max_line)
        self._outbox: list[bytes] = []
        self._writable = True
        self._waiting_bytes = 0
        self._wake_writer = anyio.Event()
        self._drained = anyio.Event()
        self._read_scope = anyio.CancelScope()
        self._closed = anyio.Event()
        self.error: AcpError | None = None
        """Why the connection ended; ``None`` while it is up."""
        self.serving: dict[rpc.RequestId, ServedRequest] = {}
        """The other side's unanswered requests, in the order in which they were read."""
        self.handler: H_co = handler(self) if callable(handler) else handler
        """The handler of received messages."""

    # Sending

    def call(self, method: str, params: object, settle: Settle) -> int:
        """Send a request and return its id; `settle` is called with the outcome, exactly once.

        An answer is passed on in its order among the received messages: after every update before it, and
        before every update after it. If the connection has ended, `settle` is called at once and the id is
        -1.
        """
        if self.error is not None:
            settle(copy.copy(self.error))
            return -1
        id_, line = self._peer.request(method, encode(params), settle)
        self._post(line)
        return id_

    async def request(
        self,
        method: str,
        params: object,
        heard: Callable[[msgspec.Raw], None] | None = None,
        *,
        give_up: Callable[[int], None] | None = None,
    ) -> msgspec.Raw:
        """Send a request and return its raw result.

        Cancelling the call gives the request up.

        Args:
            method: The method.
            params: Its parameters.
            heard: Called with the result first, in its order among the messages, as in `call`.
            give_up: Gives up the request with an id; by default `abandon`.

        Raises:
            RpcError: The peer answered with an error.
            ConnectionClosed, ConnectionBroken: There will be no answer.
        """
        await checkpoint_if_cancelled()
        settled = anyio.Event()
        outcomes: list[Outcome] = []

        def settle(outcome: Outcome) -> None:
            outcomes.append(outcome)
            settled.set()
            if heard is not None and not isinstance(outcome, AcpError):
                heard(outcome)

        id_ = self.call(method, params, settle)
        try:
            await settled.wait()
        finally:
            if not outcomes:
                (give_up or self.abandon)(id_)
        outcome = outcomes[0]
        if isinstance(outcome, AcpError):
            raise outcome
        return outcome

    def abandon(self, id_: int) -> None:
        """Give up a request: the peer receives ``$/cancel_request`` and its late answer is dropped."""
        if self._peer.abandon(id_):
            self.notify(CANCEL_REQUEST, CancelRequestNotification(request_id=id_))

    def notify(self, method: str, params: object) -> None:
        """Send a notification. It is written in the background, in order."""
        if self.error is None:
            self._post(rpc.encode_notification(method, encode(params)))

    def answer(self, id: rpc.RequestId, value: object) -> None:  # noqa: A002 - the field's name
        """Answer a request of the peer now, and stop its handler; do nothing if it was already answered."""
        self._post(self._peer.answer(id, encode(value)))
        served = self.serving.pop(id, None)
        if served is not None:
            served.scope.cancel()

    async def drain(self) -> None:
        """Wait until few bytes are left to write, so that a fast sender does not fill the memory.

        Raises:
            ConnectionClosed, ConnectionBroken: The connection has ended.
        """
        await self._wait_written(SEND_HIGH_WATER)
        if self.error is not None:
            raise copy.copy(self.error)
        await checkpoint_if_cancelled()

    async def _wait_written(self, rest: int) -> None:
        while self._waiting_bytes > rest:
            if self._drained.is_set():
                self._drained = anyio.Event()
            await self._drained.wait()

    async def wait_closed(self) -> None:
        """Wait until the connection has ended, from either side."""
        await self._closed.wait()

    def _post(self, line: bytes) -> None:
        if not line or not self._writable:
            return
        if self._direct is not None and not self._waiting_bytes:
            try:
                line = line[self._direct.send_now(line) :]
            except _CANNOT_SEND:
                self._write_failed()
                return
            if not line:
                return
        self._outbox.append(line)
        self._waiting_bytes += len(line)
        self._wake_writer.set()

    async def _write(self) -> None:
        while True:
            await self._wake_writer.wait()
            self._wake_writer = anyio.Event()
            data = b"".join(self._outbox)
            self._outbox.clear()
            try:
                await self._transport.send(data)
            except _CANNOT_SEND:
                self._write_failed()
                return
            self._waiting_bytes -= len(data)
            self._drained.set()

    def _write_failed(self) -> None:
        self._stop_writing()
        self._read_scope.deadline = anyio.current_time() + WRITE_FAILURE_GRACE

    def _stop_writing(self) -> None:
        self._writable = False
        self._waiting_bytes = 0
        self._drained.set()

    # Receiving

    async def _read(self) -> None:
        reason: AcpError = ConnectionBroken("the other side has stopped reading")
        with self._read_scope:
            reason = await self._read_until_end()
        self.end(reason)

    async def _read_until_end(self) -> AcpError:
        peer, transport, direct = self._peer, self._transport, self._direct
        while peer.failure is None:
            try:
                if direct is None:
                    messages = peer.receive(await transport.receive())
                else:
                    messages = peer.filled(await direct.receive_into(peer.space()))
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                self._dispatch(peer.receive_eof())
                return ConnectionBroken()
            except ConnectionBroken as exc:
                self._dispatch(peer.receive_eof())
                return exc
            self._dispatch(messages)
        return peer.failure

    def _dispatch(self, messages: list[Received[Settle]]) -> None:
        for message in messages:
            if isinstance(message, list):
                _tell(self.handler.updates, message)
            else:
                self._dispatch_one(message)

    def _dispatch_one(self, message: rpc.Request | rpc.Notification | Answer[Settle] | rpc.Malformed) -> None:
        match message:
            case Answer():
                _tell(message.token, _read_outcome(message.outcome))
            case rpc.Request():
                served = self.serving[message.id] = ServedRequest(message)
                _tell(self.handler.arrived, message)
                self._tasks.start_in_order(self._serve, served)
            case rpc.Notification(method="$/cancel_request"):
                self._cancel_serving(message.params)
            case rpc.Notification():
                _tell(self.handler.notification, message.method, message.params)
            case rpc.Malformed():  # pragma: no branch - the last of the union
                _tell(self.handler.malformed, message)

    def _cancel_serving(self, params: msgspec.Raw) -> None:
        try:
            id_ = decode(CancelRequestNotification, params).request_id
        except DecodeError as exc:
            _tell(self.handler.malformed, rpc.Malformed(bytes(params), str(exc)))
            return
        served = self.serving.get(id_)
        if served is not None:
            served.scope.cancel()

    async def _serve(self, served: ServedRequest) -> None:
        id_ = served.request.id
        with served.scope:
            served.outcome = await self._handle(served.request)
        if self.serving.get(id_) is not served:
            return  # it was already answered, and the id may be another request's by now
        del self.serving[id_]
        if isinstance(served.outcome, bytes):
            self._post(self._peer.answer(id_, served.outcome))
        else:
            self._post(self._peer.refuse(id_, served.outcome))

    async def _handle(self, request: rpc.Request) -> bytes | rpc.ErrorObject:
        try:
            return encode(await self.handler.request(request.id, request.method, request.params))
        except RpcError as exc:
            return rpc.ErrorObject(exc.code, exc.message, exc.data)
        except Exception as exc:
            if self.error is None:  # otherwise the end of the connection is the cause
                logger.exception("The handler of %s failed", request.method)
            return rpc.ErrorObject(INTERNAL_ERROR, f"{type(exc).__name__}: {exc}")

    # Ending

    def end(self, reason: AcpError) -> None:
        """End the connection: waiting calls get the reason. Only the first call has an effect."""
        if self.error is not None:
            return
        self.error = reason
        self._stop_writing()
        # First, because the following code wakes handlers that wait for answers.
        for served in list(self.serving.values()):
            served.scope.cancel()
        for settle in self._peer.close():
            _tell(settle, copy.copy(reason))
        self._closed.set()
        self._read_scope.cancel()
        _tell(self.handler.closed, reason)

    async def flush(self) -> None:
        """Wait until everything is written: shielded, and at most `CLOSE_FLUSH_TIMEOUT`."""
        with anyio.move_on_after(CLOSE_FLUSH_TIMEOUT, shield=True):
            await self._wait_written(0)


def _as_direct(transport: Transport) -> DirectTransport | None:
    kind = type(transport)
    if hasattr(kind, "receive_into") and hasattr(kind, "send_now"):
        return cast("DirectTransport", transport)
    return None


def _tell(listener: Callable[[*Args], None], *args: *Args) -> None:
    """Call code of others. Its exceptions must not end the connection."""
    try:
        listener(*args)
    except Exception:
        logger.exception("%s failed", listener)


def _read_outcome(answer: rpc.Result | rpc.Failure) -> Outcome:
    if isinstance(answer, rpc.Result):
        return answer.value
    return RpcError(answer.error.code, answer.error.message, answer.error.data)


@asynccontextmanager
async def open_connection(
    transport: Transport, handler: H_co | Callable[[Connection], H_co], *, max_line: int = MAX_LINE
) -> AsyncGenerator[Connection[H_co]]:
    """Run a connection over a transport, which is closed with it.

    Args:
        transport: The transport.
        handler: Handles received messages, or a function that makes the handler from the connection.
        max_line: The longest line accepted, in bytes.
    """
    try:
        async with background_tasks() as tasks:
            connection = Connection(transport, handler, tasks, max_line)
            tasks.start_soon(connection._write)
            tasks.start_soon(connection._read)
            try:
                yield connection
            finally:
                await connection.flush()
                connection.end(ConnectionClosed())
    finally:
        with anyio.CancelScope(shield=True):
            await transport.aclose()
