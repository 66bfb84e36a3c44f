"""Entries of a chat: a line, several lines that belong together, or a block."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ("BACKSLASH", "begins_block", "read_entry", "typed_ahead", "unquoted")

FIRST: Final = "> "
MORE: Final = ". "
QUOTES: Final = '"""'
"""The line that begins and ends a block."""
BACKSLASH: Final = "\\"
"""Ends a line that continues in the next one."""


def begins_block(text: str) -> bool:
    """Return whether a text is an unfinished block."""
    first, *lines = text.split("\n")
    return first.strip() == QUOTES and not (lines and lines[-1].strip() == QUOTES)


def unquoted(text: str) -> str:
    """Return the lines of a block; other texts unchanged."""
    first, *lines = text.split("\n")
    return "\n".join(lines[:-1]) if first.strip() == QUOTES and lines else text


def typed_ahead() -> list[str]:
    """Return the complete lines that were typed before the prompt appeared.

    An incomplete line stays for it.
    """
    typed = b""
    if sys.platform != "win32":  # pragma: no branch - consoles keep them
        import select

        with suppress(OSError):  # standard input is not a file of the system
            terminal = sys.stdin.fileno()
            while select.select([terminal], [], [], 0)[0] and (read := os.read(terminal, 4096)):
                typed += read
    return typed.decode(errors="replace").splitlines()


def read_entry(source: TextIO, echo: TextIO | None = None) -> str:
    r"""Return the next entry: a line; lines that end with ``\``, and the next one; or a block.

    The end of the input ends an unfinished entry.

    Args:
        source: A file, a pipe or a simple terminal.
        echo: Where to write the prompt, if it is a terminal.

    Raises:
        EOFError: The input has ended.
        KeyboardInterrupt: Ctrl-C was pressed.
    """

    def read(prompt: str) -> str:
        if echo is not None:
            echo.write(prompt)
            echo.flush()
        if not (line := source.readline()):
            raise EOFError
        return line.removesuffix("\n")

    line = read(FIRST)
    taken: list[str] = []
    try:
        if line.strip() == QUOTES:
            while (line := read(MORE)).strip() != QUOTES:
                taken.append(line)
            return "\n".join(taken)
        while line.endswith(BACKSLASH):
            taken.append(line[:-1])
            line = read(MORE)
    except EOFError:
        return "\n".join(taken)
    return "\n".join([*taken, line])
