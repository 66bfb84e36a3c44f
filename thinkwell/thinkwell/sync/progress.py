"""`thinkwell.progress` without ``await``: shows running runs.

::

    review = show(agent.think(Review).text("Review this module.").stream())
"""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from thinkwell._core.schema.misuse import check_run
from thinkwell.progress import Live as AsyncLive
from thinkwell.progress import Style
from thinkwell.sync._loop import hold
from thinkwell.sync._outcomes import Outcomes
from thinkwell.sync._stream import ThoughtStream

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from types import TracebackType
    from typing import Self

    from rich.console import Console


__all__ = ("Live", "Style", "show")

T = TypeVar("T")


class Live:
    """Shows runs while its block is open: ``with Live(stream): …``. See `thinkwell.progress.Live`.

    You can use it in any thread. It draws in the background, whatever the block does.

    Args:
        streams: The runs, of one or several agents, and replays. The runs of an `Agent.map` are shown as they
            start, by their inputs.
        labels: Names for the streams, in the same order; by default those of their agents.
        console: Where to draw; by default standard error.
        style: ``live``, ``lines``, ``json``, or ``auto``, which depends on the console.
        verbose: Show thoughts and tool output in full.
        result: Show the results at the end.
        answer: Let the user answer questions at the keyboard, if there is a terminal.
        ctrl_c: Let Ctrl-C cancel the runs, and a second one kill their agents; a third one goes to the
            program. No effect outside the main thread, or if the program ignores Ctrl-C.
        github: Fold long parts for logs of GitHub Actions; by default if ``GITHUB_ACTIONS`` is set.

    Entering the block raises errors of the arguments, as in `thinkwell.progress.Live`.
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
        for each in streams:
            check_run(each, "Live({})", ThoughtStream, Outcomes)
        self._manager = partial(
            AsyncLive,
            *(each._outcomes if isinstance(each, Outcomes) else each._stream for each in streams),
            labels=labels,
            console=console,
            style=style,
            verbose=verbose,
            result=result,
            answer=answer,
            github=github,
        )
        self._ctrl_c = ctrl_c
        self._live: AsyncLive | None = None
        self._post: Callable[[], None] | None = None
        """Reports Ctrl-C to the display."""
        self._early = 0
        """How often Ctrl-C was pressed before the display existed."""
        self._entered = ExitStack()

    @property
    def presses(self) -> int:
        """How often Ctrl-C was received."""
        return 0 if self._live is None else self._live.presses

    @property
    def killed(self) -> bool:
        """Whether Ctrl-C has killed the agents."""
        return self.presses > 1

    def __enter__(self) -> Self:
        with ExitStack() as received:
            if self._ctrl_c:
                # Before anything is drawn: a user who sees the run may press it at once.
                received.enter_context(_ctrl_c_received(self._press))
            held, live = hold(self._manager)
            self._entered.callback(held.close)
            self._entered.enter_context(received.pop_all())
        self._live = live
        self._post = partial(held.loop.post, live.press_ctrl_c)
        for _ in range(self._early):
            self._post()
        return self

    def _press(self) -> None:
        """Report Ctrl-C to the display, or keep it until there is a display."""
        if self._post is None:
            self._early += 1
        else:
            self._post()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.close()


def show(
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
    """Show a run until its end, and return its result.

    Args:
        stream: The run.
        label: A name for the run; by default that of its agent.
        console: Where to draw; by default standard error.
        style: See `Live`.
        verbose: Show thoughts and tool output in full.
        result: Show the result at the end.
        answer: Let the user answer questions at the keyboard.
        ctrl_c: Let Ctrl-C cancel the run, and a second one kill its agent. Otherwise Ctrl-C leaves the wait,
            and the run is cancelled.
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
    with live:
        try:
            stream.wait()
        except BaseException:
            stream._end()
            raise
    return stream.result()


@contextmanager
def _ctrl_c_received(press: Callable[[], object]) -> Generator[None]:
    """Receive the first two Ctrl-C of a block in place of the program, unless it ignores them."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    presses = 0

    def pressed(*_: object) -> None:
        nonlocal presses
        presses += 1
        if presses > 1:
            signal.signal(signal.SIGINT, before)
        press()

    signal.signal(signal.SIGINT, pressed)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
