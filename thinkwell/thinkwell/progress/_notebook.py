"""Runs in a Jupyter notebook: one output of the cell, redrawn while they are running."""

from __future__ import annotations

import sys
import time
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Final, Protocol, cast

from thinkwell._display import numbers, phases
from thinkwell._display.html import FRAME_LIMIT, PAGE_LIMIT, page, pages
from thinkwell._display.text import line
from thinkwell.progress._renderer import Renderer

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


class NotebookRenderer(Renderer):
    """Draws runs as HTML in the output of the cell that made it."""

    def __init__(self) -> None:
        """Draw into the output of the running cell."""
        from IPython.display import DisplayHandle  # an optional program brings it

        self._handle = cast("Callable[[], Handle]", DisplayHandle)()
        self._context = copy_context()
        """Belongs to the cell in which this was made, also for output of a worker thread."""
        self._drawn_at: float | None = None
        self._drawn = ""

    def draw(self, runs: Sequence[Shown], /, *, end: bool = False) -> None:
        """Draw the runs, unless they were drawn a moment ago: they are drawn again each second."""
        if not end and self._drawn_at is not None and time.monotonic() < self._drawn_at + EVERY:
            return
        limit = PAGE_LIMIT if end else FRAME_LIMIT
        html = page(runs[0], limit=limit) if len(runs) == 1 else pages(runs, limit=limit)
        if html == self._drawn:
            return
        bundle = {"text/html": html, "text/plain": "\n".join(map(_plain, runs))}
        if self._drawn_at is None:
            self._context.run(self._handle.display, bundle, raw=True)
        else:  # the output has an id; some programs listen only to the running cell
            Context().run(self._handle.update, bundle, raw=True)
        self._drawn, self._drawn_at = html, time.monotonic()


def _plain(run: Shown) -> str:
    """Return a run as a line, for programs that do not show HTML."""
    return f"{line(run.label)}: {phases.words(run.view)} {numbers.clock(run.now)}"
