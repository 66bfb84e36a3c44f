"""A transport that notes the lines on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell.testing._journal import Line
from thinkwell_acp._framing import LineSplitter

if TYPE_CHECKING:
    from thinkwell.testing._journal import Journal
    from thinkwell_acp import Transport

UPDATE_START: Final = b'{"jsonrpc":"2.0","method"'
"""How the lines of notifications of our agents begin. They are not noted: there may be millions."""

NO_LIMIT: Final = 1 << 62
"""For lines that are only noted."""


class Tap:
    """The agent's end of a transport. It notes the received lines and, except for updates, the sent ones."""

    def __init__(self, inner: Transport, journal: Journal, connection: int) -> None:
        self._inner = inner
        self._journal = journal
        self._connection = connection
        self._received = LineSplitter(NO_LIMIT)
        self._sent = LineSplitter(NO_LIMIT)

    async def receive(self) -> bytes:
        """Return the next bytes."""
        data = await self._inner.receive()
        for line in self._received.feed(data):
            self._journal.append(Line(self._connection, "client", line.decode("utf-8", "replace")))
        return data

    async def send(self, item: bytes, /) -> None:
        """Send all the bytes."""
        for line in self._sent.feed(item):
            if line[: len(UPDATE_START)] != UPDATE_START:
                self._journal.append(Line(self._connection, "agent", line.decode("utf-8", "replace")))
        await self._inner.send(item)

    async def aclose(self) -> None:
        """Close the transport."""
        await self._inner.aclose()
