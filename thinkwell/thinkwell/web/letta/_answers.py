"""Runs as answers to requests: as a stream of frames while they run, or complete."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import UNSET, Struct, UnsetType

from thinkwell.events import QuestionAnswered
from thinkwell.web._http import json_answer
from thinkwell.web._records import read_entry
from thinkwell.web._refusals import ServerUnavailable
from thinkwell.web._sse import EventStream
from thinkwell.web.letta._failures import RunFailed
from thinkwell.web.letta._lists import Runs
from thinkwell.web.letta._messages import ErrorMessage, Ping, StopReason, UsageStatistics, frame_as_sse
from thinkwell.web.letta._segments import SegmentReader
from thinkwell.web.letta._turns import BY, Turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import ASGIApp

    from thinkwell.events import QuestionAsked
    from thinkwell.journal import Journal, RunRecord
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._messages import Frame, Message
    from thinkwell.web.letta._segments import Options, Segment

PING_EVERY: Final = 20.0
"""Seconds of silence after which a sign of life is sent. Letta's clients give up after 60."""

SPACE: Final = b"\n"
"""White space before JSON: a sign of life for clients that wait for a complete answer."""

SETTLE: Final = 0.2
"""Seconds that a question may be open before a stream ends with it: a program would answer at once."""

DONE: Final = b"data: [DONE]\n\n"
"""The end of a stream."""


class _Complete(Struct, kw_only=True):
    """A complete answer (Letta API, ``LettaResponse``)."""

    messages: list[Message]
    stop_reason: StopReason | None = None
    usage: UsageStatistics | dict[str, object]
    error: ErrorMessage | UnsetType = UNSET


def stream_answer(server: RunServer, reader: SegmentReader) -> ASGIApp:
    """Answer with a stream of a part of a run.

    Args:
        server: The server of the run.
        reader: The reader of the part.
    """
    teller = _Teller(server, reader)
    return EventStream(
        teller.sse(),
        # Never a comment: the Python client would take it for the end.
        keep_alive=(lambda: frame_as_sse(teller.reader.ping(time.time()))) if reader.pings else None,
        interval=PING_EVERY,
    )


async def complete_answer(
    server: RunServer, segment: Segment, record: RunRecord, options: Options
) -> ASGIApp:
    """Answer with a complete part of a run.

    If that takes long, the answer begins with white space, so that the client keeps waiting. Its status is
    then 200, whatever the outcome, and a failure is in its ``error``.

    Raises:
        RunFailed: The run has failed early.
        ServerUnavailable: The server is closing.
    """
    with anyio.move_on_after(PING_EVERY):
        answer = await _Teller(server, SegmentReader(segment, record, options)).complete()
        if isinstance(answer.error, ErrorMessage):
            raise RunFailed(answer.error.message)
        return json_answer(answer)

    async def later() -> AsyncGenerator[bytes]:
        # From the beginning again: the wait has dropped the earlier messages.
        reader = SegmentReader(segment, record, options)
        yield msgspec.json.encode(await _Teller(server, reader).complete())

    return EventStream(
        later(),
        first=SPACE,
        keep_alive=SPACE,
        interval=PING_EVERY,
        headers={"Content-Type": "application/json"},
    )


class _Teller:
    """Follows a part of a run, and the run that was sent after it.

    Args:
        server: The server of the runs.
        reader: The reader of that part.
    """

    def __init__(self, server: RunServer, reader: SegmentReader) -> None:
        self.reader = reader
        """The reader of the current part."""
        self._server = server

    async def sse(self) -> AsyncGenerator[bytes]:
        """Yield the frames as a stream.

        Raises:
            RunNotFound: The run was deleted.
            JournalError: The journal cannot be read.
        """
        async with aclosing(self._frames()) as pieces:
            async for frames in pieces:
                if frames:
                    yield b"".join(map(frame_as_sse, frames))
        if self.reader.stop is not None:
            yield DONE

    async def complete(self) -> _Complete:
        """Return the frames when they are complete.

        Raises:
            ServerUnavailable: They were cut off.
            RunNotFound: The run was deleted.
            JournalError: The journal cannot be read.
        """
        answer = _Complete(messages=[], usage={})
        async with aclosing(self._frames()) as pieces:
            async for frames in pieces:
                for frame in frames:
                    match frame:
                        case StopReason():
                            answer.stop_reason = frame
                        case UsageStatistics():
                            answer.usage = frame
                        case ErrorMessage():
                            answer.error = frame
                        case Ping():  # pragma: no cover - the request wants none
                            pass
                        case _:
                            answer.messages.append(frame)
        if answer.stop_reason is None:
            raise ServerUnavailable("the server is closing; ask for the run when it is back")
        return answer

    async def _frames(self) -> AsyncGenerator[list[Frame]]:
        """Yield the frames as they come. If the reader has not stopped afterwards, they were cut off."""
        following: SegmentReader | None = self.reader
        while following is not None:
            reader = self.reader = following
            yield reader.begin(time.time())
            async with self._server.watch(reader.record.id, caller=reader.record.caller) as watcher:
                while reader.stop is None and (batch := await watcher.next()) is not None:
                    frames: list[Frame] = []
                    for entry in batch.entries:
                        more, question = reader.take(entry)
                        frames += more
                        if question is not None:
                            yield frames  # before any wait
                            frames = []
                            if await _is_left(self._server.journal, reader.record.id, question):
                                reader.pause()
                                break
                    yield frames
            following = await self._following()
        yield self.reader.last()

    async def _following(self) -> SegmentReader | None:
        """Return a reader of the run that was sent after this one, if this one has completed."""
        reader, record = self.reader, self.reader.record
        if reader.stop in (None, "requires_approval") or reader.error is not None:
            return None
        async for other in Runs(self._server, caller=record.caller, thread=record.thread, until=record.id):
            turn = Turn.of(other)
            if turn is not None and turn.follows == record.id:
                return reader.behind(other, turn.options)
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
