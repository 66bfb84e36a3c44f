"""Reading a part of a run while it goes on: as a stream of frames, or all of it at its end."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from thinkwell.events import QuestionAnswered
from thinkwell.web._records import read_entry
from thinkwell.web.letta._messages import ErrorMessage, Ping, StopReason, UsageStatistics, frame_as_sse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell.journal import Journal
    from thinkwell.web._serving import RunServer
    from thinkwell.web._watching import Batch
    from thinkwell.web.letta._messages import Frame, Message
    from thinkwell.web.letta._segments import SegmentReader

__all__ = ("BY", "DONE", "answered_by", "collect", "sse_of")

BY: Final = "letta"
"""Who has answered a question, where a client of Letta's has."""

DONE: Final = b"data: [DONE]\n\n"
"""What ends a stream."""


async def frames_of(server: RunServer, reader: SegmentReader, *, caller: str) -> AsyncGenerator[list[Frame]]:
    """Yield the frames of a part of a run as they come. Where the reader is not over then, it was cut off.

    Raises:
        RunNotFound: The caller has no such run.
        JournalError: The journal cannot be read.
    """
    yield [*reader.begin(time.time())]
    async with server.watch(reader.segment.run, caller=caller) as watcher:
        while not reader.over and (batch := await watcher.next()) is not None:
            yield await _taken(reader, batch, server.journal)


async def _taken(reader: SegmentReader, batch: Batch, journal: Journal) -> list[Frame]:
    frames: list[Frame] = []
    for entry in batch.entries:
        if reader.over:
            break
        more, question = reader.take(entry)
        frames += more
        if question is not None:
            by = await answered_by(journal, reader.segment.run, question.id, entry.seq)
            if by is None or by == BY:  # what somebody else has answered meanwhile is no reason to stop
                frames += reader.pause()
    return frames


async def answered_by(journal: Journal, run_id: str, question_id: str, after: int) -> str | None:
    """Return who has answered a question, as far as the journal knows; ``None``: it is open.

    Args:
        journal: Where the run is kept.
        run_id: Which run.
        question_id: Which of its questions.
        after: Number of the entry that asks it.
    """
    while entries := await journal.read(run_id, after):
        for entry in entries:
            if b'"answer"' in entry.data[:40]:  # where the type of an event stands
                event = read_entry(entry)
                if isinstance(event, QuestionAnswered) and event.id == question_id:
                    return event.by
        after = entries[-1].seq
    return None


async def sse_of(
    server: RunServer, reader: SegmentReader, *, caller: str, after: int = 0, pings: bool = True
) -> AsyncGenerator[bytes]:
    """Yield a part of a run as a stream.

    Args:
        server: Where the run is.
        reader: Of that part.
        caller: Who wants it.
        after: The number behind which to begin.
        pings: Whether signs of life are wanted.

    Raises:
        RunNotFound: The caller has no such run.
        JournalError: The journal cannot be read.
    """
    async with aclosing(frames_of(server, reader, caller=caller)) as pieces:
        async for frames in pieces:
            yield b"".join([frame_as_sse(frame) for frame in frames if _is_new(frame, after, pings=pings)])
    if reader.over:
        yield DONE


def _is_new(frame: Frame, after: int, *, pings: bool) -> bool:
    if isinstance(frame, StopReason | UsageStatistics | ErrorMessage):
        return True  # the end has no number
    if isinstance(frame, Ping) and not pings:
        return False
    return frame.seq_id is None or frame.seq_id > after


async def collect(server: RunServer, reader: SegmentReader, *, caller: str) -> list[Message]:
    """Return the messages of a part of a run when it is over, or when it was cut off.

    Raises:
        RunNotFound: The caller has no such run.
        JournalError: The journal cannot be read.
    """
    messages: list[Message] = []
    async with aclosing(frames_of(server, reader, caller=caller)) as pieces:
        async for frames in pieces:
            messages.extend(
                frame
                for frame in frames
                if not isinstance(frame, Ping | StopReason | UsageStatistics | ErrorMessage)
            )
    return messages
