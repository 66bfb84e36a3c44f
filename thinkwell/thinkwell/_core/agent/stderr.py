"""The standard error of an agent's process, line by line, as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST: Final = 64 * 1024
"""Most bytes of a line; a longer one is reported in pieces."""


class StderrLines:
    """Splits its input into lines.

    Args:
        tell: Called with each line, without its end.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._begun = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes; no bytes mean the end."""
        *lines, self._begun = (self._begun + data).split(b"\n") if data else (self._begun, b"")
        while len(self._begun) > LONGEST:
            lines.append(self._begun[:LONGEST])
            self._begun = self._begun[LONGEST:]
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if text:
                self._tell(text)
