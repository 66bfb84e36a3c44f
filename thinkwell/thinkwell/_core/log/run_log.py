"""The log of a run, and its readers.

A run appends numbered events; everything else reads. Appending never waits. Each reader has its own place and
wakes after a publication. The end is an element of the log too, so completion never overtakes delivery.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from operator import length_hint
from typing import TYPE_CHECKING, Final, Literal, TypeVar
from weakref import WeakSet

import anyio
from anyio.lowlevel import checkpoint
from msgspec import Struct
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.log.lazy_view import LazyView
from thinkwell._core.log.owner import in_trio
from thinkwell._core.log.shrink import drop_text, merge_text
from thinkwell._core.schema.partial import PartialResult
from thinkwell.errors import BufferOverflow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell._core.log.owner import Owner
    from thinkwell._core.log.reducer import ViewReducer
    from thinkwell.view import RunView

E = TypeVar("E", bound=ev.ThoughtEvent)

NO_PART: Final = PartialResult(None, own_fields=False)

NOTHING: Final[frozenset[str]] = frozenset()

CHECKPOINT_EVERY: Final = 4096
"""Events that a reader takes without letting other tasks run: more than one read of a pipe brings. Otherwise
readers fall behind a fast agent, however fast they are."""


def running_clock() -> Callable[[], float]:
    """Return the clock of the running event loop: `anyio.current_time` at a tenth of its cost.

    Raises:
        RuntimeError: No event loop is running.
    """
    if in_trio():
        import trio

        return trio.current_time
    import asyncio

    return asyncio.get_running_loop().time


class Buffer(Struct, frozen=True, kw_only=True):
    """Limits the events that a run keeps. Without a buffer, it keeps all of them.

    Only text is merged or dropped: tool, plan and question events are always kept.
    """

    max_events: int
    """How many events to keep. If more than half as many cannot be merged or dropped, up to twice as many as
    those are kept."""

    overflow: Literal["coalesce", "drop_oldest", "error"] = "coalesce"
    """What to do beyond that: merge adjacent text of the same message, replace the oldest text by a `Dropped`
    event, or fail the run with `BufferOverflow`."""

    def __post_init__(self) -> None:
        if type(self.max_events) is not int:
            raise TypeError(f"Buffer(max_events={self.max_events!r}): give a whole number")
        if self.max_events < 1:
            raise ValueError(f"Buffer(max_events={self.max_events}): keep at least one event")
        if self.overflow not in ("coalesce", "drop_oldest", "error"):
            raise ValueError(
                f'Buffer(overflow={self.overflow!r}): choose "coalesce", "drop_oldest" or "error"'
            )


class RunLog:
    """The events of a run, in order."""

    def __init__(
        self,
        include: frozenset[str] = ev.DEFAULT_TYPES,
        buffer: Buffer | None = None,
        on_overflow: Callable[[BufferOverflow], None] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        listeners: Sequence[Callable[[ev.ThoughtEvent], None]] = (),
        agent: str = "",
        cwd: str = "",
        partial: PartialResult = NO_PART,
        owner: Owner | None = None,
    ) -> None:
        self.events: list[ev.ThoughtEvent] = []
        """The kept events, ordered by `seq`. Merging or dropping replaces the list."""
        self.plain: list[ev.ThoughtEvent] | None = None
        """The same list, if events of a default kind need only be appended to it."""
        self.ended: bool = False
        self.error: Exception | None = None
        self.readers: WeakSet[EventReader] = WeakSet()
        self._include = include
        self._buffer = buffer
        self._shrink_at = buffer.max_events if buffer else None
        self._on_overflow = on_overflow
        self._listeners = tuple(listeners)
        self._overflow: BufferOverflow | None = None
        """The error to report to the listener."""
        self._failed = False
        """Whether the limit was exceeded: later events are merged."""
        self.seq: int = 0
        """Number of the last kept event."""
        self._clock = clock
        self._started = clock()
        self._ended_at: float | None = None
        self._view = LazyView(
            agent,
            cwd,
            partial,
            keeps_turns=buffer is None,
            keeps_turn_starts=ev.TurnStarted.type in include,
        )
        self._changed: anyio.Event | None = None
        self._owner = owner
        if not listeners and buffer is None and include >= ev.DEFAULT_TYPES:
            self.plain = self.events

    @property
    def partial(self) -> PartialResult:
        """What there is of the result before the end."""
        return self._view.partial

    def now(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._started

    def elapsed(self) -> float:
        """Seconds since the run began; after its end, its duration."""
        return self.now() if self._ended_at is None else self._ended_at

    def add(self, kind: Callable[..., E], /, **fields: object) -> E:
        """Make an event from its fields and append it."""
        return self.recall(kind, self._clock(), **fields)

    def recall(self, kind: Callable[..., E], when: float, /, **fields: object) -> E:
        """Make an event with another time, by the log's clock, and append it."""
        event = kind(seq=self.seq + 1, at=when - self._started, **fields)
        self.append(event)
        return event

    def adopt(self, event: ev.ThoughtEvent, at: float) -> None:
        """Append an event of another log, which happened at that time of this one."""
        self.append(replace(event, seq=self.seq + 1, at=at))

    def listen(self, listener: Callable[[ev.ThoughtEvent], None]) -> None:
        """Call a function with each later event, whether it is kept or not, after existing listeners."""
        self._listeners = (*self._listeners, listener)
        self.plain = None

    def append(self, event: ev.ThoughtEvent) -> None:
        """Append an event that was made with the next number.

        Events that the run does not include, and those after the end, only count for the view.
        """
        if event.type in self._include:
            self.seq = event.seq
            self.events.append(event)
            if self._shrink_at is not None and len(self.events) > self._shrink_at:
                self._shrink()
        else:
            self._view.leave_out(event, self.events, ended=self.ended)
        if self._listeners:
            for listener in self._listeners:
                listener(event)

    def publish(self) -> None:
        """Wake the readers: call it once after a batch."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None
        if self._overflow is not None and self._on_overflow is not None:
            # Here, and not where it is found: the listener may append events.
            overflow, self._overflow = self._overflow, None
            self._on_overflow(overflow)

    def end(self, error: Exception | None = None) -> None:
        """Append the end. Readers stop after the last event."""
        self.ended = True
        self._ended_at = self.now()
        self.error = error
        self._include = NOTHING
        self.plain = None
        self.publish()

    async def wait(self) -> None:
        """Wait until something is published.

        Raises:
            WrongEventLoop: Nothing is ever published in the caller's event loop.
        """
        if self._owner is not None:
            self._owner.check()
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def view(self) -> RunView:
        """Return the current view of the run."""
        return self._view.snapshot(self.events, self.error)

    def reducer(self) -> ViewReducer:
        """Return what has reduced all events."""
        return self._view.reducer(self.events)

    def last_message(self) -> str:
        """Return the text of the last message."""
        return self._view.last_message(self.events)

    def reader(self, include: frozenset[str] | None = None, after: int = 0) -> EventReader:
        """Return a reader that starts after the event with number `after`."""
        reader = EventReader(self, include, min(after, self.seq))
        self.readers.add(reader)
        return reader

    def index_after(self, seq: int) -> int:
        """Return the index of the first event with a greater number."""
        return bisect_right(self.events, seq, key=lambda event: event.seq)

    def _shrink(self) -> None:
        assert self._buffer is not None
        limit = self._buffer.max_events
        if self._buffer.overflow == "error" and not self._failed:
            self._failed = True
            self._overflow = BufferOverflow(limit)
            self._shrink_at = 2 * limit  # events until the agent stops must not fill the memory
            return
        self._view.reduce(self.events)
        places = {reader: reader.place for reader in self.readers}
        most = max(limit // 2, 1)
        if self._buffer.overflow == "drop_oldest":
            surplus = len(self.events) - most
            self.events, dropped = drop_text(self.events, surplus, frozenset(places.values()))
            self._view.dropped(dropped)
        else:
            self.events = merge_text(self.events, frozenset(places.values()), most)
        self._view.reduced = len(self.events)
        for reader, place in places.items():
            reader.move(place)
        # Twice the rest: the work per event stays bounded if little can be merged or dropped. The one
        # `Dropped` that replaces all dropped events does not count.
        left = len(self.events)
        self._shrink_at = limit if left <= most + 1 else 2 * left


class EventReader:
    """An iterator over a log, with its own place."""

    __slots__ = ("__weakref__", "_after", "_include", "_index", "_log", "_ready", "_rested_at", "_taken")

    def __init__(self, log: RunLog, include: frozenset[str] | None, after: int) -> None:
        self._log = log
        self._include = include
        self._rested_at = -1
        """The index before which other tasks had their turn."""
        self.move(after)

    @property
    def place(self) -> int:
        """Number of the last event that was handed out."""
        left = length_hint(self._ready)
        if not left:
            return self._log.events[self._index - 1].seq if self._index else self._after
        handed_out = len(self._taken) - left
        return self._taken[handed_out - 1].seq if handed_out else self._after

    def move(self, place: int) -> None:
        """Continue after a place in the list of events, some of which were merged or dropped."""
        self._after = place
        self._index = self._log.index_after(place)
        self._taken: list[ev.ThoughtEvent] = []
        """The events that were taken from the log last, together."""
        self._ready = iter(self._taken)
        """Those of them that are not yet delivered."""

    def __aiter__(self) -> EventReader:
        return self

    async def batch(self) -> list[ev.ThoughtEvent]:
        """Wait for events, and take all available ones; an empty list is the end."""
        try:
            events = [await self.__anext__()]
        except StopAsyncIteration:
            return []
        return events + self.batch_nowait()

    def batch_nowait(self) -> list[ev.ThoughtEvent]:
        """Take all available events."""
        events = [*self._ready, *self._filtered(self._log.events[self._index :])]
        self._index = len(self._log.events)
        return events

    async def __anext__(self) -> ev.ThoughtEvent:
        for event in self._ready:
            return event
        return await self._next()

    async def _next(self) -> ev.ThoughtEvent:
        log = self._log
        while True:
            index = self._index
            if index < len(log.events):
                to_next_rest = CHECKPOINT_EVERY - index % CHECKPOINT_EVERY
                if to_next_rest == CHECKPOINT_EVERY and self._rested_at != index:
                    self._rested_at = index
                    await checkpoint()  # before events are taken: a cancelled reader must not lose any
                else:
                    self._after = self.place
                    taken = log.events[index : index + to_next_rest]
                    self._index = index + len(taken)
                    self._taken = self._filtered(taken)
                    self._ready = iter(self._taken)
            elif log.ended:
                await checkpoint()
                raise StopAsyncIteration
            else:
                await log.wait()
            for event in self._ready:  # another task on the same reader may have taken some meanwhile
                return event

    def _filtered(self, events: list[ev.ThoughtEvent]) -> list[ev.ThoughtEvent]:
        include = self._include
        return events if include is None else [event for event in events if event.type in include]
