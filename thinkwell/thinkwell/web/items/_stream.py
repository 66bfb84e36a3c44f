"""The items of a run as server-sent events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from thinkwell.web._sse import EventStream, retry_field, sse_frame

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from thinkwell.web._serving import RunServer
    from thinkwell.web._watching import Watcher
    from thinkwell.web.items._feed import ItemFeed, ItemFeeds

FORMAT: Final = 1
"""The version of the format of items."""

_ID: Final = re.compile(r"([0-9a-f]{1,32})\.([0-9]{1,16})")


def item_stream(server: RunServer, feeds: ItemFeeds, run_id: str, *, caller: str, after: str) -> ASGIApp:
    """Return what answers one request with the items of a run.

    Args:
        server: The server of the run.
        feeds: Makes the items.
        run_id: The run.
        caller: The caller.
        after: The id of the last event that the client has; empty: none. An id of another maker counts as
            none.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async with server.watch(run_id, caller=caller) as watcher:
            with feeds.feed(watcher.record) as feed:
                found = _ID.fullmatch(after)
                version = int(found[2]) if found is not None and found[1] == feed.name else 0
                begin = b"\n" if version else sse_frame(b'{"format":%d}' % FORMAT, event="begin")
                frames = _frames(feed, watcher, version)
                await EventStream(frames, first=retry_field() + begin)(scope, receive, send)

    return answer


async def _frames(feed: ItemFeed, watcher: Watcher, version: int) -> AsyncGenerator[bytes]:
    """Yield the items that one client is sent."""
    while (pieces := await feed.next(version, watcher)) is not None:
        version = pieces.version
        frames = iter(pieces)
        del pieces  # else they are kept as long as nothing comes behind them
        for frame in frames:
            yield frame
        frame = b""
    if feed.is_over:  # else the server closes, and the client comes back
        yield sse_frame(b"{}", event="end")
