"""The keyboard of a prompt as displays know it: keys and lines that answer questions."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Answers", "Wanted")

Wanted: TypeAlias = Literal["keys", "lines"] | None
"""What a question waits for; ``None``: there is no question."""


class Answers:
    """What was pressed and typed for a question.

    Args:
        begin: Called when keys or lines are wanted from now on, or none any more.
        echo: Shows a line that was typed.
    """

    def __init__(self, begin: Callable[[], None], echo: Callable[[str], object]) -> None:
        self.wanted: Wanted = None
        """What a question waits for."""
        self._begin = begin
        self._echo = echo
        self._keys: deque[str] = deque()
        self._lines: deque[str | None] = deque()

    def press(self, key: str) -> None:
        """Take a key."""
        self._keys.append(key)

    def enter(self, line: str | None) -> None:
        """Take a line; ``None``: there will be none."""
        self._lines.append(line)

    def take(self, *, lines: bool = False) -> bool:
        """Want keys from now on, or lines."""
        self.forget()
        self.wanted = "lines" if lines else "keys"
        self._begin()
        return True

    def key(self) -> str | None:
        """Return the next key; ``None`` where there is none."""
        return self._keys.popleft() if self._keys else None

    def line(self) -> str | None:
        """Return the next line; ``None`` where there is none yet.

        Raises:
            EOFError: There will be none.
        """
        if not self._lines:
            return None
        line = self._lines.popleft()
        if line is None:
            raise EOFError
        self._echo(f"{line}\n")
        return line

    def forget(self) -> None:
        """Forget what was pressed and typed until now."""
        self._keys.clear()
        self._lines.clear()

    def mute(self) -> None:
        """Do nothing: the prompt shows what is typed, in its own rows."""

    def unmute(self) -> None:
        """Want nothing any more."""
        self.release()

    def release(self) -> None:
        """Want nothing any more."""
        self.wanted = None
        self._begin()

    def close(self) -> None:
        """Want nothing any more."""
        self.release()
