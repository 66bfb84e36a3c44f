"""The command as a process that goes on until it is ended, and tells what it does on standard error."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from cli.typing_in import LIMIT

if TYPE_CHECKING:
    import signal
    import subprocess
    from collections.abc import Generator


class Running:
    """The command, running."""

    secrets: ClassVar[tuple[str, ...]] = ()
    """What it is never to tell."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.told: list[str] = []
        """What it has written to standard error, line by line."""

    def until_told(self, text: str) -> str:
        """Wait until a line of standard error has a text in it, and return that line."""
        assert self.process.stderr is not None
        while line := self.process.stderr.readline():
            self.told.append(line.rstrip("\n"))
            if text in line:
                return self.told[-1]
        raise AssertionError(f"{text!r} was never told, but {self.told}")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end_with(self, number: signal.Signals) -> int:
        """Send a signal, wait until it has ended, and return its exit code."""
        self.send(number)
        return self.end()

    def end(self) -> int:
        """Wait until it has ended, and return its exit code."""
        assert self.process.stderr is not None
        self.told += self.process.stderr.read().splitlines()
        code = self.process.wait(LIMIT)
        assert not any(text in line for line in self.told for text in ("Traceback", *self.secrets)), self.told
        return code


@contextmanager
def given_up(process: subprocess.Popen[str]) -> Generator[None]:
    """Kill a process at the end of a block, or when that takes too long."""
    give_up = threading.Timer(2 * LIMIT, process.kill)
    give_up.start()
    try:
        yield
    finally:
        give_up.cancel()
        process.kill()
