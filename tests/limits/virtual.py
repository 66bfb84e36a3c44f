"""Time that passes when nothing else can: see `thinkwell.testing`."""

from __future__ import annotations

import anyio

from thinkwell.testing import Backend, virtual_backend

__all__ = ("Backend", "Stopwatch", "virtual_backend")


class Stopwatch:
    """Tells how much of such time has passed."""

    def __init__(self) -> None:
        self._began = anyio.current_time()

    @property
    def seconds(self) -> float:
        return round(anyio.current_time() - self._began, 2)
