"""A transport with faults."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from thinkwell.testing._chaos import Fault, Passed
from thinkwell_acp import ConnectionBroken

if TYPE_CHECKING:
    from thinkwell.testing._chaos import Chaos, Piece, Way
    from thinkwell_acp import Transport


class ChaoticTransport:
    """The client's end of a connection to an agent, with faults. Created by `chaotic`."""

    def __init__(self, transport: Transport, chaos: Chaos) -> None:
        self._transport = transport
        self.chaos = chaos
        self._begun = b""
        self._pieces: deque[Piece] = deque()
        self._ended: Exception | None = None
        self._reading = anyio.CancelScope()
        self._closed = anyio.Event()
        self._news = anyio.Event()
        self.left_at: float | None = None
        """When our side ended it; ``None`` while it is open, or if it broke."""

    async def receive(self) -> bytes:
        """Return the next bytes.

        Raises:
            anyio.EndOfStream: The input has ended.
            ConnectionBroken: The same, with the reason.
        """
        try:
            return await self._receive()
        except anyio.get_cancelled_exc_class():
            self._leave()
            raise

    async def _receive(self) -> bytes:
        await checkpoint()
        while not self._pieces:
            if self._ended is None and self.chaos.broken in (Fault.DROP, Fault.HALF_LINE):
                self._ended = anyio.EndOfStream()
                await self._transport.aclose()
            if self._ended is not None:
                raise self._ended
            await self._fill()
        piece = self._pieces[0]
        if piece.delay:
            await anyio.sleep(piece.delay)
        self._pieces.popleft()
        for line, fault in piece.lines:
            self._note("in", line, fault)
        return piece.data

    async def reached(self, number: int) -> None:
        """Wait until that many messages have passed, both ways."""
        while self.chaos.messages < number:
            await self._news.wait()

    def _leave(self) -> None:
        if self.left_at is None and self._ended is None and self.chaos.broken is None:
            self.left_at = anyio.current_time()

    async def _fill(self) -> None:
        """Read once. Dropping the connection ends the wait."""
        chaos = self.chaos
        try:
            with anyio.CancelScope() as self._reading:
                data = await self._transport.receive()
                if chaos.broken is Fault.HANG:
                    return
                *lines, self._begun = (self._begun + data).split(b"\n")
                self._take(lines)
        except (anyio.EndOfStream, anyio.ClosedResourceError, ConnectionBroken) as exc:
            self._ended = exc
            if chaos.broken is not Fault.HANG:
                self._pieces += chaos.finish()

    def _take(self, lines: list[bytes]) -> None:
        before = self.chaos.broken
        self._pieces += self.chaos.incoming(lines)
        self._note_broken(before)

    def _note_broken(self, before: Fault | None) -> None:
        self._news.set()
        self._news = anyio.Event()
        if self.chaos.broken is not before:
            self._note("in", b"", self.chaos.broken)
            if self.chaos.broken in (Fault.DROP, Fault.HALF_LINE):
                self._reading.cancel()

    def _note(self, way: Way, line: bytes, fault: Fault | None = None) -> None:
        self.chaos.passed.append(Passed(at=anyio.current_time(), way=way, line=line, fault=fault))

    async def send(self, item: bytes, /) -> None:
        """Send whole lines.

        Raises:
            anyio.BrokenResourceError: The connection was dropped.
            anyio.ClosedResourceError: It was closed on our side.
        """
        await checkpoint()
        chaos, before = self.chaos, self.chaos.broken
        data = b""
        for line in item.removesuffix(b"\n").split(b"\n"):
            self._note("out", line)
            if chaos.outgoing(line):
                data += line + b"\n"
        delay = chaos.write_delay()
        if delay:
            await anyio.sleep(delay)
        if data:
            await self._transport.send(data)
        self._note_broken(before)
        if chaos.broken is Fault.STUCK:
            await self._closed.wait()
            raise anyio.ClosedResourceError
        if chaos.broken in (Fault.DROP, Fault.HALF_LINE):
            raise anyio.BrokenResourceError

    async def aclose(self) -> None:
        """Close both directions."""
        self._leave()
        self._closed.set()
        await self._transport.aclose()


def chaotic(transport: Transport, chaos: Chaos) -> ChaoticTransport:
    """Return a transport with faults, for ``open_agent(transport=…)``.

    Args:
        transport: The client's end of a connection, such as one of `ScriptedAgent`.
        chaos: The faults; a separate one for each connection.
    """
    return ChaoticTransport(transport, chaos)
