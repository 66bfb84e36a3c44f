"""Reading a part of a run while it goes on: as a stream of frames, or all of it at its end."""

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
"""Who has answered a question, where a client of Letta's has."""

SETTLE: Final = 0.2
"""Seconds that a question may be open before a stream ends with it: a program would answer it at once."""

DONE: Final = b"data: [DONE]\n\n"
"""What ends a stream."""


class Teller:
    """Tells of a part of a run, and of the run that was sent behind it.

    Args:
        server: Where the runs are.
        reader: Reads that part.
        record: What is known of the run.
    """

    def __init__(self, server: RunServer, reader: SegmentReader, record: RunRecord) -> None:
        self.reader = reader
        """Reads what is being told."""
        self._server = server
        self._record = record

    async def frames(self) -> AsyncGenerator[list[Frame]]:
        """Yield the frames as they come. Where the reader is not over then, they were cut off.

        Raises:
            RunNotFound: There is no such run any more.
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
                        yield frames  # before it is waited for anything
                        frames = []
                        if await _is_left(self._server.journal, self._record.id, question):
                            frames = reader.pause()
                            break
                yield frames

    async def _following(self) -> tuple[RunRecord, Turn] | None:
        """Return the run that was sent behind this one, where this one has ended well."""
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
    """Return whether a question is left to the client, or was.

    What was answered elsewhere meanwhile is no reason to stop.
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
                return False  # its server has died, and with it the question
            await journal.wait(run_id, after)
    return True


async def sse_of(teller: Teller, *, after: int = 0, pings: bool = True) -> AsyncGenerator[bytes]:
    """Yield what is told as a stream.

    Args:
        teller: Tells it.
        after: The number behind which to begin.
        pings: Whether signs of life are wanted.

    Raises:
        RunNotFound: There is no such run any more.
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
    """Return the messages that are told, when all are, or when they were cut off.

    Raises:
        RunNotFound: There is no such run any more.
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
