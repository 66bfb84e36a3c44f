"""Runs as streams in the formats of front ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import msgspec

from thinkwell.journal import JournalError
from thinkwell.web._records import ShownError, is_end, read_entry
from thinkwell.web._sse import sse_frame
from thinkwell.web.front_ends._ag_ui import AgUiFormat
from thinkwell.web.front_ends._ai_sdk import AI_SDK_HEADERS, AiSdkFormat

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence

    from thinkwell.journal import RunRecord
    from thinkwell.web._serving import RunServer
    from thinkwell.web._watching import Batch, Watcher
    from thinkwell.web.front_ends._facts import Chunk
    from thinkwell.web.front_ends._format import FrontEndFormat

FormatName: TypeAlias = Literal["ai-sdk", "ag-ui"]
"""A format of front ends."""

FORMAT_HEADERS: Final[Mapping[FormatName, Mapping[str, str]]] = {"ai-sdk": AI_SDK_HEADERS, "ag-ui": {}}
"""Further headers of answers in a format."""

SETTLE: Final = 0.2
"""Seconds that a question may be open before its stream ends, so that simultaneous questions come together,
and an immediate answer of a program ends nothing."""

_encoder: Final = msgspec.json.Encoder()

CUT_OFF: Final = ShownError(
    name="StreamCutOff",
    message="the server closes, or the run was deleted; resume the stream to see the rest",
)
UNREADABLE: Final = ShownError(
    name="ServerUnavailable", message="the server cannot read the log of the run now; resume the stream later"
)


async def format_events(watcher: Watcher, name: FormatName, *, after: int = 0) -> AsyncGenerator[bytes]:
    """Write a run as server-sent events in a format, from its first entry to its end.

    The events of an entry come in one piece, and the last of them has the entry's number as its id. So a
    client that reconnects gets exactly the missing events; if the connection broke between the events of one
    entry, it gets those again.

    Args:
        watcher: Watches the run, from its first entry.
        name: The format.
        after: Number of the last entry whose events were seen.

    Raises:
        JournalError: The run cannot be read.
    """
    form = AiSdkFormat(watcher.record) if name == "ai-sdk" else AgUiFormat(watcher.record)
    while (batch := await watcher.next()) is not None:
        piece: list[bytes] = []
        for entry in batch.entries:
            chunks = form.take(read_entry(entry))
            if entry.seq > after:
                frames = [*map(_encoder.encode, chunks), *(_closing(form) if is_end(entry) else ())]
                piece += map(sse_frame, frames[:-1])
                piece += [sse_frame(frame, id=entry.seq) for frame in frames[-1:]]
        if piece:
            yield b"".join(piece)


async def segment_events(
    server: RunServer,
    record: RunRecord,
    form: FrontEndFormat,
    *,
    caller: str,
    cuts: Sequence[int] = (),
    answered: Collection[str] = (),
) -> AsyncGenerator[bytes]:
    """Write the part of a run for one answer: up to its end, or to open questions.

    Args:
        server: The server of the run.
        record: The run.
        form: Its format, in its initial state.
        caller: The caller.
        cuts: Numbers of the entries at which earlier answers ended, in order. This answer begins after the
            last of them.
        answered: Questions that were just answered; the log may not have that yet.

    Raises:
        RunNotFound: The run was deleted.
    """
    try:
        async with server.watch(record.id, caller=caller) as watcher:
            segment = _Segment(form, cuts, answered)
            while (batch := await segment.next(server, watcher, caller)) is not None:
                if piece := segment.take(batch):
                    yield piece
            if watcher.ended:
                yield _last_frames(form, ())
            else:
                yield _last_frames(form, form.pause() if segment.is_paused else form.break_off(CUT_OFF))
    except JournalError:
        yield _last_frames(form, form.break_off(UNREADABLE))


class _Segment:
    """The part of a run for one answer."""

    def __init__(self, form: FrontEndFormat, cuts: Sequence[int], answered: Collection[str]) -> None:
        self.is_paused = False
        """Whether questions are open."""
        self._form = form
        self._cuts = cuts
        self._answered = answered
        self._deadline = math.inf

    async def next(self, server: RunServer, watcher: Watcher, caller: str) -> Batch | None:
        """Wait for entries; ``None``: this answer gets no more."""
        while True:
            with anyio.CancelScope(deadline=self._deadline) as waiting:
                return await watcher.next()
            assert waiting.cancelled_caught
            self._deadline = math.inf
            # A slow reader reaches questions that were answered long ago.
            if (await server.get(watcher.record.id, caller=caller)).last_seq <= watcher.seq:
                self.is_paused = True
                return None

    def take(self, batch: Batch) -> bytes:
        """Take entries, and return their frames."""
        chunks: list[Chunk] = []
        begin = self._cuts[-1] if self._cuts else 0
        for entry in batch.entries:
            made = self._form.take(read_entry(entry))
            if entry.seq > begin:
                chunks += made
            elif entry.seq in self._cuts:
                self._form.pause()
                self._form.resume()
        if all(question.id in self._answered for question in self._form.run.open_questions):
            self._deadline = math.inf
        elif self._deadline == math.inf:
            self._deadline = anyio.current_time() + SETTLE
        return b"".join(sse_frame(_encoder.encode(chunk)) for chunk in chunks)


def _last_frames(form: FrontEndFormat, chunks: Iterable[Chunk]) -> bytes:
    """Write the last chunks of an answer."""
    return b"".join(map(sse_frame, [*map(_encoder.encode, chunks), *_closing(form)]))


def _closing(form: FrontEndFormat) -> tuple[bytes, ...]:
    return (form.closing,) if form.closing else ()
