"""A small HTTP client for streams of events: for thousands at once, and rude where it has to be."""

from __future__ import annotations

import json
import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
from anyio.abc import SocketAttribute

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyio.abc import SocketStream

__all__ = ("Answer", "Broken", "Chunks", "Frame", "Frames", "ask", "connected")

RECEIVED: Final = 256 * 1024
"""Bytes that are read at once."""

SMALL: Final = 16_384
"""Bytes that the system keeps for somebody who reads slowly, about."""


class Broken(Exception):  # noqa: N818 - says what happened
    """The connection ended before the answer did, or there was none."""


class Frame(NamedTuple):
    """A server-sent event."""

    id: int
    event: str
    data: bytes


class Chunks:
    """Takes a chunked body apart (RFC 9112, 7.1), in whatever pieces it comes."""

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Return what is in some bytes, as far as whole chunks are there."""
        rest, found, at = self._rest + data, list[bytes](), 0
        while not self.ended:
            line = rest.find(b"\r\n", at)
            if line < 0:
                break
            size = int(rest[at:line], 16)
            end = line + 2 + size
            if len(rest) < end + 2:
                break
            if rest[end : end + 2] != b"\r\n":
                raise AssertionError(f"a chunk does not end: {rest[end : end + 2]!r}")
            found.append(rest[line + 2 : end])
            self.ended = size == 0
            at = end + 2
        self._rest = rest[at:]
        return b"".join(found)


class Frames:
    """Takes a stream of events apart. A block without ``id`` and ``data`` is none: comments, ``retry``."""

    def __init__(self) -> None:
        self.others: list[bytes] = []
        """Blocks that are no events."""
        self._rest = b""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the events that are complete with some bytes."""
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        found: list[Frame] = []
        for block in blocks:
            lines = (line.partition(b": ") for line in block.split(b"\n"))
            fields = {name: value for name, _, value in lines}
            if b"id" in fields and b"data" in fields:
                event = fields.get(b"event", b"message").decode()
                found.append(Frame(int(fields[b"id"]), event, fields[b"data"]))
            else:
                self.others.append(block)
        return found


class Answer:
    """The head of an answer, and its body as it comes."""

    def __init__(self, stream: SocketStream, status: int, headers: Mapping[str, str], rest: bytes) -> None:
        self.status = status
        self.headers = headers
        self._stream = stream
        self._chunks = Chunks() if headers.get("transfer-encoding") == "chunked" else None
        self._left = int(headers.get("content-length", 0))
        self._rest = rest

    async def read(self, most: int = RECEIVED) -> bytes:
        """Return some of the body; nothing: it is over.

        Raises:
            Broken: The connection has ended before it.
        """
        while not self._over:
            data, self._rest = self._rest, b""
            data = self._taken(data or await _receive(self._stream, most))
            if data:
                return data
        return b""

    @property
    def _over(self) -> bool:
        return self._left <= 0 if self._chunks is None else self._chunks.ended

    def _taken(self, data: bytes) -> bytes:
        if self._chunks is not None:
            return self._chunks.feed(data)
        self._left -= len(data)
        return data

    async def body(self) -> bytes:
        """Return all of the body."""
        parts: list[bytes] = []
        while part := await self.read():
            parts.append(part)
        return b"".join(parts)

    def hang_up(self) -> None:
        """Let the connection be reset when it is closed: nobody is told that it ends, and nothing is read."""
        raw: socket.socket = self._stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@asynccontextmanager
async def connected(
    port: int,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    slow: bool = False,
) -> AsyncGenerator[Answer]:
    """Ask a server on the loopback, and have its answer for the time of a block.

    Args:
        port: Its port.
        path: What to ask for.
        method: How.
        headers: What to say besides.
        body: What to send.
        slow: Whether the system is to keep as little as may be for this client.

    Raises:
        Broken: It does not answer.
    """
    raw = socket.socket()
    if slow:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)  # before: it decides how much is offered
    raw.setblocking(False)
    try:
        await _connect(raw, port)
    except BaseException:
        raw.close()
        raise
    async with await anyio.abc.SocketStream.from_socket(raw) as stream:
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        try:
            await stream.send("\r\n".join([*lines, "", ""]).encode() + body)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
            raise Broken(str(exc)) from exc
        yield await _answered(stream)


async def _connect(raw: socket.socket, port: int) -> None:
    try:
        raw.connect(("127.0.0.1", port))
    except BlockingIOError:
        await anyio.wait_writable(raw)
        if error := raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise Broken(f"connecting: error {error}") from None
    except OSError as exc:
        raise Broken(str(exc)) from exc


async def _answered(stream: SocketStream) -> Answer:
    head = b""
    while b"\r\n\r\n" not in head:
        head += await _receive(stream, RECEIVED)
    head, _, rest = head.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(stream, int(first.split(" ")[1]), headers, rest)


async def _receive(stream: SocketStream, most: int) -> bytes:
    try:
        return await stream.receive(most)
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
        raise Broken(type(exc).__name__) from exc


async def ask(
    port: int, method: str, path: str, json_body: Any = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    """Ask, and return the status and what the body says as JSON.

    Raises:
        Broken: The server does not answer.
    """
    body = b"" if json_body is None else json.dumps(json_body).encode()
    said = {
        "Connection": "close",
        **({"Content-Type": "application/json"} if body else {}),
        **(headers or {}),
    }
    async with connected(port, path, method=method, headers=said, body=body) as answer:
        text = await answer.body()
    return answer.status, json.loads(text) if text else None
