"""Holds records back while a streamed text may end inside a secret."""

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
"""Most characters and bytes that are held. Beyond that all are released, as if each text were paused."""

COST: Final = 64
"""The cost of a record besides its text and size, so that empty ones cannot pile up either."""

CONTEXTS: Final = 64
"""Texts whose end is remembered after an early release; others are forgotten."""

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
    """The decided part of its piece, without secrets."""
    rest: str
    """The undecided part."""


@dataclass(slots=True)
class _Stream(Generic[R]):
    """The undecided part of a streamed text."""

    context: str = ""
    """The text that was released early."""
    entries: list[_Entry[R]] = field(default_factory=list)
    size: int = 0
    due: int = 0

    def decide(self, text: str, spans: list[Find], cut: int) -> None:
        """Distribute the decided text to the pieces that it came in."""
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
    """Takes records in order and releases them in order, with their texts redacted.

    The pieces of one stream are redacted as one text. A piece is held while a secret may continue in the next
    one: until its last word has ended, and the value after a name such as `password:`; all later records
    wait, too. A secret's replacement is put where it begins, and its other pieces become shorter or empty.
    Text without secrets keeps its pieces.

    The text is not read in the record itself: redact the rest of the record, then put the text in.

    Args:
        redactor: Finds the secrets.
        limit: The most that is held.
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
        """Add a record; return those that it releases.

        Args:
            record: The record.
            stream: The text to which the piece belongs, any hashable.
            text: The piece of text, if it has one.
            size: Bytes that the record takes besides the text, for the limit.
        """
        entry = _Entry(record, COST + size + len(text or ""), None if text is None else "", text or "")
        self._queue.append(entry)
        self._held += entry.cost
        if text:
            self._grow(stream, entry)
        return self._suspend(self._streams) if self._held > self._limit else self._release()

    def pause(self, stream: Hashable) -> list[Released[R]]:
        """Pause a text because something else comes in between; return the records that this releases.

        Its end is kept as context, so that the rest of a secret is recognised later.
        """
        return self._suspend([stream])

    @property
    def holds(self) -> bool:
        """Whether any record waits."""
        return bool(self._queue)

    def settle(self) -> list[Released[R]]:
        """Decide open texts after a pause, unless they seem to end inside a secret.

        Their ends are kept as context, so that a secret that does continue is recognised. Return the released
        records.
        """
        return self._suspend(self._streams, in_doubt=False)

    def flush(self) -> list[Released[R]]:
        """Return all held records: every text is at its end."""
        for stream in self._streams.values():
            joined, found = self._scan(stream)
            stream.decide(joined, found.spans, len(joined))
        self._streams.clear()
        return self._release()

    def _grow(self, key: Hashable, entry: _Entry[R]) -> None:
        stream = self._streams.setdefault(key, _Stream())
        stream.entries.append(entry)
        stream.size += len(entry.rest)
        # Without white space the last word only grows. The open part is checked again when it has grown.
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
        """Decide all of these texts: an end that may be a part of a secret counts as one.

        It is kept as context, so that the rest of a secret is recognised.

        Args:
            keys: The texts.
            in_doubt: Whether to include those that seem to end inside a secret.
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

    def _release(self) -> list[Released[R]]:
        out: list[Released[R]] = []
        while self._queue and not self._queue[0].rest:
            entry = self._queue.popleft()
            self._held -= entry.cost
            out.append(Released(entry.record, entry.text))
        return out


def _context(text: str, found: Scan) -> str:
    """The open end of a text: its beginning and end, if it is long."""
    cut, size = _cut(text, found), len(text)
    if size - cut <= _CONTEXT:
        return text[cut:]
    begun = [find.start for find in found.finds if cut <= find.start and find.end == size]
    cut = min(begun, default=size - _CONTEXT)
    return text[cut : cut + _EAGER] + text[max(cut + _EAGER, size - _CONTEXT) :]


def _cut(text: str, found: Scan) -> int:
    """How much of the text is final. It ends after white space, and never inside a find."""
    cut = found.opened
    while True:
        before = text[:cut].rsplit(None, 1)
        cut -= len(before[-1]) if before and not text[cut - 1].isspace() else 0
        across = [find.start for find in found.finds if find.label and find.start < cut < find.end]
        if not across:
            return cut
        cut = min(across)
