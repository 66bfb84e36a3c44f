"""Connections to ``thinkwell serve``: how many there are, and how long each may take to ask something.

uvicorn answers those that are too many, and waits for as long as it takes: by itself it never lets go of
clients that say nothing, or each header a minute later (slow loris).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.config import Config
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    from uvicorn.server import ServerState

__all__ = ("Connection",)

HEAD_TIME: Final = 20.0
"""Seconds until the head of a request has to be there, since the connection or the last answer. How long its
body may take is looked after behind that."""

TOLD: Final = 64
"""Connections that are told that there are too many, while there are. More are closed as they come: each is
an open file, and agents need some."""


class Connection(H11Protocol):
    """One connection. It reads HTTP with h11 whatever else is installed: what is refused is known of that."""

    head_time = HEAD_TIME

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, where there is room for one more."""
        super().connection_made(transport)
        most = self.config.limit_concurrency
        if most is not None and len(self.connections) > most + TOLD:
            transport.abort()
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait no more where that was all of a head."""
        super().data_received(data)
        if self._is_asked:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()  # which may begin what has come meanwhile
        self._stop_waiting()
        if not self._is_asked:
            self._wait()

    @property
    def _is_asked(self) -> bool:
        """Whether something is being answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # there is none before the first request
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.head_time, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
