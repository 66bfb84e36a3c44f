"""What is typed in a chat, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ("LineReader", "Lines", "read_entry")

FIRST: Final = "> "
MORE: Final = ". "
QUOTES: Final = '"""'
"""A line of these begins a block of lines, and ends it."""


class LineReader(Protocol):
    """Where lines come from."""

    def read_line(self, prompt: str) -> str:
        """Return the next line.

        Raises:
            EOFError: There is none.
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        ...

    def remember(self, entry: str) -> None:
        """Keep what was read as one entry."""
        ...


def read_entry(reader: LineReader) -> str:
    r"""Return what is to be sent: a line; lines that end with ``\``, and the next one; or a block.

    The end of the input ends what was begun.

    Raises:
        EOFError: There is nothing more.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    line = reader.read_line(FIRST)
    lines: list[str] = []
    try:
        if line.strip() == QUOTES:
            while (line := reader.read_line(MORE)).strip() != QUOTES:
                lines.append(line)
            return "\n".join(lines)
        while line.endswith("\\"):
            lines.append(line[:-1])
            line = reader.read_line(MORE)
    except EOFError:
        return "\n".join(lines)
    return "\n".join([*lines, line])


class Lines:
    """Reads a file, a pipe, or a terminal without a line editor of ours.

    Args:
        source: What to read.
        echo: Where to write the prompt, for a person who sits there all the same.
    """

    def __init__(self, source: TextIO, echo: TextIO | None = None) -> None:
        self._source = source
        self._echo = echo

    def read_line(self, prompt: str) -> str:
        """Return the next line."""
        if self._echo is not None:
            self._echo.write(prompt)
            self._echo.flush()
        line = self._source.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n")

    def remember(self, entry: str) -> None:
        """Keep nothing: it is kept where it came from."""
