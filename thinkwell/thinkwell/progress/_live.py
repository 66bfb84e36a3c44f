"""`Live` and `show`: display runs while they are running."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias, TypeVar, cast, get_args

import anyio

from thinkwell import Outcomes, ThoughtStream
from thinkwell._core.schema.misuse import check_run
from thinkwell._display.json_lines import JsonLines
from thinkwell._terminal.keyboard import find_keyboard
from thinkwell._terminal.output import direct, in_background
from thinkwell._terminal.shared import SharedTerminal
from thinkwell.progress._drawing import Drawing
from thinkwell.progress._lines import LinesRenderer
from thinkwell.progress._showing import showing
from thinkwell.progress._telling import Telling

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from typing import Self

    from rich.console import Console

    from thinkwell._terminal.ctrl_c import CtrlC
    from thinkwell.progress._renderer import Renderer

T = TypeVar("T")

Style: TypeAlias = Literal["auto", "live", "lines", "json"]
"""A style of `Live`."""

_Chosen: TypeAlias = Literal["live", "lines", "json", "notebook"]


class Live(anyio.AsyncContextManagerMixin):
    """Shows runs while its block is open: ``async with Live(stream): …``.

    The runs never wait for the display; a slow terminal gets fewer frames. Leaving the block early does not
    affect the runs. An error in the display is logged once, and ends the display; the runs continue. Leaving
    the block draws the last state; if a terminal has not accepted it after 3 seconds (after Ctrl-S), the
    display gives up.

    Args:
        streams: The runs, of one or several agents, and replays. The runs of an `Agent.map` are shown as they
            start, by their inputs.
        labels: Names for the streams, in the same order; by default those of their agents.
        console: Where to draw; by default standard error.
        style: ``live``: redrawn in place. ``lines``: only appended to. ``json``: one event per line.
            ``auto``: ``live`` in a terminal, and HTML in a notebook; ``lines`` elsewhere, in a simple
            terminal (``TERM=dumb``), and if ``NO_COLOR`` or ``CI`` is set.
        verbose: Show thoughts and tool output in full.
        result: Show the results at the end.
        answer: Let the user answer questions at the keyboard, if there is a terminal. What is typed besides
            stays invisible while a live display is open; a program that reads it gives ``False``.
        ctrl_c: Let Ctrl-C cancel the runs, and a second one kill their agents; a third one goes to the
            program. No effect outside the main thread, or if the program ignores Ctrl-C.
        github: Fold long parts for logs of GitHub Actions (``::group::``); by default if
            ``GITHUB_ACTIONS`` is set.

    Raises:
        ValueError: The style is unknown, or there are not as many labels as runs.
        ImportError: A live display needs rich: ``pip install 'thinkwell[cli]'``.
    """

    def __init__(
        self,
        *streams: ThoughtStream[object] | Outcomes[object, object],
        labels: Sequence[str] = (),
        console: Console | None = None,
        style: Style = "auto",
        verbose: bool = False,
        result: bool = True,
        answer: bool = True,
        ctrl_c: bool = False,
        github: bool | None = None,
    ) -> None:
        if style not in get_args(Style):
            raise ValueError(f'style={style!r}: choose "auto", "live", "lines" or "json"')
        for each in streams:
            check_run(each, "Live({})", ThoughtStream, Outcomes)
        self._maps = [each for each in streams if isinstance(each, Outcomes)]
        self._streams = [each for each in streams if not isinstance(each, Outcomes)]
        if labels and len(labels) != len(self._streams):
            raise ValueError(
                f"Live(labels=…): {len(labels)} labels for {len(self._streams)} runs; give one for each"
            )
        self._labels = tuple(labels) or default_labels(self._streams)
        self._console = console
        self._out, self._terminal, self._style = output_for(style, console)
        self._verbose = verbose
        self._result = result
        self._answer = answer
        self._ctrl_c = ctrl_c
        self._github = bool(os.environ.get("GITHUB_ACTIONS")) if github is None else github
        self._pressing: CtrlC | None = None

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        keyed = self._answer and self._terminal and self._style in ("live", "lines")
        keyboard = None
        if keyed:
            keyboard = self._out.keyboard if isinstance(self._out, SharedTerminal) else find_keyboard()
        drawing = self._drawing()
        self._pressing = drawing.ctrl_c
        picks = self._style == "live"
        async with showing(drawing, self._out, keyboard=keyboard, ctrl_c=self._ctrl_c, picks=picks):
            yield self

    @property
    def presses(self) -> int:
        """How often Ctrl-C was pressed, however it was received."""
        return 0 if self._pressing is None else self._pressing.presses

    @property
    def killed(self) -> bool:
        """Whether Ctrl-C has killed the agents."""
        return self.presses > 1

    def press_ctrl_c(self) -> None:
        """Act as on Ctrl-C, for programs that receive it in another way. Call it in the event loop.

        The first call cancels the runs, the second one kills their agents.
        """
        assert self._pressing is not None, "the block is entered"
        self._pressing.press()

    def _drawing(self) -> Drawing:
        if self._style == "json":
            return Telling(self._streams, self._labels, JsonLines(self._out), maps=self._maps)
        return Drawing(self._streams, self._labels, self._renderer, maps=self._maps, result=self._result)

    def _renderer(self) -> Renderer:
        if self._style == "notebook":
            from thinkwell.progress._notebook import NotebookRenderer  # needs IPython

            return NotebookRenderer()
        if self._style == "live":
            from rich.console import Console

            from thinkwell.progress._live_renderer import LiveRenderer  # needs rich

            return LiveRenderer(self._console or Console(file=self._out), verbose=self._verbose)
        width = self._console.width if self._console is not None and self._terminal else None
        return LinesRenderer(
            self._out,
            width=width,
            verbose=self._verbose,
            github=self._github,
            brief=isinstance(self._out, SharedTerminal),
        )


async def show(
    stream: ThoughtStream[T],
    /,
    *,
    label: str | None = None,
    console: Console | None = None,
    style: Style = "auto",
    verbose: bool = False,
    result: bool = True,
    answer: bool = True,
    ctrl_c: bool = True,
    github: bool | None = None,
) -> T:
    """Show a run until it ends, and return its result.

    For example:

        review = await show(agent.think(Review).text("Review this module.").stream())

    Cancelling this call cancels the run. Everything else is as with `Live`, except that Ctrl-C is handled
    by default.

    Args:
        stream: The run.
        label: A name for the run; by default that of its agent.
        console: Where to draw; by default standard error.
        style: See `Live`.
        verbose: Show thoughts and tool output in full.
        result: Show the result at the end.
        answer: Let the user answer questions at the keyboard.
        ctrl_c: Let Ctrl-C cancel the run, and a second one kill its agent.
        github: Fold long parts for logs of GitHub Actions.

    Raises:
        ThinkwellError: The run's own error, such as `ThoughtCancelled` after Ctrl-C.
        ValueError: The style is unknown.
        ImportError: A live display needs rich: ``pip install 'thinkwell[cli]'``.
    """
    check_run(stream, "show({})", ThoughtStream)
    live = Live(
        stream,
        labels=() if label is None else (label,),
        console=console,
        style=style,
        verbose=verbose,
        result=result,
        answer=answer,
        ctrl_c=ctrl_c,
        github=github,
    )
    async with live:
        try:
            while not stream._log.ended:
                await stream._log.wait()
        except anyio.get_cancelled_exc_class():
            await stream._end()
            raise
    return await stream.result


def default_labels(streams: Sequence[ThoughtStream[object]]) -> tuple[str, ...]:
    """Return the names of the agents, plus those of the runs if several have the same agent."""
    agents = [stream.view.agent or stream.id for stream in streams]
    return tuple(
        agent if agents.count(agent) == 1 else f"{agent} {stream.id}"
        for agent, stream in zip(agents, streams, strict=True)
    )


def output_for(style: Style, console: Console | None) -> tuple[TextIO, bool, _Chosen]:
    """Return where to draw, whether that is a terminal, and the style, if the program leaves it open.

    Raises:
        ImportError: A live display needs rich, which is not installed; the message says how to install it.
    """
    out = direct(sys.stderr) if console is None else cast("TextIO", console.file)
    terminal = out.isatty() if console is None else console.is_terminal
    chosen: _Chosen = "live"
    if style != "auto":
        chosen = style
    elif console is None and _in_notebook():
        chosen = "notebook"
    elif (
        not terminal
        or in_background()  # the shell uses the terminal
        or os.environ.get("NO_COLOR")
        or os.environ.get("CI", "").lower() not in ("", "0", "false")
        or os.environ.get("TERM") in ("dumb", "unknown")
    ):
        chosen = "lines"
    if chosen == "live" and find_spec("rich") is None:
        raise ImportError(
            "thinkwell.progress: a live display needs rich, which is not installed; pip install "
            "'thinkwell[cli]', or take style=\"lines\"",
            name="rich",
        )
    return out, terminal, chosen


def _in_notebook() -> bool:
    if "ipykernel" not in sys.modules:
        return False
    from thinkwell.progress._notebook import in_notebook

    return in_notebook()
