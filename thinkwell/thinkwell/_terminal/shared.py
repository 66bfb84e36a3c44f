"""A terminal that is shared with something else, such as a prompt: displays write above it."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._terminal.keyboard import Keyboard


class SharedTerminal(io.TextIOBase):
    """The part of a terminal above its holder.

    Each written line stays there. A display whose console has this as its file draws with `draw`, and reads
    answers from `keyboard`.
    """

    @property
    @abstractmethod
    def keyboard(self) -> Keyboard:
        """The keyboard for answers."""

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""

    @abstractmethod
    def draw(self, above: str, live: Sequence[str]) -> None:
        """Print lines, and show rows below them until the next call.

        Args:
            above: Lines, each with its line feed; visible characters, and colour sequences.
            live: The same for rows, without line feeds.
        """

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return True
