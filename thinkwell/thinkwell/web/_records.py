"""The entries of a run's log: its events, and the end."""

from __future__ import annotations

import os
import re
from functools import cache, partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

import anyio
import anyio.to_thread
import msgspec
from anyio.lowlevel import RunVar
from msgspec import Struct
from msgspec.structs import replace

from thinkwell import ViewReducer
from thinkwell import events as ev
from thinkwell._recording._redact import Redactor
from thinkwell.journal import Entry, RunEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from thinkwell.journal import Journal, RunRecord
    from thinkwell.view import RunView

X = TypeVar("X")

SHORT: Final = 16 * 1024
"""Most bytes of entries that are read faster than another thread starts."""

LONG: Final = 256 * 1024
"""Bytes of JSON beyond which another thread looks for secrets: they take about 20 ms."""

THREADS: Final = 4
"""Threads that read and write long entries at the same time."""

_threads: Final[RunVar[anyio.CapacityLimiter | None]] = RunVar("_threads")

_END: Final = b'{"type":"end",'
"""The beginning of the last entry. No event has that type."""


class ShownError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a run has failed, for callers."""

    name: str
    """The class of the error; see `thinkwell.errors`."""
    message: str
    exit_code: int | None = None
    """The exit code of the agent's program, if it has ended."""
    stderr: str = ""
    """The end of its standard error, if callers may read that; see `ServedAgent`."""


class RunEnded(Struct, frozen=True, kw_only=True, tag="end", omit_defaults=True):
    """The last entry of a run."""

    seq: int
    at: float
    """Seconds since the run began."""
    status: RunEnd
    stop_reason: str | None = None
    """Why the last turn ended, as in the protocol."""
    result: ev.JsonValue = None
    """The result of a completed run: JSON that fits the requested schema, or the text of the last message."""
    error: ShownError | None = None


LogEntry: TypeAlias = ev.ThoughtEvent | RunEnded
"""The content of an entry."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Half of a character, which UTF-8 cannot encode."""

_encoder: Final = msgspec.json.Encoder()
_end_decoder: Final = msgspec.json.Decoder(RunEnded)


class EntryWriter:
    """Creates the entries of a run, without secrets: others read them, and a journal stores them.

    A key that an agent writes in several pieces is found if it is in the environment; otherwise perhaps not.
    """

    def __init__(self) -> None:
        self._redactor = Redactor(os.environ)

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        return self._redactor.text(text)

    async def events(self, events: Sequence[ev.ThoughtEvent], first: int, offset: float) -> list[Entry]:
        """Return the entries of events, without blocking other tasks if they are long.

        Args:
            events: The events.
            first: Number of the first one in the log.
            offset: Seconds to add to their times, which count from the request of the run.
        """

        def made() -> list[Entry]:
            return [self._event(event, seq, event.at + offset) for seq, event in enumerate(events, first)]

        return made() if sum(map(_work, events)) <= LONG else await in_thread(made)

    async def end(self, end: RunEnded) -> Entry:
        """Return the last entry of a run, without blocking other tasks if it is long."""

        def made() -> Entry:
            result, error = self._redactor.redact(end.result), end.error
            if error is not None:
                message, stderr = map(self._redactor.text, (error.message, error.stderr))
                error = replace(error, message=message, stderr=stderr)
            return Entry(end.seq, _encoded(replace(end, at=round(end.at, 6), result=result, error=error)))

        return made() if _work(end) <= LONG else await in_thread(made)

    def _event(self, event: ev.ThoughtEvent, seq: int, at: float) -> Entry:
        content = msgspec.to_builtins(event)
        content["seq"], content["at"] = seq, round(at, 6)
        return Entry(seq, _encoded(self._redactor.redact(content)))


async def in_thread(work: Callable[[], X]) -> X:
    """Run a function in one of our own threads: tools may occupy those of anyio for any time."""
    threads = _threads.get(None)
    if threads is None:
        threads = anyio.CapacityLimiter(THREADS)
        _threads.set(threads)
    return await anyio.to_thread.run_sync(work, limiter=threads)


def _work(entry: LogEntry) -> int:
    """Return the bytes of the values that are searched one by one: texts are searched as one."""
    if isinstance(entry, ev.Message | ev.Thought | ev.UserMessage) or (
        isinstance(entry, RunEnded) and isinstance(entry.result, str)
    ):
        return 0
    try:
        return len(_encoder.encode(entry))
    except UnicodeEncodeError:
        return LONG + 1  # who knows


def _encoded(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # agents can write them as an escape in JSON
        return _encoder.encode(_without_surrogates(msgspec.to_builtins(value)))


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {_without_surrogates(key): _without_surrogates(item) for key, item in items}
    return [*map(_without_surrogates, cast("list[object]", value))] if isinstance(value, list) else value


def is_end(entry: Entry) -> bool:
    """Return whether an entry is the last one."""
    return entry.data.startswith(_END)


def read_entry(entry: Entry) -> LogEntry:
    """Decode an entry.

    Raises:
        msgspec.ValidationError: A server of another version has written it.
    """
    return _end_decoder.decode(entry.data) if is_end(entry) else ev.event_from_json(entry.data)


def read_entries(entries: Iterable[Entry]) -> list[LogEntry]:
    """Decode entries, several times as fast as one by one.

    Raises:
        msgspec.ValidationError: A server of another version has written one.
    """
    listed = [*entries]
    try:
        return _decoder().decode(b"[%s]" % b",".join([entry.data for entry in listed]))
    except (ValueError, RecursionError):  # which one it is
        return [*map(read_entry, listed)]


@cache
def _decoder() -> msgspec.json.Decoder[list[LogEntry]]:
    return msgspec.json.Decoder(list[LogEntry])


class Reduced:
    """The state of a run, as far as its log was read. `read` reads the rest.

    Args:
        record: The run.
    """

    def __init__(self, record: RunRecord) -> None:
        self.seq = 0
        """Number of the last read entry."""
        self.end: RunEnded | None = None
        """Its end."""
        self._run_id = record.id
        self._reducer = ViewReducer(agent=record.agent)
        self._lock = anyio.Lock()

    async def read(self, journal: Journal) -> RunView:
        """Read the rest, and return the state of the run.

        Raises:
            JournalError: It cannot be read.
        """
        async with self._lock:
            while self.end is None and (entries := await journal.read(self._run_id, self.seq)):
                if sum(len(entry.data) for entry in entries) <= SHORT:
                    self.end = self._take(entries)
                else:
                    with anyio.CancelScope(shield=True):  # otherwise the state of the reducer is unknown
                        self.end = await in_thread(partial(self._take, entries))
                self.seq = entries[-1].seq
            return self._reducer.snapshot(None)

    def _take(self, entries: Sequence[Entry]) -> RunEnded | None:
        for entry in map(read_entry, entries):
            if isinstance(entry, RunEnded):
                return entry
            self._reducer.apply((entry,))
        return None
