"""Runs as answers to requests: as a stream while they run, or complete."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from thinkwell.web._http import json_answer
from thinkwell.web._refusals import ServerUnavailable
from thinkwell.web._sse import EventStream
from thinkwell.web.letta._failures import RunFailed
from thinkwell.web.letta._messages import frame_as_sse
from thinkwell.web.letta._segments import SegmentReader
from thinkwell.web.letta._streaming import Teller, collect, sse_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import ASGIApp

    from thinkwell.journal import RunRecord
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._messages import Message
    from thinkwell.web.letta._segments import Options, Segment

PING_EVERY: Final = 20.0
"""Seconds of silence after which a sign of life is sent. Letta's clients give up after 60."""

SPACE: Final = b"\n"
"""White space before JSON: a sign of life for clients that wait for a complete answer."""


def stream_answer(
    server: RunServer,
    segment: Segment,
    record: RunRecord,
    options: Options,
    *,
    after: int = 0,
    pings: bool | None = None,
) -> ASGIApp:
    """Answer with a stream of a part of a run.

    Args:
        server: The server of the run.
        segment: The part.
        record: The record of the run.
        options: The form of the answer.
        after: Number of the frame after which to begin.
        pings: Whether to send signs of life; by default as in the first request.
    """
    wanted = options.pings if pings is None else pings
    teller = Teller(server, SegmentReader(segment, record, options), record)
    return EventStream(
        sse_of(teller, after=after, pings=wanted),
        # Never a comment: the Python client would take it for the end.
        keep_alive=(lambda: frame_as_sse(teller.reader.ping(time.time()))) if wanted else None,
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
        teller = Teller(server, SegmentReader(segment, record, options), record)
        body = _body(await collect(teller), teller.reader)
        if teller.reader.error is not None:
            raise RunFailed(teller.reader.error.message)
        return json_answer(body)
    return EventStream(
        _later(server, segment, record, options),
        first=SPACE,
        keep_alive=SPACE,
        interval=PING_EVERY,
        headers={"Content-Type": "application/json"},
    )


async def _later(
    server: RunServer, segment: Segment, record: RunRecord, options: Options
) -> AsyncGenerator[bytes]:
    # From the beginning again: the wait has dropped the earlier messages.
    teller = Teller(server, SegmentReader(segment, record, options), record)
    body = _body(await collect(teller), teller.reader)
    if teller.reader.error is not None:
        body["error"] = teller.reader.error
    yield msgspec.json.encode(body)


def _body(messages: list[Message], reader: SegmentReader) -> dict[str, object]:
    """Return an answer (Letta API, ``LettaResponse``).

    Raises:
        ServerUnavailable: It is incomplete.
    """
    if not reader.over:
        raise ServerUnavailable("the server is closing; ask for the run when it is back")
    return {"messages": messages, "stop_reason": reader.stop, "usage": reader.usage or {}}
