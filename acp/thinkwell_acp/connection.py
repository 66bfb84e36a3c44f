"""The asynchronous skin of a `Peer`: reads, writes, and runs handlers.

One task reads. It hands over updates and answers in the order in which they were read and never waits for anything but
bytes: a slow consumer, a handler or a person cannot hold it up. Each request from the other side runs in a task of its
own. One task writes, so that a caller who is cancelled can never leave half a message in the pipe.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

import anyio
import msgspec
from anyio.lowlevel import checkpoint_if_cancelled

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp._framing import MAX_LINE
from thinkwell_acp._peer import Answer, Peer
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_CANCELLED,
    AcpError,
    ConnectionBroken,
    ConnectionClosed,
    RpcError,
)
from thinkwell_acp.schema import CancelRequestNotification, DecodeError, SessionNotification, decode, encode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import TaskGroup

    from thinkwell_acp.transport import Transport

logger = logging.getLogger("thinkwell.acp")

SEND_HIGH_WATER = 256 * 1024
"""Bytes waiting to be written beyond which `Connection.drain` waits."""

WRITE_FAILURE_GRACE = 1.0
"""Seconds in which a peer that reads no more may still say why, before the connection is given up."""

CLOSE_FLUSH_TIMEOUT = 1.0
"""Seconds that closing waits for the last messages to be written: a peer that does not read must not hold us."""

CANCEL_REQUEST = "$/cancel_request"

Outcome: TypeAlias = msgspec.Raw | AcpError
"""What became of a request: its raw result, or the error."""


class Handler(Protocol):
    """What a connection does with what it receives. Only `request` may wait."""

    def updates(self, batch: list[SessionNotification], /) -> None:
        """Take updates, in the order in which they were read."""
        ...

    async def request(self, id: rpc.RequestId, method: str, params: msgspec.Raw, /) -> object:  # noqa: A002
        """Serve a request of the other side; raise `RpcError` to fail it."""
        ...

    def notification(self, method: str, params: msgspec.Raw, /) -> None:
        """Take a notification other than an update."""
        ...

    def malformed(self, report: rpc.Malformed, /) -> None:
        """Take something that is no message."""
        ...

    def closed(self, reason: AcpError, /) -> None:
        """Learn that nothing more will come."""
        ...


class Connection:
    """A running connection. Made by `open_connection`."""

    def __init__(self, transport: Transport, handler: Handler, tasks: TaskGroup, max_line: int) -> None:
        self._transport = transport
        self._handler = handler
        self._tasks = tasks
        self._peer: Peer[Callable[[Outcome], None]] = Peer(max_line=max_line)
        self._serving: dict[rpc.RequestId, anyio.CancelScope] = {}
        self._outbox: list[bytes] = []
        self._waiting_bytes = 0
        self._wake_writer = anyio.Event()
        self._drained = anyio.Event()
        self._read_scope = anyio.CancelScope()
        self._closed = anyio.Event()
        self.error: AcpError | None = None
        """Why the connection ended; ``None`` while it is up."""

    # Sending

    def call(self, method: str, params: object, settle: Callable[[Outcome], None]) -> int:
        """Send a request and return its id; `settle` is called with what becomes of it, exactly once.

        An answer is passed on at its place among the messages that were read: after every update before it, and before
        every update behind it.
        """
        if self.error is not None:
            settle(self.error)
            return -1
        id_, line = self._peer.request(method, encode(params), settle)
        self._post(line)
        return id_

    async def request(self, method: str, params: object) -> msgspec.Raw:
        """Send a request and return its raw result.

        A caller who is cancelled gives the request up: the peer is told by ``$/cancel_request`` and its late answer is
        swallowed.

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

        id_ = self.call(method, params, settle)
        try:
            await settled.wait()
        finally:
            if not outcomes:
                self.abandon(id_)
        outcome = outcomes[0]
        if isinstance(outcome, AcpError):
            raise outcome
        return outcome

    def abandon(self, id_: int) -> None:
        """Give up a request and tell the peer so."""
        if self._peer.abandon(id_):
            self.notify(CANCEL_REQUEST, CancelRequestNotification(request_id=id_))

    def notify(self, method: str, params: object) -> None:
        """Send a notification. It is written in the background, in order."""
        if self.error is None:
            self._post(rpc.encode_notification(method, encode(params)))

    def answer(self, id: rpc.RequestId, value: object) -> None:  # noqa: A002 - the field's name
        """Answer a request of the peer's now, and stop its handler. Nothing happens where it was answered before."""
        self._post(self._peer.answer(id, encode(value)))
        scope = self._serving.get(id)
        if scope is not None:
            scope.cancel()

    async def drain(self) -> None:
        """Wait until little is left to be written, so that a fast sender does not fill the memory.

        Raises:
            ConnectionClosed, ConnectionBroken: It never will be.
        """
        while self._waiting_bytes > SEND_HIGH_WATER and self.error is None:
            self._drained = anyio.Event()
            await self._drained.wait()
        if self.error is not None:
            raise self.error
        await checkpoint_if_cancelled()

    async def wait_closed(self) -> None:
        """Wait until the connection has ended, from whichever side."""
        await self._closed.wait()

    def _post(self, line: bytes) -> None:
        if line and self.error is None:
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
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                self._read_scope.deadline = anyio.current_time() + WRITE_FAILURE_GRACE
                self._drained.set()
                return
            self._waiting_bytes -= len(data)
            self._drained.set()

    # Receiving

    async def _read(self) -> None:
        reason: AcpError = ConnectionBroken("the other side reads no more")
        with self._read_scope:
            reason = await self._read_until_end()
        self.end(reason)

    async def _read_until_end(self) -> AcpError:
        receive, transport = self._peer.receive, self._transport
        while True:
            try:
                data = await transport.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionBroken) as exc:
                self._dispatch(self._peer.receive_eof())
                return exc if isinstance(exc, ConnectionBroken) else ConnectionBroken()
            try:
                self._dispatch(receive(data))
            except ConnectionBroken as exc:
                return exc

    def _dispatch(self, messages: list[SessionNotification | rpc.Request | rpc.Notification | Answer[Callable[[Outcome], None]] | rpc.Malformed]) -> None:
        batch: list[SessionNotification] = []
        for message in messages:
            if type(message) is SessionNotification:
                batch.append(message)
                continue
            if batch:
                self._handler.updates(batch)
                batch = []
            self._dispatch_one(message)
        if batch:
            self._handler.updates(batch)

    def _dispatch_one(self, message: object) -> None:
        match message:
            case Answer(token=settle, outcome=outcome):
                settle(_read_outcome(outcome))
            case rpc.Request():
                scope = self._serving[message.id] = anyio.CancelScope()
                self._tasks.start_soon(self._serve, message, scope)
            case rpc.Notification(method="$/cancel_request", params=params):
                self._cancel_serving(params)
            case rpc.Notification():
                self._handler.notification(message.method, message.params)
            case rpc.Malformed():
                self._handler.malformed(message)
            case _:  # pragma: no cover - the union above has no other member
                raise AssertionError(message)

    def _cancel_serving(self, params: msgspec.Raw) -> None:
        try:
            id_ = decode(CancelRequestNotification, params).request_id
        except DecodeError as exc:
            self._handler.malformed(rpc.Malformed(bytes(params), str(exc)))
            return
        scope = self._serving.get(id_)
        if scope is not None:
            scope.cancel()

    async def _serve(self, request: rpc.Request, scope: anyio.CancelScope) -> None:
        error: rpc.ErrorObject | None = None
        with scope:
            try:
                value = await self._handler.request(request.id, request.method, request.params)
                line = self._peer.answer(request.id, encode(value))
                self._serving.pop(request.id, None)
                self._post(line)
                return
            except RpcError as exc:
                error = rpc.ErrorObject(exc.code, exc.message, exc.data)
            except DecodeError as exc:
                error = rpc.ErrorObject(INVALID_PARAMS, f"Invalid params of {request.method}: {exc}")
            except Exception as exc:
                logger.exception("The handler of %s failed", request.method)
                error = rpc.ErrorObject(INTERNAL_ERROR, f"{type(exc).__name__}: {exc}")
        self._serving.pop(request.id, None)
        self._post(self._peer.refuse(request.id, error or rpc.ErrorObject(REQUEST_CANCELLED, "Request cancelled")))

    # Ending

    def end(self, reason: AcpError) -> None:
        """End the connection: whoever waits for an answer gets the reason. Only the first call counts."""
        if self.error is not None:
            return
        self.error = reason
        for settle in self._peer.close():
            settle(reason)
        for scope in list(self._serving.values()):
            scope.cancel()
        self._closed.set()
        self._drained.set()
        self._read_scope.cancel()
        self._handler.closed(reason)

    async def _flush(self) -> None:
        with anyio.move_on_after(CLOSE_FLUSH_TIMEOUT, shield=True):
            while self._waiting_bytes and self.error is None:
                self._drained = anyio.Event()
                await self._drained.wait()


def _read_outcome(answer: rpc.Result | rpc.Failure) -> Outcome:
    if isinstance(answer, rpc.Result):
        return answer.value
    return RpcError(answer.error.code, answer.error.message, answer.error.data)


@asynccontextmanager
async def open_connection(transport: Transport, handler: Handler, *, max_line: int = MAX_LINE) -> AsyncIterator[Connection]:
    """Run a connection over a transport, which is closed with it.

    Args:
        transport: The pipe.
        handler: What to do with what comes in.
        max_line: The longest line accepted, in bytes.
    """
    try:
        async with background_tasks() as tasks:
            connection = Connection(transport, handler, tasks, max_line)
            tasks.start_soon(connection._write)  # noqa: SLF001
            tasks.start_soon(connection._read)  # noqa: SLF001
            try:
                yield connection
            finally:
                await connection._flush()  # noqa: SLF001
                connection.end(ConnectionClosed())
    finally:
        with anyio.CancelScope(shield=True):
            await transport.aclose()
