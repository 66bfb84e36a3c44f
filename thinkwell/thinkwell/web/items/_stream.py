"""The items of a run as server-sent events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from thinkwell.web._sse import EventStream, retry_field, sse_frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from starlette.types import Receive, Scope, Send

    from thinkwell.web._serving import RunServer
    from thinkwell.web._watching import Watcher
    from thinkwell.web.items._feed import ItemFeed, ItemFeeds

__all__ = ("ItemStream",)

FORMAT: Final = 1
"""The version of the format of items."""

_ID: Final = re.compile(r"([0-9a-f]{1,32})\.([0-9]{1,16})")


class ItemStream:
    """Answers with the items of a run: an ASGI application for one request.

    Args:
        server: The server of the run.
        feeds: Makes the items.
        run_id: The run.
        caller: The caller.
        after: The id of the last event that the client has; empty: none. An id of another maker counts as
            none.
    """

    def __init__(self, server: RunServer, feeds: ItemFeeds, run_id: str, *, caller: str, after: str) -> None:
        self._server = server
        self._feeds = feeds
        self._run_id = run_id
        self._caller = caller
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._server.watch(self._run_id, caller=self._caller) as watcher:
            with self._feeds.feed(watcher.record) as feed:
                found = _ID.fullmatch(self._after)
                version = int(found[2]) if found is not None and found[1] == feed.name else 0
                first = retry_field()
                if not version:
                    first += sse_frame(b'{"format":%d}' % FORMAT, event="begin")
                else:
                    first += b"\n"
                await EventStream(_Items(feed, watcher, version), first=first)(scope, receive, send)


class _Items:
    """The items for one client."""

    def __init__(self, feed: ItemFeed, watcher: Watcher, version: int) -> None:
        self._feed = feed
        self._watcher = watcher
        self._version = version
        self._pieces: Iterator[bytes] = iter(())
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        for frame in self._pieces:
            return frame
        pieces = await self._feed.next(self._version, self._watcher)
        if pieces is not None:
            self._version, self._pieces = pieces.version, iter(pieces)
            return next(self._pieces)
        self._is_over = True
        if not self._feed.is_over:  # the server is closing: the client reconnects
            raise StopAsyncIteration
        return sse_frame(b"{}", event="end")
