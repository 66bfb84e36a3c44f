"""Where a command shows what happens, and how."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum

import typer


class Style(StrEnum):
    """How progress is shown."""

    AUTO = "auto"
    LIVE = "live"
    LINES = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How a run is shown."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    style: Style = Style.AUTO

    def check(self) -> None:
        """Check that no two of them exclude each other.

        Raises:
            typer.BadParameter: They do.
        """
        if self.as_json and self.quiet:
            raise typer.BadParameter("give --json or --quiet, not both", param_hint="--json")

    @property
    def can_ask(self) -> bool:
        """Whether there is a person who can be asked."""
        return not (self.as_json or self.quiet) and sys.stdin.isatty() and sys.stderr.isatty()


def silence_logs() -> None:
    """Keep what the library logs off the screen: the command tells it in its own way, or need not."""
    import logging  # the help needs none

    logging.getLogger("thinkwell").addHandler(logging.NullHandler())
