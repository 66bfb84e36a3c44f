"""The command in a terminal: a real process with a pseudo-terminal of its own."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.typing_in import LIMIT, thinkwell
from warm import takes_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

CTRL_C: Final = b"\x03"
ROWS, COLUMNS = 24, 80


class Terminal:
    """A program that runs in a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.shown = b""
        """Everything that was written to the terminal."""

    def wait_for(self, text: str) -> None:
        """Wait until a text has been written."""
        self.wait_until(lambda shown: text.encode() in shown, repr(text))

    def wait_until(self, is_so: Callable[[bytes], bool], what: str) -> None:
        """Wait until something is so of all that was written.

        Args:
            is_so: Whether it is.
            what: It, in words.
        """
        deadline = time.monotonic() + LIMIT
        while not is_so(self.shown):
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{what} never came:\n{self.shown.decode(errors='replace')}")

    def type(self, keys: bytes) -> None:
        """Type."""
        os.write(self._master, keys)

    def press(self, key: bytes, *, until: str) -> None:
        """Press a key, again and again, until a text comes: keys that come too early do not count."""
        deadline = time.monotonic() + LIMIT
        while until.encode() not in self.shown and time.monotonic() < deadline:
            self.type(key)
            self._read(0.2)
        self.wait_for(until)

    def end(self) -> int:
        """Wait until the program has ended, and return its exit code."""
        deadline = time.monotonic() + LIMIT
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def _read(self, seconds: float) -> bool:
        """Read what there is; ``False``: the terminal is closed, or time is up."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError as exc:
            if exc.errno != errno.EIO:  # Linux: nobody has the other end open
                raise
            return False
        self.shown += data
        return bool(data)


@contextmanager
def in_terminal(
    *arguments: str,
    stdin: bool = True,
    stdout: int | None = None,
    stderr: int | None = None,
    columns: int = COLUMNS,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Generator[Terminal]:
    """Run ``thinkwell`` in a terminal, in the foreground. Streams are it where nothing is given.

    Args:
        arguments: Those of the command.
        stdin: Whether the standard input is the terminal; else it is empty.
        stdout: Where the standard output goes instead.
        stderr: Where the standard error goes instead.
        columns: How wide it is.
        cwd: The folder that it is run in; by default that of this process.
        env: Variables of its environment beside those of this process.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    environment = {
        name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS")
    }
    command = thinkwell(*arguments)
    with subprocess.Popen(
        command,
        stdin=slave if stdin else subprocess.DEVNULL,
        stdout=slave if stdout is None else stdout,
        stderr=slave if stderr is None else stderr,
        env={**environment, "TERM": "xterm-256color", **(env or {})},
        cwd=cwd,
        start_new_session=True,
        preexec_fn=None if takes_terminal(command) else lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            process.kill()
            os.close(master)


def processes_with(mark: str) -> list[str]:
    """Return the command lines of the processes that have a text in them."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue  # it has ended
        if mark.encode() in line and str(os.getpid()) != path.parent.name:
            found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found
