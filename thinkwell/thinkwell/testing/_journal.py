"""The history of a script: the lines of its connections, the steps that began, and the failures.

It is kept in memory, or in a file if processes play the script: each appends to it, and continues where the
others are.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from thinkwell_acp._framing import LineSplitter

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell_acp import Transport

UPDATE_START: Final = b'{"jsonrpc":"2.0","method"'
"""How the lines of notifications of our agents begin. They are not noted: there may be millions."""

NO_LIMIT: Final = 1 << 62
"""For lines that are only noted."""


class Line(Struct, frozen=True, tag_field="entry", tag="line"):
    """A line that came over a connection."""

    connection: int
    by: Literal["client", "agent"]
    text: str


class Begun(Struct, frozen=True, tag_field="entry", tag="begun"):
    """A step has begun. Turns and steps count from 1."""

    turn: int
    step: int


class Returned(Struct, frozen=True, tag_field="entry", tag="returned"):
    """The client has taken the result of a turn."""

    turn: int


class Failure(Struct, frozen=True, tag_field="entry", tag="failure"):
    """Something differed from the script."""

    reason: str


Entry: TypeAlias = Line | Begun | Returned | Failure

Counted: TypeAlias = Literal["connection", "session", "turn"]
"""What is counted, over all connections."""


class MemoryJournal:
    """A journal of this process."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._counts: Counter[Counted] = Counter()

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, in order."""
        return tuple(self._entries)

    def append(self, entry: Entry) -> None:
        """Add an entry."""
        self._entries.append(entry)

    def claim(self, counted: Counted) -> int:
        """Return the next number, from 1; it is not given twice."""
        self._counts[counted] += 1
        return self._counts[counted]


class FileJournal:
    """A journal of several processes, in its own folder.

    It is a file of lines, and an empty file for each taken number.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "played.ndjson"

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, in order. An entry that its process could not finish is left out."""
        if not self._path.exists():
            return ()
        *whole, _unfinished = self._path.read_bytes().split(b"\n")
        return tuple(_decode(line) for line in whole)

    def append(self, entry: Entry) -> None:
        """Add an entry. It is in the file when this returns, whatever happens to the process."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(entry) + b"\n")
        finally:
            os.close(descriptor)

    def claim(self, counted: Counted) -> int:
        """Return the next number: that of the first file that this process creates."""
        number = 1
        while True:
            try:
                os.close(os.open(self._folder / f"{counted}-{number}", os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                number += 1
            else:
                return number


Journal: TypeAlias = MemoryJournal | FileJournal

_decode: Final = msgspec.json.Decoder(Entry).decode


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
