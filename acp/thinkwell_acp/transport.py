"""The transport under a connection: its protocol, and one in memory.

Any `anyio.abc.ByteStream` is a `Transport` too: a TCP connection, a Unix socket, TLS.
"""

from __future__ import annotations

from typing import Protocol

import anyio
import anyio.lowlevel

__all__ = (
    "MEMORY_PIPE_SIZE",
    "DirectTransport",
    "MemoryTransport",
    "Transport",
    "memory_transport_pair",
)

MEMORY_PIPE_SIZE = 1024 * 1024
"""Bytes that a memory transport buffers before its sender has to wait."""


class Transport(Protocol):
    """Carries bytes both ways. The boundaries between blocks have no meaning."""

    async def receive(self) -> bytes:
        """Return the next bytes, at least one.

        Raises:
            anyio.EndOfStream: The other side has ended.
            ConnectionBroken: The same, with the reason.
        """
        ...

    async def send(self, item: bytes, /) -> None:
        """Send all the bytes.

        Raises:
            anyio.BrokenResourceError: The other side has stopped reading.
        """
        ...

    async def aclose(self) -> None:
        """Close both directions and release what the transport holds."""
        ...


class DirectTransport(Transport, Protocol):
    """A transport with faster methods, which save copies and passes of the event loop.

    A connection uses them if the transport's class has both methods. So a wrapper that passes on unknown
    attributes still sees all bytes.
    """

    async def receive_into(self, space: memoryview, /) -> int:
        """Put the next bytes into a space and return how many, at least one. Raises as `receive`."""
        ...

    def send_now(self, item: bytes, /) -> int:
        """Send as many of the first bytes as fit without a wait, and return how many. Raises as `send`."""
        ...


class _Pipe:
    """One direction of a memory transport."""

    def __init__(self) -> None:
        self.buffer: bytearray = bytearray()
        self.sender_closed = False
        self.receiver_closed = False
        self._changed = anyio.Event()

    def changed(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_changed(self) -> None:
        await self._changed.wait()


class MemoryTransport:
    """One end of a pair; made by `memory_transport_pair`."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> bytes:
        """Return everything that the other end has sent since the last call."""
        await anyio.lowlevel.checkpoint()
        pipe = self._incoming
        while not (pipe.buffer or pipe.receiver_closed):
            if pipe.sender_closed:
                raise anyio.EndOfStream
            await pipe.wait_changed()
        if pipe.receiver_closed:
            raise anyio.ClosedResourceError
        data = bytes(pipe.buffer)
        pipe.buffer.clear()
        pipe.changed()
        return data

    async def send(self, item: bytes, /) -> None:
        """Send the bytes; wait while the other end is more than `MEMORY_PIPE_SIZE` behind."""
        await anyio.lowlevel.checkpoint()
        pipe = self._outgoing
        while len(pipe.buffer) >= MEMORY_PIPE_SIZE and not (pipe.sender_closed or pipe.receiver_closed):
            await pipe.wait_changed()
        if pipe.sender_closed:
            raise anyio.ClosedResourceError
        if pipe.receiver_closed:
            raise anyio.BrokenResourceError
        pipe.buffer += item
        pipe.changed()

    async def aclose(self) -> None:
        """Close this end. Bytes that were sent before can still be received."""
        self._outgoing.sender_closed = True
        self._incoming.receiver_closed = True
        self._outgoing.changed()
        self._incoming.changed()
        await anyio.lowlevel.checkpoint()


def memory_transport_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Return the two ends of a connection inside this process."""
    one, two = _Pipe(), _Pipe()
    return MemoryTransport(one, two), MemoryTransport(two, one)
