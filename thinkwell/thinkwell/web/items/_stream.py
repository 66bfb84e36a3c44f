"""The items of a run as server-sent events."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell.web._sse import EventStream, retry_field, sse_frame

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from thinkwell.journal import RunRecord
    from thinkwell.web._serving import RunServer
    from thinkwell.web._watching import Watcher
    from thinkwell.web.items._feed import ItemFeed, ItemFeeds

FORMAT: Final = 4
"""The version of the format of items."""

_OVER: Final = sse_frame(b"{}", event="end")
_WHOLE: Final = sse_frame(b"{}", event="whole")

_ID: Final = re.compile(r"([0-9a-f]{1,32})\.([0-9]{1,16})")


class _Begin(Struct, frozen=True):
    """What all items of a run come behind."""

    run: object
    seq: int
    """Number of the last entry of its log."""
    age: float
    """Seconds since it was requested."""
    format: int = FORMAT
    part: bool = False
    """Whether only the end of a long run follows; then everything, behind another one of these."""


def item_stream(
    server: RunServer,
    feeds: ItemFeeds,
    run_id: str,
    shown: Callable[[RunRecord], object],
    *,
    caller: str,
    after: str,
) -> ASGIApp:
    """Return what answers one request with the items of a run.

    Args:
        server: The server of the run.
        feeds: Makes the items.
        run_id: The run.
        shown: Returns a run's record for callers.
        caller: The caller.
        after: The id of the last event that the client has; empty: none. An id of another maker counts as
            none.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async with server.watch(run_id, caller=caller) as watcher:
            with feeds.feed(watcher.record) as feed:
                found = _ID.fullmatch(after)
                version = int(found[2]) if found is not None and found[1] == feed.name else 0
                record = watcher.record
                about = _Begin(shown(record), record.last_seq, time.time() - record.created)
                frames = _frames(feed, watcher, version, about)
                await EventStream(frames, first=retry_field() + b"\n")(scope, receive, send)

    return answer


async def _frames(feed: ItemFeed, watcher: Watcher, version: int, about: _Begin) -> AsyncGenerator[bytes]:
    """Yield the items that one client is sent."""
    is_whole = False
    if not version:
        if (end := await feed.end(watcher)) is not None:
            yield _begin(replace(about, part=True)) + end
            del end
        yield _begin(about)
    while (pieces := await feed.next(version, watcher)) is not None:
        version, last = pieces.version, pieces.last
        frames = iter(pieces)
        del pieces  # else they are kept as long as nothing comes behind them
        for frame in frames:
            yield frame
        frame = b""
        if not is_whole and last >= about.seq:
            is_whole = True
            yield _WHOLE
    if feed.is_over:  # else the server closes, and the client comes back
        yield _OVER


def _begin(about: _Begin) -> bytes:
    return sse_frame(msgspec.json.encode(about), event="begin")
