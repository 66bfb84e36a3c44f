"""Holds records back while a text that is streamed in pieces may be in the midst of a secret."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from thinkwell._recording._replacing import Span, merged, replaced

if TYPE_CHECKING:
    from collections.abc import Hashable

    from thinkwell._recording._redact import Redactor, Scan

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


class _Entry(Generic[R]):
    __slots__ = ("cost", "open", "record", "text")

    def __init__(self, record: R, text: str | None, cost: int, *, opened: bool) -> None:
        self.record = record
        self.text = text
        self.cost = cost
        self.open = opened


class _Stream(Generic[R]):
    """One text in pieces: those whose end is not decided. A piece without an entry was released already."""

    __slots__ = ("due", "parts", "size")

    def __init__(self) -> None:
        self.parts: list[tuple[_Entry[R] | None, str]] = []
        self.size = 0
        self.due = 0

    @property
    def waits(self) -> bool:
        """Whether any of it is not released."""
        return bool(self.parts) and self.parts[-1][0] is not None


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
        if text is None:
            if not self._queue:
                return [Released(record, None)]
            self._push(_Entry(record, None, COST + size, opened=False))
        else:
            entry = _Entry(record, "", COST + size + len(text), opened=True)
            self._push(entry)
            self._grow(stream, entry, text)
        if self._held > self._limit:
            self._force()
        return self._release()

    def close(self, stream: Hashable) -> list[Released[R]]:
        """Say that this text is at its end; return what is released by that."""
        closed = self._streams.pop(stream, None)
        if closed:
            self._end(closed)
        return self._release()

    def pause(self, stream: Hashable) -> list[Released[R]]:
        """Say that something else comes in between; return what is released by that.

        How the text ended is kept as context, so that the rest of a secret is known when it goes on.
        """
        paused = self._streams.get(stream)
        if paused and paused.waits:
            self._suspend(paused, *self._scan(paused))
            for key in [key for key in list(self._streams)[:-CONTEXTS] if not self._streams[key].waits]:
                del self._streams[key]
        return self._release()

    @property
    def holds(self) -> bool:
        """Whether anything waits."""
        return bool(self._queue)

    def settle(self) -> list[Released[R]]:
        """Decide what is open, since nothing has come for a while, where no secret seems to be in its midst.

        It is kept as context, so that a secret that does go on is known as such. Return what is released.
        """
        for stream in self._streams.values():
            if not stream.waits:
                continue
            joined, found = self._scan(stream)
            if not self._redactor.may_begin(joined) and not self._redactor.in_doubt(joined, found):
                self._suspend(stream, joined, found)
        return self._release()

    def flush(self) -> list[Released[R]]:
        """Return all that is held: every text is at its end."""
        for stream in self._streams.values():
            self._end(stream)
        self._streams.clear()
        return self._release()

    def _push(self, entry: _Entry[R]) -> None:
        self._queue.append(entry)
        self._held += entry.cost

    def _grow(self, key: Hashable, entry: _Entry[R], text: str) -> None:
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream()
        if not text:
            entry.open = False
            return
        stream.parts.append((entry, text))
        stream.size += len(text)
        # Without white space the last word only grows. What stays open is looked at again when it has grown.
        if stream.size >= stream.due and text.split(None, 1) != [text]:
            joined, found = self._scan(stream)
            cut = _cut(joined, found)
            _decide(stream, joined, found.spans, cut)
            stream.due = stream.size * 9 // 8 if stream.size > _EAGER else 0
            if not stream.parts:
                del self._streams[key]

    def _scan(self, stream: _Stream[R]) -> tuple[str, Scan]:
        joined = "".join([part for _, part in stream.parts])
        return joined, self._redactor.scan(joined)

    def _suspend(self, stream: _Stream[R], joined: str, found: Scan) -> None:
        """Decide all of a text: its end counts as a secret where it may be a part of one.

        It is kept as context, so that the rest of a secret is known as such.
        """
        spans = merged([*found.spans, *self._redactor.in_doubt(joined, found)])
        context = _context(joined, found)
        _decide(stream, joined, spans, len(joined))
        stream.parts = [(None, context)] if context else []
        stream.size, stream.due = len(context), 0

    def _end(self, stream: _Stream[R]) -> None:
        joined, found = self._scan(stream)
        _decide(stream, joined, found.spans, len(joined))

    def _release(self) -> list[Released[R]]:
        out: list[Released[R]] = []
        queue = self._queue
        while queue and not queue[0].open:
            entry = queue.popleft()
            self._held -= entry.cost
            out.append(Released(entry.record, entry.text))
        return out

    def _force(self) -> None:
        """Decide everything, as if each text were paused."""
        for stream in self._streams.values():
            if stream.waits:
                self._suspend(stream, *self._scan(stream))
        for key in list(self._streams)[:-CONTEXTS]:
            del self._streams[key]


def _context(text: str, found: Scan) -> str:
    """The open end of a text: how it begins and ends, if it is long."""
    cut, size = _cut(text, found), len(text)
    if size - cut <= _CONTEXT:
        return text[cut:]
    begun = [region.start for region in found.regions if cut <= region.start and region.end == size]
    cut = min(begun, default=size - _CONTEXT)
    return text[cut : cut + _EAGER] + text[max(cut + _EAGER, size - _CONTEXT) :]


def _word(text: str, place: int) -> int:
    """Where the word begins in which the place is, or that ends there."""
    before = text[:place].rsplit(None, 1)
    return place if not before or text[place - 1].isspace() else place - len(before[-1])


def _cut(text: str, found: Scan) -> int:
    """How much of the text no further text can change. It ends behind white space, and within nothing."""
    cut = _word(text, found.opened)
    while True:
        across = [
            region.start for region in found.regions if region.secret and region.start < cut < region.end
        ]
        if not across:
            return cut
        cut = _word(text, min(across))


def _decide(stream: _Stream[R], text: str, spans: list[Span], cut: int) -> None:
    """Give what is decided back to the pieces that it came in."""
    start = 0
    rest: list[tuple[_Entry[R] | None, str]] = []
    for entry, part in stream.parts:
        end = start + len(part)
        if entry and start < cut:
            entry.text = (entry.text or "") + replaced(text, spans, start, min(end, cut))
            entry.open = end > cut
        if end > cut:
            rest.append((entry, text[max(start, cut) : end]))
        start = end
    stream.parts = rest
    stream.size = len(text) - cut
