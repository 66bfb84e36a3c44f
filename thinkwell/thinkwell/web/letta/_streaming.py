"""Reading a part of a run while it goes on: as a stream of frames, or all of it at its end."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell.events import QuestionAnswered
from thinkwell.web._records import read_entry
from thinkwell.web.letta._messages import ErrorMessage, Ping, StopReason, UsageStatistics, frame_as_sse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell.events import QuestionAsked
    from thinkwell.journal import Journal
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._messages import Frame, Message
    from thinkwell.web.letta._segments import SegmentReader

__all__ = ("BY", "DONE", "collect", "sse_of")

BY: Final = "letta"
"""Who has answered a question, where a client of Letta's has."""

SETTLE: Final = 0.2
"""Seconds that a question may be open before a stream ends with it: a program would answer it at once."""

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
            frames: list[Frame] = []
            for entry in batch.entries:
                more, question = reader.take(entry)
                frames += more
                if question is not None:
                    yield frames  # before it is waited for anything
                    frames = []
                    if await _is_left(server.journal, reader.segment.run, question):
                        frames = reader.pause()
                        break
            yield frames


async def _is_left(journal: Journal, run_id: str, question: QuestionAsked) -> bool:
    """Return whether a question is left to the client, or was.

    What a program or somebody else has answered meanwhile is no reason to stop.
    """
    after = question.seq
    with anyio.move_on_after(SETTLE):
        while True:
            entries = await journal.read(run_id, after)
            for entry in entries:
                if b'"answer"' in entry.data[:40]:  # where the type of an event stands
                    event = read_entry(entry)
                    if isinstance(event, QuestionAnswered) and event.id == question.id:
                        return event.by == BY
            if entries:
                after = entries[-1].seq
                continue
            record = await journal.get(run_id)
            if record is None or (record.status != "running" and record.last_seq <= after):
                return False  # its server has died, and nobody asks any more
            await journal.wait(run_id, after)
    return True


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
            wanted = [frame_as_sse(frame) for frame in frames if _is_new(frame, after, pings=pings)]
            if wanted:
                yield b"".join(wanted)
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
