"""Holds records back while a text that is streamed in pieces may be in the midst of a secret."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from thinkwell._recording._redact import merged, replaced

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from thinkwell._recording._redact import Redactor, Scan
    from thinkwell._recording._table import Find

R = TypeVar("R")

LIMIT: Final = 256 * 1024
"""Characters and bytes that are held. Beyond that all is released, as if each text were paused."""

COST: Final = 64
"""What a record counts for besides its text and size, so that empty ones cannot pile up either."""

CONTEXTS: Final = 64
"""Texts of which the end is remembered when it was released before its time; of others it is forgotten."""

_CONTEXT: Final = 16 * 1024
_EAGER: Final = 1024


class Released(NamedTuple, Generic[R]):
    """A record that may be written."""

    record: R
    text: str | None
    """Its piece of text without secrets; ``None`` for a record that was added without text."""


@dataclass(slots=True)
class _Entry(Generic[R]):
    record: R
    cost: int
    text: str | None
    """What is decided of its piece, without secrets."""
    rest: str
    """What is not."""


@dataclass(slots=True)
class _Stream(Generic[R]):
    """One text in pieces, from where on it is not decided."""

    context: str = ""
    """What was released before its time."""
    entries: list[_Entry[R]] = field(default_factory=list)
    size: int = 0
    due: int = 0

    def decide(self, text: str, spans: list[Find], cut: int) -> None:
        """Give what is decided back to the pieces that it came in."""
        start = len(self.context)
        for entry in self.entries:
            end = start + len(entry.rest)
            if start < cut:
                entry.text = (entry.text or "") + replaced(text, spans, start, min(end, cut))
                entry.rest = text[cut:end]
            start = end
        self.entries = [entry for entry in self.entries if entry.rest]
        self.context = self.context[cut:]
        self.size = len(text) - cut


class Holder(Generic[R]):
    """Takes records in order and releases them in order, the text of those that have one without secrets.

    The pieces of one stream are redacted as the one text that they are. A piece is held while a secret may
    go on in the next one: while its last word is not ended, and what stands behind a name such as
    `password:`; all records behind it wait, too. A secret's replacement is put where it begins, and its
    other pieces become shorter or empty. Text without secrets is released as it was cut.

    The text of a record is not looked at in the record itself: redact the rest of it, then put the text in.

    Args:
        redactor: Finds the secrets.
        limit: How much is held.
    """

    def __init__(self, redactor: Redactor, limit: int = LIMIT) -> None:
        self._redactor = redactor
        self._limit = limit
        self._queue: deque[_Entry[R]] = deque()
        self._streams: dict[Hashable, _Stream[R]] = {}
        self._held = 0

    def add(
        self, record: R, stream: Hashable = None, text: str | None = None, size: int = 0
    ) -> list[Released[R]]:
        """Take a record; return those that are released by it.

        Args:
            record: The record.
            stream: Which text the piece belongs to, anything hashable.
            text: The piece of text, if it has one.
            size: Bytes that the record takes besides the text, for the limit.
        """
        entry = _Entry(record, COST + size + len(text or ""), None if text is None else "", text or "")
        self._queue.append(entry)
        self._held += entry.cost
        if text:
            self._grow(stream, entry)
        return self._suspend(self._streams) if self._held > self._limit else self._release()

    def close(self, stream: Hashable) -> list[Released[R]]:
        """Say that this text is at its end; return what is released by that."""
        return self._end([stream])

    def pause(self, stream: Hashable) -> list[Released[R]]:
        """Say that something else comes in between; return what is released by that.

        How the text ended is kept as context, so that the rest of a secret is known when it goes on.
        """
        return self._suspend([stream])

    @property
    def holds(self) -> bool:
        """Whether anything waits."""
        return bool(self._queue)

    def settle(self) -> list[Released[R]]:
        """Decide what is open, since nothing has come for a while, where no secret seems to be in its midst.

        It is kept as context, so that a secret that does go on is known as such. Return what is released.
        """
        return self._suspend(self._streams, in_doubt=False)

    def flush(self) -> list[Released[R]]:
        """Return all that is held: every text is at its end."""
        return self._end(self._streams)

    def _grow(self, key: Hashable, entry: _Entry[R]) -> None:
        stream = self._streams.setdefault(key, _Stream())
        stream.entries.append(entry)
        stream.size += len(entry.rest)
        # Without white space the last word only grows. What stays open is looked at again when it has grown.
        if stream.size >= stream.due and entry.rest.split(None, 1) != [entry.rest]:
            joined, found = self._scan(stream)
            stream.decide(joined, found.spans, _cut(joined, found))
            stream.due = stream.size * 9 // 8 if stream.size > _EAGER else 0
            if not stream.size:
                del self._streams[key]

    def _scan(self, stream: _Stream[R]) -> tuple[str, Scan]:
        joined = stream.context + "".join([entry.rest for entry in stream.entries])
        return joined, self._redactor.scan(joined)

    def _suspend(self, keys: Iterable[Hashable], *, in_doubt: bool = True) -> list[Released[R]]:
        """Decide all of these texts: what at the end may be a part of a secret counts as one.

        It is kept as context, so that the rest of a secret is known as such.

        Args:
            keys: The texts.
            in_doubt: Whether also those that seem to end within a secret.
        """
        for stream in [self._streams[key] for key in keys if key in self._streams]:
            if stream.entries:
                joined, found = self._scan(stream)
                doubts = self._redactor.in_doubt(joined, found, settles=not in_doubt)
                if in_doubt or not doubts:
                    stream.decide(joined, merged([*found.spans, *doubts]), len(joined))
                    stream.context = _context(joined, found)
                    stream.size, stream.due = len(stream.context), 0
        for key in [key for key in list(self._streams)[:-CONTEXTS] if not self._streams[key].entries]:
            del self._streams[key]
        return self._release()

    def _end(self, keys: Iterable[Hashable]) -> list[Released[R]]:
        for key in [key for key in keys if key in self._streams]:
            stream = self._streams.pop(key)
            joined, found = self._scan(stream)
            stream.decide(joined, found.spans, len(joined))
        return self._release()

    def _release(self) -> list[Released[R]]:
        out: list[Released[R]] = []
        while self._queue and not self._queue[0].rest:
            entry = self._queue.popleft()
            self._held -= entry.cost
            out.append(Released(entry.record, entry.text))
        return out


def _context(text: str, found: Scan) -> str:
    """The open end of a text: how it begins and ends, if it is long."""
    cut, size = _cut(text, found), len(text)
    if size - cut <= _CONTEXT:
        return text[cut:]
    begun = [find.start for find in found.finds if cut <= find.start and find.end == size]
    cut = min(begun, default=size - _CONTEXT)
    return text[cut : cut + _EAGER] + text[max(cut + _EAGER, size - _CONTEXT) :]


def _cut(text: str, found: Scan) -> int:
    """How much of the text no further text can change. It ends behind white space, and within nothing."""
    cut = found.opened
    while True:
        before = text[:cut].rsplit(None, 1)
        cut -= len(before[-1]) if before and not text[cut - 1].isspace() else 0
        across = [find.start for find in found.finds if find.label and find.start < cut < find.end]
        if not across:
            return cut
        cut = min(across)
