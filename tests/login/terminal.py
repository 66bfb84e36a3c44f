"""A terminal with a program in it."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import termios
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from warm import takes_terminal

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from progress.ptys import Settings

PROGRAMS = Path(__file__).with_name("programs")
PATIENCE = 30.0


class Terminal:
    """The other end of a terminal."""

    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self._fd = fd
        self.process = process
        self._text = ""

    def expect(self, pattern: str, patience: float = PATIENCE) -> str:
        """Read until this is shown, and return all that is new up to there."""
        give_up = time.monotonic() + patience
        while (found := re.search(pattern, self._text)) is None:
            ready, _, _ = select.select([self._fd], [], [], max(give_up - time.monotonic(), 0))
            if not ready:
                raise AssertionError(f"{pattern!r} was never shown, but {self._text!r}")
            try:
                self._text += os.read(self._fd, 65536).decode()
            except OSError as exc:  # nobody has the terminal any more
                raise AssertionError(f"{pattern!r} was never shown, but {self._text!r}") from exc
        shown, self._text = self._text[: found.end()], self._text[found.end() :]
        return shown

    def settings(self) -> Settings:
        """How the terminal is set."""
        return termios.tcgetattr(self._fd)

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self._fd, text.encode())

    def leave(self) -> None:
        """Press Ctrl-C, and again: Python does not heed one that comes just before it begins to read."""
        for _ in range(5):
            self.type("\x03")
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE / 5)
                return


@contextmanager
def terminal(*command: str, env: Mapping[str, str], cwd: Path) -> Generator[Terminal]:
    """Start a program in a terminal of its own."""
    ours, theirs = os.openpty()
    leads = [] if takes_terminal(command) else [sys.executable, str(PROGRAMS / "on_terminal.py")]
    process = subprocess.Popen(
        [*leads, *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, **env},
        cwd=cwd,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
