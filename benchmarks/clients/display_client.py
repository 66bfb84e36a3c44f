"""thinkwell with a display: a run that is read and drawn at once, on a terminal that accepts all output.

The terminal is a pty that another program empties and counts; its cost is in no figure.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from benchmarks.clients import _common as common
from benchmarks.clients.thinkwell_client import Stream, ask, consume
from thinkwell import open_agent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from thinkwell.progress import Live

Style: TypeAlias = Literal["none", "live", "lines"]

SIZE = (40, 120)
"""Rows and columns of the terminal."""

WARM_UP = 40
"""Updates of a run before the one that is measured."""

DRAIN = """
import os
size = frames = 0
last = b""
while True:
    try:
        data = os.read(0, 65536)
    except OSError:
        break
    if not data:
        break
    size += len(data)
    frames += (last + data).count(b"\\x1b[?2026h")
    last = data[-7:]
print(size, frames)
"""
"""Reads the terminal to its end; counts characters and frames. A mark of eight bytes may be split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """What one program must show."""

    mix: str
    count: int
    rate: float
    style: Style
    backend: str = "asyncio"

    @property
    def order(self) -> common.Order:
        """The order for the agent."""
        return common.Order(action="stream", mix=self.mix, count=self.count, rate=self.rate)


@contextmanager
def terminal(figures: common.Figures) -> Iterator[TextIO]:
    """Open a terminal, and report afterwards how much was drawn."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, SIZE)
    drain = subprocess.Popen([sys.executable, "-I", "-S", "-c", DRAIN], stdin=master, stdout=subprocess.PIPE)
    os.close(master)
    with os.fdopen(slave, "w", encoding="utf-8") as screen:
        yield screen
    told, _ = drain.communicate()
    size, frames = map(int, told.split())
    figures |= {"drawn_bytes": size, "frames": frames}


async def watch(show: Show, screen: TextIO) -> common.Figures:
    async with AsyncExitStack() as stack:
        agent = await stack.enter_async_context(open_agent(command=show.order.command))
        meter = common.Meter(show.order)
        stream = ask(agent)
        if show.style != "none":
            await stack.enter_async_context(display(stream, show.style, screen))
        reading = await consume(stream, show.count)
        figures = meter.throughput([reading])
        await stream.wait()
        await stack.aclose()
        return {**figures, "last_frame_seconds": perf_counter() - reading.last}


def display(stream: Stream, style: Literal["live", "lines"], screen: TextIO) -> Live:
    from rich.console import Console  # the program without a display loads neither

    from thinkwell.progress import Live

    return Live(stream, console=Console(file=screen), style=style, answer=False, result=False)


def main() -> None:
    show = Show(**json.loads(sys.argv[1]))
    sample(replace(show, mix="mixed", count=WARM_UP, rate=0.0))  # loads what is loaded once
    figures = sample(show)
    common.report({**figures, "cpu_share": figures["cpu_seconds"] / figures["turn_seconds"]})


def sample(show: Show) -> common.Figures:
    drawn: common.Figures = {}
    with terminal(drawn) as screen:
        measured = anyio.run(watch, show, screen, backend=show.backend)
    return {**measured, **drawn}


if __name__ == "__main__":
    main()
