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
from thinkwell.web.front_ends._ai_sdk import AiSdkFormat

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence

    from thinkwell.web._serving import RunServer
    from thinkwell.web._watching import Watcher
    from thinkwell.web.front_ends._facts import Chunk
    from thinkwell.web.front_ends._format import FrontEndFormat

FormatName: TypeAlias = Literal["ai-sdk", "ag-ui"]
"""A format of front ends."""

FORMATS: Final[Mapping[FormatName, type[AiSdkFormat | AgUiFormat]]] = {
    "ai-sdk": AiSdkFormat,
    "ag-ui": AgUiFormat,
}

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
    form = FORMATS[name](watcher.record)
    while (batch := await watcher.next()) is not None:
        piece: list[bytes] = []
        for entry in batch.entries:
            chunks = form.take(read_entry(entry))
            if entry.seq > after:
                frames = [*map(_encoder.encode, chunks), *(form.closing if is_end(entry) else ())]
                piece += map(sse_frame, frames[:-1])
                piece += [sse_frame(frame, id=entry.seq) for frame in frames[-1:]]
        if piece:
            yield b"".join(piece)


async def segment_events(
    server: RunServer,
    form: FrontEndFormat,
    *,
    caller: str,
    cuts: Sequence[int] = (),
    answered: Collection[str] = (),
) -> AsyncGenerator[bytes]:
    """Write the part of a run for one answer: up to its end, or to open questions.

    Args:
        server: The server of the run.
        form: The format of the run, in its initial state.
        caller: The caller.
        cuts: Numbers of the entries at which earlier answers ended, in order. This answer begins after the
            last of them.
        answered: Questions that were just answered; the log may not have that yet.

    Raises:
        RunNotFound: The run was deleted.
    """
    run_id, begin, deadline = form.record.id, max(cuts, default=0), math.inf
    last: list[Chunk] = []
    try:
        async with server.watch(run_id, caller=caller) as watcher:
            while True:
                batch = None
                with anyio.CancelScope(deadline=deadline) as waiting:
                    batch = await watcher.next()
                if waiting.cancelled_caught:
                    deadline = math.inf
                    # A slow reader reaches questions that were answered long ago.
                    if (await server.get(run_id, caller=caller)).last_seq > watcher.seq:
                        continue
                    last = form.pause()
                    break
                if batch is None:
                    last = [] if watcher.ended else form.break_off(CUT_OFF)
                    break
                chunks: list[Chunk] = []
                for entry in batch.entries:
                    made = form.take(read_entry(entry))
                    if entry.seq > begin:
                        chunks += made
                    elif entry.seq in cuts:
                        form.pause()
                        form.resume()
                if all(question.id in answered for question in form.run.open_questions):
                    deadline = math.inf
                elif deadline == math.inf:
                    deadline = anyio.current_time() + SETTLE
                if chunks:
                    yield _sse(chunks)
    except JournalError:
        last = form.break_off(UNREADABLE)
    yield _sse(last) + b"".join(map(sse_frame, form.closing))


def _sse(chunks: Iterable[Chunk]) -> bytes:
    return b"".join(sse_frame(_encoder.encode(chunk)) for chunk in chunks)
