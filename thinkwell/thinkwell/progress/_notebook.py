"""Runs in a Jupyter notebook: one output of the cell, redrawn while they are running."""

from __future__ import annotations

import sys
import time
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Final, Protocol, cast

from thinkwell._display import numbers, phases
from thinkwell._display.html import FRAME_LIMIT, Picture, page, pages
from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell.progress._renderer import Shown

EVERY: Final = 0.25
"""Seconds between two pages. Each is sent to the browser in full, which lays it out again."""


def in_notebook() -> bool:
    """Return whether this program is a Jupyter kernel. IPython in a terminal is not."""
    ipython = sys.modules.get("IPython.core.getipython")  # if IPython runs, it is imported
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


class Handle(Protocol):
    """An output of a cell that can be replaced: IPython's ``DisplayHandle``."""

    def display(self, obj: dict[str, str], *, raw: bool) -> None:
        """Show data in the running cell."""
        ...

    def update(self, obj: dict[str, str], *, raw: bool) -> None:
        """Replace the data."""
        ...


class NotebookRenderer:
    """Draws runs as HTML in the output of the cell that made it."""

    def __init__(self) -> None:
        """Draw into the output of the running cell."""
        from IPython.display import DisplayHandle  # an optional program brings it

        self._handle = cast("Callable[[], Handle]", DisplayHandle)()
        self._context = copy_context()
        """Belongs to the cell in which this was made, also for output of a worker thread."""
        self._drawn_at: float | None = None
        self._drawn = ""

    def draw(self, runs: Sequence[Shown], /) -> None:
        """Draw the runs, unless they were drawn a moment ago: they are drawn again each second."""
        if self._drawn_at is None or time.monotonic() >= self._drawn_at + EVERY:
            self._show(runs, FRAME_LIMIT)

    def finish(self, runs: Sequence[Shown], /) -> None:
        """Draw the end."""
        self._show(runs, None)

    def suspend(self) -> None:
        """Do nothing: an output is not shared."""

    resume = suspend

    def _show(self, runs: Sequence[Shown], limit: int | None) -> None:
        pictures = [_picture(run) for run in runs]
        bounds = {} if limit is None else {"limit": limit}
        html = page(pictures[0], **bounds) if len(pictures) == 1 else pages(pictures, **bounds)
        if html == self._drawn:
            return
        bundle = {"text/html": html, "text/plain": "\n".join(map(_plain, runs))}
        if self._drawn_at is None:
            self._context.run(self._handle.display, bundle, raw=True)
        else:  # the output has an id; some programs listen only to the running cell
            Context().run(self._handle.update, bundle, raw=True)
        self._drawn, self._drawn_at = html, time.monotonic()


def _picture(run: Shown) -> Picture:
    return Picture(
        view=run.view,
        now=run.now,
        label=run.label,
        result=run.result,
        recording=run.recording,
        cancelling=run.cancelling,
    )


def _plain(run: Shown) -> str:
    """Return a run as a line, for programs that do not show HTML."""
    return f"{line(run.label)}: {phases.words(run.view)} {numbers.clock(run.now)}"
