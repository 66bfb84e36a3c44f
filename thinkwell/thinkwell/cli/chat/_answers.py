"""The prompt as a keyboard for displays: keys and lines that answer questions."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Answers", "Wanted")

Wanted: TypeAlias = Literal["keys", "lines"] | None
"""What a question waits for; ``None``: no question is open."""


class Answers:
    """Keys and lines for a question.

    Args:
        begin: Called when a question begins or stops to wait for keys or lines, with what was waited for.
        echo: Shows a typed line.
    """

    def __init__(self, begin: Callable[[Wanted], None], echo: Callable[[str], object]) -> None:
        self.wanted: Wanted = None
        """What a question waits for."""
        self._begin = begin
        self._echo = echo
        self._keys: deque[str] = deque()
        self._lines: deque[str | None] = deque()

    def press(self, key: str) -> None:
        """Add a key."""
        self._keys.append(key)

    def enter(self, line: str | None) -> None:
        """Add a line; ``None`` for the end of the input."""
        self._lines.append(line)

    def take(self, *, lines: bool = False) -> bool:
        """Wait for keys from now on, or for lines."""
        self.forget()
        self._want("lines" if lines else "keys")
        return True

    def key(self) -> str | None:
        """Return the next key; ``None`` if there is none yet."""
        return self._keys.popleft() if self._keys else None

    def line(self) -> str | None:
        """Return the next line; ``None`` if there is none yet.

        Raises:
            EOFError: The input has ended.
        """
        if not self._lines:
            return None
        line = self._lines.popleft()
        if line is None:
            raise EOFError
        self._echo(f"{line}\n")
        return line

    def forget(self) -> None:
        """Drop the keys and lines so far."""
        self._keys.clear()
        self._lines.clear()

    def mute(self) -> None:
        """Do nothing: the prompt shows what is typed, in its own rows."""

    unmute = mute

    def release(self) -> None:
        """Stop waiting."""
        self._want(None)

    def close(self) -> None:
        """Stop waiting."""
        self.release()

    def _want(self, wanted: Wanted) -> None:
        before, self.wanted = self.wanted, wanted
        self._begin(before)
