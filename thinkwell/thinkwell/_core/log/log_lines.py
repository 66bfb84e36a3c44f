"""Log lines with fields, by which programs that write JSON find what belongs together."""

from __future__ import annotations

import logging
from contextvars import copy_context

logger = logging.getLogger("thinkwell")


def log_fields(**known: object) -> dict[str, object]:
    """Return what a line says besides its text, as attributes of its record: ``thinkwell_agent`` and others.

    Args:
        known: What is known of what it is about: ``agent``, ``session``, …
    """
    return {f"thinkwell_{name}": value for name, value in known.items() if value is not None}


class LogLines:
    """Writes the log lines about one run or session.

    Most are written while messages are being read, in the task that opened the agent. They get the context
    variables of the task that made this instead: the request on whose behalf it was.

    Args:
        known: What every line says.
    """

    def __init__(self, **known: object) -> None:
        self.known: dict[str, object] = known
        """What every line says from now on; see `log_fields`."""
        self._context = copy_context()

    def __call__(
        self, level: int, text: str, *args: object, exc_info: bool | BaseException = False, **more: object
    ) -> None:
        """Write a line, where its level is enabled.

        Args:
            level: Its level.
            text: Its text, with places for `args`.
            args: What goes there.
            exc_info: The exception that it shows; ``True``: the one that is handled.
            more: What it says besides.
        """
        if logger.isEnabledFor(level):
            self._context.copy().run(  # a handler of lines may cause others: no context is entered twice
                logger.log,
                level,
                text,
                *args,
                exc_info=exc_info,
                extra=log_fields(**self.known, **more),
                stacklevel=2,
            )
