"""JSON-RPC 2.0 messages as values. It never waits, and no input of a peer raises.

`parse` reads only the envelope. Parameters and results stay raw, so that they are decoded once, straight to
their type.
"""

from __future__ import annotations

import json
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from thinkwell_acp.schema import JsonValue, encode

RequestId: TypeAlias = int | str | None
"""A request's id. Each direction has its own ids; an id is echoed with its JSON type."""

NO_PARAMS = Raw(b"{}")


class Request(Struct, frozen=True, gc=False):
    """A call that expects an answer."""

    id: RequestId
    method: str
    params: Raw


class Notification(Struct, frozen=True, gc=False):
    """A message that gets no answer."""

    method: str
    params: Raw


class Result(Struct, frozen=True, gc=False):
    """The answer to a request."""

    id: RequestId
    value: Raw


class ErrorObject(Struct, frozen=True, gc=False):
    """The error of a failed request."""

    code: int
    message: str = ""
    data: JsonValue = None


class Failure(Struct, frozen=True, gc=False):
    """The answer to a request that failed."""

    id: RequestId
    error: ErrorObject


class Malformed(Struct, frozen=True, gc=False):
    """Input that is not a message. It is reported and never answered."""

    line: bytes
    reason: str


Message: TypeAlias = Request | Notification | Result | Failure | Malformed


class _Envelope(Struct, frozen=True, gc=False):
    id: RequestId | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_error = msgspec.json.Decoder(ErrorObject).decode


def parse(line: bytes) -> Message:
    """Read one line as a message."""
    try:
        envelope = _decode_envelope(line)
        if not line.isascii():
            line.decode()  # the decoder does not check text inside a `Raw`
    except (ValueError, RecursionError) as exc:
        repaired = repair(line)
        if repaired is None or repaired == line:
            return Malformed(line, str(exc))
        message = parse(repaired)
        return Malformed(line, message.reason) if isinstance(message, Malformed) else message
    if envelope.method is not UNSET:
        params = NO_PARAMS if envelope.params is UNSET else envelope.params
        if envelope.id is UNSET:
            return Notification(envelope.method, params)
        return Request(envelope.id, envelope.method, params)
    if envelope.id is UNSET:
        return Malformed(line, "neither a method nor an id")
    if envelope.error is not UNSET and bytes(envelope.error) != b"null":
        return Failure(envelope.id, _read_error(envelope.error))
    if envelope.result is not UNSET:
        return Result(envelope.id, envelope.result)
    return Malformed(line, "an id without method, result or error")


def repair(line: bytes) -> bytes | None:
    """Return the line as valid UTF-8 JSON if only its text was broken, else ``None``.

    Agents pass on the output of tools, cut anywhere: invalid UTF-8, and half of an escaped surrogate pair.
    The replacement character replaces what cannot be read, and the rest of the message is kept.
    """
    text = line.decode("utf-8", "replace")
    try:
        value = json.loads(text)
        if not isinstance(value, dict):
            return None
        whole = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _read_error(raw: Raw) -> ErrorObject:
    try:
        return _decode_error(raw)
    except (ValueError, RecursionError):
        text = bytes(raw).decode("utf-8", "replace")
        return ErrorObject(-32603, "The peer sent an error without code and message", text)


def encode_request(id: RequestId, method: str, params: bytes) -> bytes:  # noqa: A002 - the field's name
    """Return a request as one line."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n' % (encode(id), encode(method), params)


def encode_notification(method: str, params: bytes) -> bytes:
    """Return a notification as one line."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (encode(method), params)


def encode_result(id: RequestId, value: bytes) -> bytes:  # noqa: A002 - the field's name
    """Return an answer as one line."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode(id), value)


def encode_failure(id: RequestId, error: ErrorObject) -> bytes:  # noqa: A002 - the field's name
    """Return an error answer as one line. Data without a JSON form is described."""
    body: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    try:
        encoded = encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError):
        message = error.message.encode("utf-8", "replace").decode()
        encoded = encode({"code": error.code, "message": message, "data": ascii(error.data)})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (encode(id), encoded)
