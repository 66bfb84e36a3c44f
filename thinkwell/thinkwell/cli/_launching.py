"""What is shown while an agent is looked for, installed and started: before there is a run to show."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from thinkwell._display.cells import clip
from thinkwell._display.phases import phase_words
from thinkwell.cli._terminal import Style
from thinkwell.view import PhaseView

if TYPE_CHECKING:
    from collections.abc import Generator

    from thinkwell.cli._terminal import How
    from thinkwell.events import PhaseChanged

ERASED: Final = "\r\x1b[2K"


class Launching:
    """Takes the phases of a launch. In a terminal the last one stands there until it is over.

    Elsewhere only an installation is told: it may take minutes, and everything else is told with the run.
    """

    def __init__(self, name: str, how: How) -> None:
        self._name = name
        shown = not (how.quiet or how.as_json)
        dumb = how.style == Style.LINES or not sys.stderr.isatty()
        self._lines = shown and dumb
        self._live = shown and not dumb
        self._stands = False

    def __call__(self, event: PhaseChanged) -> None:
        """Show a phase."""
        words = phase_words(PhaseView(phase=event.phase, detail=event.detail), self._name)
        if self._live:
            self._stands = True
            sys.stderr.write(ERASED + clip(f" {words} …", shutil.get_terminal_size().columns - 1))
        elif self._lines and event.phase == "installing":
            sys.stderr.write(f"[phase]  {words}\n")
        sys.stderr.flush()

    def done(self) -> None:
        """Take away what stands there."""
        if self._stands:
            self._stands = False
            sys.stderr.write(ERASED)
            sys.stderr.flush()


@contextmanager
def launching_shown(name: str, how: How) -> Generator[Launching]:
    """Show how an agent is launched; what stands there is gone when the block is left."""
    launching = Launching(name, how)
    try:
        yield launching
    finally:
        launching.done()
