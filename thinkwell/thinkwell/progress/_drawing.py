"""When a display draws: on news, at intervals without news, and at the end."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._display.phases import OVER
from thinkwell._display.text import line, result_text
from thinkwell._terminal.ctrl_c import CtrlC
from thinkwell.progress._painter import Painter
from thinkwell.progress._renderer import Shown

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from anyio.abc import TaskGroup

    from thinkwell import Outcomes, ThoughtStream
    from thinkwell._display.filling import Picking
    from thinkwell.progress._renderer import Renderer

FRAME: Final = 1 / 12
"""Seconds between frames, at least. The eye does not follow text that changes more often."""

TICK: Final = 1.0
"""Most seconds between frames while something runs: clocks continue without news."""

SHARE: Final = 0.1
"""Largest part of the time spent on drawing: Python runs one thread at a time, so the runs would wait for it.
Slow frames come less often, down to one in `TICK`."""

LAST_FRAME_TIMEOUT: Final = 3.0
"""Seconds that a terminal gets for the last frame when the block is left. A terminal that takes no output,
because Ctrl-S was pressed or nothing reads, must not hold up the program."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """The question that the keyboard answers, and its state; see `Drawing.ask`."""

    question: tuple[int, str] | None = None
    problem: str = ""
    chosen: int | None = None
    picking: Picking | None = None
    explained: int = 0


class Drawing:
    """Draws runs until all have ended, or until `leave`.

    Everything but the drawing itself happens in the event loop, and never waits for the drawing.

    Args:
        streams: The runs.
        labels: Their names.
        make: Makes the renderer.
        maps: The source of more runs.
        result: Whether results are shown.
    """

    def __init__(
        self,
        streams: Sequence[ThoughtStream[object]],
        labels: Sequence[str],
        make: Callable[[], Renderer],
        *,
        maps: Sequence[Outcomes[object, object]] = (),
        result: bool = True,
    ) -> None:
        self.streams = list(streams)
        self.maps = maps
        """The source of more streams."""
        self.ctrl_c = CtrlC(self._cancel, self._kill)
        self.painter = Painter(self._suspend)
        self.shown: tuple[Shown, ...] = ()
        """The runs as last drawn."""
        self._labels = list(labels)
        self._make = make
        self._renderer: Renderer | None = None
        """Made with the first frame, in the drawing thread: its imports take a while."""
        self._results: dict[int, str] | None = {} if result else None
        """The texts of the results by run; ``None``: they are not shown."""
        self._going_on = len(streams) + len(maps)
        self._asking = _Asking()
        self._away = 0
        """How many users of the terminal there are at the moment."""
        self._news = anyio.Event()
        self._due = anyio.Event()
        self._over = anyio.Event()
        if not self._going_on:
            self._over.set()
        self._awaited: anyio.Event | None = None
        """Set with the next frame."""
        self._finished = anyio.Event()
        self._tasks: TaskGroup | None = None
        for outcomes in maps:
            outcomes._follow(lambda given, stream: self.add(stream, line(str(given))))

    def watch(self, tasks: TaskGroup) -> None:
        """Watch the runs, and their source, for news.

        Args:
            tasks: The group for the watching tasks.
        """
        self._tasks = tasks
        for stream in self.streams:
            tasks.start_soon(self._watch, stream)
        for outcomes in self.maps:
            tasks.start_soon(self._until_ended, outcomes)

    async def _watch(self, stream: ThoughtStream[object]) -> None:
        log = stream._log
        while not log.ended:
            await log.wait()
            self._news.set()
        self._one_over()

    async def _until_ended(self, outcomes: Outcomes[object, object]) -> None:
        await outcomes._ended()
        self._one_over()

    def add(self, stream: ThoughtStream[object], label: str) -> None:
        """Show another run."""
        self.streams.append(stream)
        self._labels.append(label)
        self._going_on += 1
        if self._tasks is not None:
            self._tasks.start_soon(self._watch, stream)

    def _one_over(self) -> None:
        self._going_on -= 1
        if not self._going_on:
            self._over.set()

    async def until_over(self) -> None:
        """Draw until all runs have ended, or until `leave`."""
        while not self._over.is_set():
            self._news = anyio.Event()
            self._due.set()
            self._due = anyio.Event()
            await self._draw()
            pause = min(max(FRAME, self.painter.cost * (1 - SHARE) / SHARE), TICK)
            with anyio.move_on_after(pause):
                await self._over.wait()
            with anyio.move_on_after(TICK - pause):
                await self._news.wait()

    def poke(self) -> None:
        """Request a frame soon."""
        self._news.set()

    async def finish(self) -> None:
        """Draw the end."""
        self.ctrl_c.release()  # there is nothing more to cancel: the program gets Ctrl-C again
        await self.painter.do(self._frame(end=True))
        self._finished.set()

    async def leave(self) -> None:
        """Draw the end in the current state, unless it was drawn, and in bounded time."""
        self._over.set()
        self._news.set()
        with anyio.move_on_after(LAST_FRAME_TIMEOUT):
            await self._finished.wait()
        self.painter.end()

    async def news(self) -> None:
        """Wait until the next frame is due: until then, nothing has happened."""
        await self._due.wait()

    async def drawn(self) -> bool:
        """Wait until the current state was drawn; return whether it was."""
        if self._awaited is None:  # pragma: no branch - one asks at a time
            self._awaited = anyio.Event()
        self._news.set()
        await self._awaited.wait()
        return not self.painter.ended

    def ask(
        self,
        question: tuple[int, str] | None,
        problem: str = "",
        *,
        chosen: int | None = None,
        picking: Picking | None = None,
    ) -> None:
        """Set the question that the keyboard answers now, and its state.

        Args:
            question: The number of its run and its id; ``None`` for no question.
            problem: What was wrong with the last answer: clean, on one line.
            chosen: The key that the arrows have chosen.
            picking: The field of its form whose value is being picked.
        """
        explained = self._asking.explained if question == self._asking.question else 0
        self._asking = _Asking(question, problem, chosen, picking, explained)
        self._news.set()

    def explain(self) -> None:
        """Print all details of the question."""
        self._asking = replace(self._asking, explained=self._asking.explained + 1)
        self._news.set()

    @asynccontextmanager
    async def away(self, timeout: float | None = None) -> AsyncGenerator[None]:  # noqa: ASYNC109 - as stated
        """Leave the terminal to a block, which may use it through `painter`.

        Args:
            timeout: Seconds after which the block begins even if the terminal takes no output.
        """
        self._away += 1
        try:
            if self._away == 1:  # pragma: no branch - else Ctrl-Z while a form is filled in
                with anyio.move_on_after(timeout):
                    await self.painter.do(self._suspend)
            yield
        finally:
            self._away -= 1
            self._news.set()

    async def _draw(self) -> None:
        if self._away:
            return
        awaited, self._awaited = self._awaited, None
        await self.painter.do(self._frame(end=False))
        if awaited is not None:
            awaited.set()

    def _frame(self, *, end: bool) -> Callable[[], None]:
        """Return a function that draws the current state of the runs."""
        return partial(self._paint, self._look(end=end), end=end)

    def _paint(self, runs: Sequence[Shown], *, end: bool) -> None:
        if self._renderer is None:
            self._renderer = self._make()
        self._renderer.draw(runs, end=end)

    def _suspend(self) -> None:
        if self._renderer is not None:
            self._renderer.suspend()

    def _cancel(self) -> None:
        for outcomes in self.maps:
            outcomes.cancel()
        for stream in self.streams:
            stream.cancel()
        self.poke()

    def _kill(self) -> None:
        for stream in self.streams:
            stream.kill()
        self.poke()

    def _look(self, *, end: bool) -> tuple[Shown, ...]:
        """Return the current state of all runs."""
        self.shown = tuple(self._shown(index, stream, end=end) for index, stream in enumerate(self.streams))
        return self.shown

    def _shown(self, index: int, stream: ThoughtStream[object], *, end: bool) -> Shown:
        view = stream.view
        if end and view.phase not in OVER and stream.result._outcome.value:
            view = replace(view, phase="completed")  # however its turn ends, the result stays
        presses = 0 if stream._log.ended else self.ctrl_c.presses
        asked = self._asking.question
        asking = self._asking if asked is not None and asked[0] == index else _Asking()
        return Shown(
            label=self._labels[index],
            alone=not self.maps and len(self.streams) == 1,
            view=view,
            now=stream.elapsed,
            result=self._result(index, stream),
            recording=None if stream.recording is None else str(stream.recording),
            asking=None if asking.question is None else asking.question[1],
            problem=asking.problem,
            chosen=asking.chosen,
            picking=asking.picking,
            explained=asking.explained,
            cancelling=presses > 0,
            killed=presses > 1,
        )

    def _result(self, index: int, stream: ThoughtStream[object]) -> str | None:
        """Return the text of a result, which is made once."""
        if self._results is None:
            return None
        if index not in self._results and (value := stream.result._outcome.value):
            self._results[index] = result_text(value[0])
        return self._results.get(index)
