"""A terminal that something else holds, such as a prompt: displays write above that."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._terminal.keyboard import Keyboard


class SharedTerminal(io.TextIOBase):
    """What a terminal shows above what holds it.

    Each line that is written stays there. A display that has this as the file of its console draws with
    `draw`, and asks at `keyboard`.
    """

    @property
    @abstractmethod
    def keyboard(self) -> Keyboard:
        """Where questions are answered."""

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""

    @abstractmethod
    def draw(self, above: str, live: Sequence[str]) -> None:
        """Print lines, and show rows below them until the next call.

        Args:
            above: Lines, each with its line feed; characters that show, and sequences that set colours.
            live: Rows of the same, without one.
        """

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return True
