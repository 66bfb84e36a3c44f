"""One side of a JSON-RPC conversation as a state machine: ids, correlation, requests in flight.

It turns received bytes into messages, and messages to send into bytes. It never waits, and never raises
because of the other side's input. Its rules:

- Each direction has its own ids.
- A request of ours is settled at most once. The late answer to an abandoned one is dropped.
- A request of theirs is answered at most once.
- Messages come out in the order in which they were received.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeAlias, TypeVar

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp._framing import MAX_LINE, LineSplitter, trimmed
from thinkwell_acp.errors import FrameTooLong
from thinkwell_acp.schema import (
    DecodeError,
    JsonObject,
    SessionNotification,
    UnknownUpdate,
    decode,
    strict_decoder,
)
from thinkwell_acp.schema.updates import KINDS

T = TypeVar("T")

_LONG = 4096
"""Bytes of a line from which on its beginning is checked before it is decoded as an update."""

READ_SIZE = 256 * 1024
"""Bytes asked for in one read. The more come together, the less often each of many sessions is woken."""

_UPDATE_MARK = b'"session/update"'
_MARK_WITHIN = 64
"""The method of an update is within so many bytes of the start of its line, with every agent seen. If it is
not, lines are read one by one, and long ones in two steps."""


class Answer(Struct, Generic[T], frozen=True):
    """A request of ours was answered. `token` is the one that it was sent with."""

    token: T
    outcome: rpc.Result | rpc.Failure


Message: TypeAlias = rpc.Request | rpc.Notification | Answer[T] | rpc.Malformed

Received: TypeAlias = list[SessionNotification] | Message[T]
"""A message, or updates that were received directly after one another."""


class _UpdateLine(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Forbids unknown fields because with an ``id`` it would be a request."""

    method: Literal["session/update"]
    params: SessionNotification
    jsonrpc: str = ""


class _AnyUpdate(Struct, frozen=True, gc=False):
    session_id: str = field(name="sessionId")
    update: JsonObject
    meta: JsonObject | None = field(default=None, name="_meta")


_decode_any_update = Decoder(_AnyUpdate).decode


def _unknown_update(params: Raw) -> SessionNotification | None:
    """Read an update of an unknown kind; ``None`` if its kind is known or it is malformed.

    The lenient reader has the same result, but some agents use their own kinds all the time.
    """
    try:
        given = _decode_any_update(params)
    except (ValueError, RecursionError):
        return None
    kind = given.update.get("sessionUpdate")
    if not isinstance(kind, str) or kind in KINDS:
        return None
    update = UnknownUpdate(given.update)
    return SessionNotification(session_id=given.session_id, update=update, meta=given.meta)


def _is_update(line: bytes | memoryview) -> bool:
    return _UPDATE_MARK in bytes(line[:_MARK_WITHIN])


class Peer(Generic[T]):
    """The state of one side. `T` is what the caller keeps for each of its requests."""

    def __init__(self, *, max_line: int = MAX_LINE) -> None:
        self._lines = LineSplitter(max_line)
        self._decoder = strict_decoder(_UpdateLine)
        self._next_id = 0
        self._pending: dict[rpc.RequestId, T] = {}
        self._abandoned: set[rpc.RequestId] = set()
        self._serving: set[rpc.RequestId] = set()

    @property
    def failure(self) -> FrameTooLong | None:
        """Set once a line was beyond the limit: the following bytes cannot be read."""
        return self._lines.failure

    def space(self) -> memoryview:
        """Return the place for the next bytes. It overwrites the bytes received before."""
        return self._lines.space(READ_SIZE)

    def receive(self, data: bytes) -> list[Received[T]]:
        """Take the next bytes and return the messages that they complete. Check `failure` afterwards."""
        self._lines.space(len(data))[: len(data)] = data
        return self.filled(len(data))

    def filled(self, size: int) -> list[Received[T]]:
        """Return the messages that `size` bytes put into the space complete. Check `failure` afterwards."""
        try:
            block = self._lines.filled(size)
        except FrameTooLong:
            return []
        if not block:
            return []
        if _is_update(block):  # then the others nearly always are too
            try:
                lines = self._decoder.decode_lines(block)
            except (ValueError, RecursionError):  # the code below finds the malformed line
                pass
            else:
                if len(lines) == self._lines.count(block):  # otherwise a line break was inside a value
                    return [[line.params for line in lines]]
        return self._read_each(self._lines.cut(block))

    def _read_each(self, lines: list[bytes]) -> list[Received[T]]:
        received: list[Received[T]] = []
        updates: list[SessionNotification] = []
        decode_update = self._decoder.decode
        for line in lines:
            # Check a long line first: decoding it for nothing is expensive.
            if len(line) < _LONG or _is_update(line):
                try:
                    updates.append(decode_update(line).params)
                    continue
                except (ValueError, RecursionError):  # the code below finds the reason
                    pass
            message = self._read(line)
            if isinstance(message, SessionNotification):
                updates.append(message)
            elif message is not None:
                if updates:
                    received.append(updates)
                    updates = []
                received.append(message)
        if updates:
            received.append(updates)
        return received

    def receive_eof(self) -> list[Received[T]]:
        """Return the message in an unterminated last line. Nothing may be received after it."""
        message = self._read(self._lines.finish())
        if isinstance(message, SessionNotification):
            return [[message]]
        return [] if message is None else [message]

    def _read(self, line: bytes) -> SessionNotification | Message[T] | None:
        line = trimmed(line)
        if not line:
            return None
        match rpc.parse(line):
            case rpc.Notification(method="session/update", params=params):
                try:
                    return _unknown_update(params) or decode(SessionNotification, params)
                except DecodeError as exc:
                    return rpc.Malformed(line, str(exc))
            case rpc.Request(id=id_) as request:
                if id_ in self._serving:
                    return rpc.Malformed(line, f"a request with id {id_!r} is being served already")
                self._serving.add(id_)
                return request
            case rpc.Result(id=id_) | rpc.Failure(id=id_) as answer:
                if id_ in self._pending:
                    return Answer(self._pending.pop(id_), answer)
                if id_ in self._abandoned:
                    self._abandoned.discard(id_)
                    return None
                return rpc.Malformed(line, f"an answer to id {id_!r}, which is not an open request's")
            case other:
                return other

    def request(self, method: str, params: bytes, token: T) -> tuple[int, bytes]:
        """Start a request and return its id and the bytes to send."""
        id_ = self._next_id
        self._next_id += 1
        self._pending[id_] = token
        return id_, rpc.encode_request(id_, method, params)

    def abandon(self, id_: int) -> bool:
        """Give up a request of ours. Its late answer will be dropped. False: it was already settled."""
        if id_ not in self._pending:
            return False
        del self._pending[id_]
        self._abandoned.add(id_)
        return True

    def answer(self, id_: rpc.RequestId, value: bytes) -> bytes:
        """Return the bytes that answer a request of theirs, or none if it was already answered."""
        return self._answer(id_, rpc.encode_result(id_, value))

    def refuse(self, id_: rpc.RequestId, error: rpc.ErrorObject) -> bytes:
        """Return the bytes that fail a request of theirs, or none if it was already answered."""
        return self._answer(id_, rpc.encode_failure(id_, error))

    def _answer(self, id_: rpc.RequestId, line: bytes) -> bytes:
        if id_ not in self._serving:
            return b""
        self._serving.discard(id_)
        return line

    def close(self) -> list[T]:
        """Forget everything in flight and return the tokens of the requests that will not be answered."""
        unanswered = list(self._pending.values())
        self._pending.clear()
        self._abandoned.clear()
        self._serving.clear()
        return unanswered
