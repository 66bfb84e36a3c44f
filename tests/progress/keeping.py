"""A renderer that keeps what it was given, and runs that are shown with it."""

from __future__ import annotations

import io
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from thinkwell.progress._drawing import Drawing
from thinkwell.progress._live import default_labels
from thinkwell.progress._showing import showing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from thinkwell import ThoughtStream
    from thinkwell.progress._interrupt import CtrlC
    from thinkwell.progress._keys import Keyboard
    from thinkwell.progress._renderer import Shown


class Keeping:
    """Keeps the frames, and lets tests wait for one. Made in the event loop."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.frames: list[tuple[Shown, ...]] = []
        self.threads: set[int] = set()
        self._token = current_token()
        self._news = anyio.Event()

    @property
    def last(self) -> tuple[Shown, ...]:
        return self.frames[-1] if self.frames else ()

    def draw(self, runs: Sequence[Shown], /) -> None:
        self._keep("draw", runs)

    def finish(self, runs: Sequence[Shown], /) -> None:
        self._keep("finish", runs)

    def suspend(self) -> None:
        self._keep("suspend")

    def resume(self) -> None:
        self._keep("resume")

    async def until(self, condition: Callable[[Keeping], bool]) -> None:
        """Wait until what was drawn is as expected."""
        while not condition(self):
            await self._news.wait()

    async def shows(self, condition: Callable[[Shown], bool]) -> Shown:
        """Wait until the last frame shows the first run so."""
        await self.until(lambda kept: bool(kept.frames) and condition(kept.last[0]))
        return self.last[0]

    def _keep(self, call: str, runs: Sequence[Shown] | None = None) -> None:
        self.threads.add(threading.get_ident())
        anyio.from_thread.run_sync(self._tell, call, runs, token=self._token)

    def _tell(self, call: str, runs: Sequence[Shown] | None) -> None:
        self.calls.append(call)
        if runs is not None:
            self.frames.append(tuple(runs))
        self._news.set()
        self._news = anyio.Event()


@asynccontextmanager
async def kept(
    *streams: ThoughtStream[object],
    out: TextIO | None = None,
    keyboard: Keyboard | None = None,
    ctrl_c: bool = False,
    result: bool = True,
) -> AsyncGenerator[tuple[Keeping, CtrlC]]:
    """Show runs with a renderer that keeps what it is given."""
    renderer = Keeping()
    drawing = Drawing(streams, default_labels(streams), renderer, result=result)
    async with showing(drawing, out or io.StringIO(), keyboard=keyboard, ctrl_c=ctrl_c):
        yield renderer, drawing.ctrl_c


def is_open(shown: Shown) -> bool:
    """Whether the run waits for an answer that the keyboard may give."""
    return shown.asking is not None


def stream_of(agent: Any) -> ThoughtStream[Any]:
    stream: ThoughtStream[Any] = agent.think().text("Go").stream(include="all")
    return stream
