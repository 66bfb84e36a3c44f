"""The log of a run, and its readers.

A run appends numbered events; everything else reads. Appending never waits. Each reader has a place of its own and wakes
when something was published; the end is an element of the log too, so completion never overtakes delivery.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, Literal, TypeVar
from weakref import WeakSet

import anyio
from anyio.lowlevel import checkpoint
from msgspec import Struct

from thinkwell import events as ev
from thinkwell.errors import BufferOverflow
from thinkwell.view import ViewReducer

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.view import RunView

E = TypeVar("E", bound=ev.ThoughtEvent)

CHECKPOINT_EVERY: Final = 1024
"""Events that a reader takes without letting other tasks run."""


class Buffer(Struct, frozen=True, kw_only=True):
    """A bound for the events that a run keeps. Without one, it keeps all of them.

    Only text is ever merged or dropped: tool, plan and question events stay.
    """

    max_events: int
    """How many events to keep, about; what may not be merged or dropped comes on top."""

    overflow: Literal["coalesce", "drop_oldest", "error"] = "coalesce"
    """What to do beyond that: merge neighbouring text of the same message, drop the oldest text and leave a `Dropped`
    in its place, or fail the run with `BufferOverflow`."""

    def __post_init__(self) -> None:
        if self.max_events < 1:
            msg = f"Buffer(max_events={self.max_events}): keep at least one event"
            raise ValueError(msg)
        if self.overflow not in ("coalesce", "drop_oldest", "error"):
            msg = f'Buffer(overflow={self.overflow!r}): choose "coalesce", "drop_oldest" or "error"'
            raise ValueError(msg)


class RunLog:
    """What has happened in a run, in order."""

    def __init__(self, include: frozenset[str] = ev.DEFAULT_TYPES, buffer: Buffer | None = None) -> None:
        self.include = include
        self.events: list[ev.ThoughtEvent] = []
        """What is kept, in order of `seq`."""
        self.epoch = 0
        """Changes when kept events are merged or dropped, so that readers look up their place again."""
        self.ended = False
        self.error: Exception | None = None
        self.overflow: BufferOverflow | None = None
        """Set when a buffer that may not drop anything is full; what comes is kept all the same."""
        self.readers: WeakSet[EventReader] = WeakSet()
        self._buffer = buffer
        self._shrink_at = buffer.max_events if buffer else None
        self._seq = 0
        self._started = time.monotonic()
        self._reducer = ViewReducer()
        self._reduced = 0
        self._changed: anyio.Event | None = None

    @property
    def seq(self) -> int:
        """Number of the last kept event."""
        return self._seq

    def now(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._started

    def add(self, kind: Callable[..., E], /, **fields: object) -> E:
        """Make an event from its fields and append it."""
        event = kind(seq=self._seq + 1, at=self.now(), **fields)
        self.append(event)
        return event

    def append(self, event: ev.ThoughtEvent) -> None:
        """Append an event that was made with the next number; what the run does not include only counts for the view."""
        if event.type in self.include:
            self._seq = event.seq
            self.events.append(event)
            if self._shrink_at is not None and len(self.events) > self._shrink_at:
                self._shrink()
        else:
            self._reduce()
            self._reducer.apply(event)

    def publish(self) -> None:
        """Wake the readers: call it once after a batch."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def end(self, error: Exception | None = None) -> None:
        """Append the end. Readers stop behind the last event."""
        self.ended = True
        self.error = error
        self.publish()

    async def wait(self) -> None:
        """Wait until something is published."""
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def view(self) -> RunView:
        """Return the run as it stands."""
        self._reduce()
        return self._reducer.snapshot(self.error)

    def new_turn(self) -> None:
        """Begin a new message with the next text."""
        self._reduce()
        self._reducer.forget_message()

    def last_message(self) -> str:
        """Return the text of the last message."""
        self._reduce()
        return self._reducer.last_message()

    def reader(self, include: frozenset[str] | None = None, after: int = 0) -> EventReader:
        """Return a reader that starts behind the event with number `after`."""
        reader = EventReader(self, include, after)
        self.readers.add(reader)
        return reader

    def index_after(self, seq: int) -> int:
        """Return the index of the first event with a greater number."""
        return bisect_right(self.events, seq, key=_seq_of)

    def _reduce(self) -> None:
        apply = self._reducer.apply
        for event in self.events[self._reduced :]:
            apply(event)
        self._reduced = len(self.events)

    # Bounds

    def _shrink(self) -> None:
        assert self._buffer is not None
        limit = self._buffer.max_events
        if self._buffer.overflow == "error":
            self.overflow = BufferOverflow(limit)
            self._shrink_at = None
            return
        self._reduce()
        places = {reader.place for reader in self.readers}
        if self._buffer.overflow == "coalesce":
            self.events = _merge_text(self.events, places)
        else:
            self.events, dropped = _drop_text(self.events, len(self.events) - limit // 2, places)
            self._reducer.dropped(dropped)
        self.epoch += 1
        self._reduced = len(self.events)
        # Where little could be merged or dropped, the next attempt waits, so that the work per event stays bounded.
        self._shrink_at = max(limit, len(self.events) + limit // 2)


class EventReader:
    """An iterator over a log, with a place of its own."""

    __slots__ = ("__weakref__", "_epoch", "_include", "_index", "_log", "place")

    def __init__(self, log: RunLog, include: frozenset[str] | None, after: int) -> None:
        self._log = log
        self._include = include
        self._index = log.index_after(after)
        self._epoch = log.epoch
        self.place = after
        """Number of the last event that was taken."""

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> ev.ThoughtEvent:
        log = self._log
        while True:
            if self._epoch != log.epoch:
                self._index = log.index_after(self.place)
                self._epoch = log.epoch
            index = self._index
            events = log.events
            if index < len(events):
                event = events[index]
                self._index = index + 1
                self.place = event.seq
                if not index % CHECKPOINT_EVERY:
                    await checkpoint()
                if self._include is None or event.type in self._include:
                    return event
            elif log.ended:
                raise StopAsyncIteration
            else:
                await log.wait()


def _seq_of(event: ev.ThoughtEvent) -> int:
    return event.seq


def _same_text(one: ev.ThoughtEvent, two: ev.ThoughtEvent) -> bool:
    return (
        isinstance(one, ev.Thought | ev.Message)
        and type(one) is type(two)
        and one.message_id == two.message_id
        and isinstance(one.content, ev.TextContent)
        and isinstance(two.content, ev.TextContent)
    )


def _merge_text(events: list[ev.ThoughtEvent], places: set[int]) -> list[ev.ThoughtEvent]:
    """Join runs of text of the same message, never across the place of a reader."""
    merged: list[ev.ThoughtEvent] = []
    run: list[ev.Thought | ev.Message] = []

    def close() -> None:
        if len(run) > 1:
            last = run[-1]
            text = "".join(event.text for event in run)
            merged.append(type(last)(seq=last.seq, at=last.at, text=text, message_id=last.message_id))
        else:
            merged.extend(run)
        run.clear()

    for event in events:
        if run and (run[-1].seq in places or not _same_text(run[-1], event)):
            close()
        if isinstance(event, ev.Thought | ev.Message):
            run.append(event)
        else:
            merged.append(event)
    close()
    return merged


def _drop_text(events: list[ev.ThoughtEvent], surplus: int, places: set[int]) -> tuple[list[ev.ThoughtEvent], int]:
    """Replace the oldest text by a count of it, one for each gap, never across the place of a reader."""
    kept: list[ev.ThoughtEvent] = []
    dropped = 0
    for index, event in enumerate(events):
        if surplus <= 0:
            kept.extend(events[index:])
            break
        if not isinstance(event, ev.Thought | ev.Message | ev.Dropped):
            kept.append(event)
            continue
        count = event.count if isinstance(event, ev.Dropped) else 1
        last = kept[-1] if kept else None
        if isinstance(last, ev.Dropped) and last.seq not in places:
            kept[-1] = ev.Dropped(seq=event.seq, at=event.at, count=last.count + count)
        else:
            kept.append(ev.Dropped(seq=event.seq, at=event.at, count=count))
        if not isinstance(event, ev.Dropped):
            dropped += 1
            surplus -= 1
    return kept, dropped
