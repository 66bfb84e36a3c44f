"""``python -m serve_access.hurried_serve 10 …``: ``thinkwell serve`` in a time that goes ten times as fast.

It can have few connections. When it has told a connection not to wait for more to send, it prints that.
"""

from __future__ import annotations

import resource
import runpy
import selectors
import socket
import sys
import time
from functools import partial
from typing import Any

FILES = 256
"""Files that are not for connections."""

MOST = 8
"""Connections that are served at the same time."""


class HurriedSelector(selectors.DefaultSelector):
    """Waits for a part of the time."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / self._speed)


class ToldSocket(socket.socket):
    """Tells of an option."""

    def setsockopt(self, *option: Any) -> None:
        super().setsockopt(*option)
        if option == (socket.IPPROTO_TCP, socket.TCP_NODELAY, True):
            print("it does not wait for more to send", flush=True)  # noqa: T201 - it is read


def main() -> None:
    """Run the command."""
    speed, real, begun = float(sys.argv.pop(1)), time.monotonic, time.monotonic()
    time.monotonic = lambda: begun + (real() - begun) * speed
    selectors.DefaultSelector = partial(HurriedSelector, speed)  # type: ignore[assignment, misc]
    socket.socket = ToldSocket  # type: ignore[misc]
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES + MOST, FILES + MOST))

    runpy.run_module("thinkwell", run_name="__main__")


if __name__ == "__main__":
    main()
