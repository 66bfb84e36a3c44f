"""What an agent's process writes to standard error, line by line, while it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST: Final = 64 * 1024
"""Bytes of a line; a longer one is told in pieces."""


class StderrLines:
    """Cuts what is fed to it into lines.

    Args:
        tell: Called with each line, without its end.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._begun = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes; none are the end."""
        *lines, self._begun = (self._begun + data).split(b"\n") if data else (self._begun, b"")
        while len(self._begun) > LONGEST:
            lines.append(self._begun[:LONGEST])
            self._begun = self._begun[LONGEST:]
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if text:
                self._tell(text)
