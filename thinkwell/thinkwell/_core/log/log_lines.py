"""Log lines with fields, by which programs that write JSON can relate them."""

from __future__ import annotations

import logging
from contextvars import copy_context

logger = logging.getLogger("thinkwell")


def log_fields(**known: object) -> dict[str, object]:
    """Return the fields of a line, as attributes of its record: ``thinkwell_agent`` and others.

    Args:
        known: The values: ``agent``, ``session``, …
    """
    return {f"thinkwell_{name}": value for name, value in known.items() if value is not None}


class LogLines:
    """Writes the log lines about one run or session.

    Most are written while messages are being read, in the task that opened the agent. They get the context
    variables of the task that created this object instead: the request on whose behalf it was.

    Args:
        known: The fields of every line.
    """

    def __init__(self, **known: object) -> None:
        self.known: dict[str, object] = known
        """The fields of every line from now on; see `log_fields`."""
        self._context = copy_context()

    def __call__(
        self, level: int, text: str, *args: object, exc_info: bool | BaseException = False, **more: object
    ) -> None:
        """Write a line, if its level is enabled.

        Args:
            level: Its level.
            text: Its text, with placeholders for `args`.
            args: The values of the placeholders.
            exc_info: The exception to show; ``True``: the current one.
            more: Further fields.
        """
        if logger.isEnabledFor(level):
            self._context.copy().run(  # a log handler may write lines: no context is entered twice
                logger.log,
                level,
                text,
                *args,
                exc_info=exc_info,
                extra=log_fields(**self.known, **more),
                stacklevel=2,
            )
