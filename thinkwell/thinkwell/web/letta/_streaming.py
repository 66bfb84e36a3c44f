"""Reads a part of a run: as a stream of frames, or complete at its end."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell.events import QuestionAnswered
from thinkwell.web._records import read_entry
from thinkwell.web.letta._lists import Runs
from thinkwell.web.letta._messages import ErrorMessage, Ping, StopReason, UsageStatistics, frame_as_sse
from thinkwell.web.letta._turns import Turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell.events import QuestionAsked
    from thinkwell.journal import Journal, RunRecord
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._messages import Frame, Message
    from thinkwell.web.letta._segments import SegmentReader

BY: Final = "letta"
"""The author of answers from clients of Letta."""

SETTLE: Final = 0.2
"""Seconds that a question may be open before a stream ends with it: a program would answer at once."""

DONE: Final = b"data: [DONE]\n\n"
"""The end of a stream."""


class Teller:
    """Follows a part of a run, and the run that was sent after it.

    Args:
        server: The server of the runs.
        reader: The reader of that part.
        record: The record of the run.
    """

    def __init__(self, server: RunServer, reader: SegmentReader, record: RunRecord) -> None:
        self.reader = reader
        """The reader of the current part."""
        self._server = server
        self._record = record

    async def frames(self) -> AsyncGenerator[list[Frame]]:
        """Yield the frames as they come. If the reader is not over afterwards, they were cut off.

        Raises:
            RunNotFound: The run was deleted.
            JournalError: The journal cannot be read.
        """
        goes_on = True
        while goes_on:
            goes_on = False
            yield [*self.reader.begin(time.time())]
            async with aclosing(self._frames()) as pieces:
                async for frames in pieces:
                    following = await self._following()
                    if following is None:
                        yield frames
                        continue
                    yield [frame for frame in frames if not isinstance(frame, StopReason | UsageStatistics)]
                    self._record, turn = following
                    self.reader = self.reader.behind(self._record, turn.options)
                    goes_on = True

    async def _frames(self) -> AsyncGenerator[list[Frame]]:
        reader = self.reader
        async with self._server.watch(self._record.id, caller=self._record.caller) as watcher:
            while not reader.over and (batch := await watcher.next()) is not None:
                frames: list[Frame] = []
                for entry in batch.entries:
                    more, question = reader.take(entry)
                    frames += more
                    if question is not None:
                        yield frames  # before any wait
                        frames = []
                        if await _is_left(self._server.journal, self._record.id, question):
                            frames = reader.pause()
                            break
                yield frames

    async def _following(self) -> tuple[RunRecord, Turn] | None:
        """Return the run that was sent after this one, if this one has completed."""
        record = self._record
        if self.reader.end is None or self.reader.error is not None:
            return None
        newer = Runs(self._server, caller=record.caller, thread=record.thread, until=record.id)
        async for other in newer:
            turn = Turn.of(other)
            if turn is not None and turn.follows == record.id:
                return other, turn
        return None


async def _is_left(journal: Journal, run_id: str, question: QuestionAsked) -> bool:
    """Return whether a question is or was left to the client.

    A question that was answered elsewhere is no reason to stop.
    """
    after = question.seq
    with anyio.move_on_after(SETTLE):
        while True:
            entries = await journal.read(run_id, after)
            for entry in entries:
                if b'"answer"' in entry.data[:40]:  # the place of an event's type
                    event = read_entry(entry)
                    if isinstance(event, QuestionAnswered) and event.id == question.id:
                        return event.by == BY
            if entries:
                after = entries[-1].seq
                continue
            record = await journal.get(run_id)
            if record is None or (record.status != "running" and record.last_seq <= after):
                return False  # its server has died, and its question is void
            await journal.wait(run_id, after)
    return True


async def sse_of(teller: Teller, *, after: int = 0, pings: bool = True) -> AsyncGenerator[bytes]:
    """Yield the frames as a stream.

    Args:
        teller: The source of the frames.
        after: The number after which to begin.
        pings: Whether to send signs of life.

    Raises:
        RunNotFound: The run was deleted.
        JournalError: The journal cannot be read.
    """
    first = teller.reader
    async with aclosing(teller.frames()) as pieces:
        async for frames in pieces:
            seen = after if teller.reader is first else 0
            wanted = [frame_as_sse(frame) for frame in frames if _is_new(frame, seen, pings=pings)]
            if wanted:
                yield b"".join(wanted)
    if teller.reader.over:
        yield DONE


def _is_new(frame: Frame, after: int, *, pings: bool) -> bool:
    if isinstance(frame, StopReason | UsageStatistics | ErrorMessage):
        return True  # the end has no number
    if isinstance(frame, Ping) and not pings:
        return False
    return frame.seq_id is None or frame.seq_id > after


async def collect(teller: Teller) -> list[Message]:
    """Return the messages when they are complete or cut off.

    Raises:
        RunNotFound: The run was deleted.
        JournalError: The journal cannot be read.
    """
    messages: list[Message] = []
    async with aclosing(teller.frames()) as pieces:
        async for frames in pieces:
            messages.extend(
                frame
                for frame in frames
                if not isinstance(frame, Ping | StopReason | UsageStatistics | ErrorMessage)
            )
    return messages
