"""Terminals: one end with a person, the other with a program."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Generator

Settings: TypeAlias = list[int | list[bytes | int]]

PROGRAMS = Path(__file__).with_name("programs")
PATIENCE = 30.0


def is_raw(settings: Settings) -> bool:
    """Return whether a terminal hands over single keys, and shows none of them."""
    flags = settings[3]
    assert isinstance(flags, int)
    return not flags & (termios.ICANON | termios.ECHO)


def echoes(settings: Settings) -> bool:
    """Return whether a terminal shows what is typed."""
    flags = settings[3]
    assert isinstance(flags, int)
    return bool(flags & termios.ECHO)


class Person:
    """Who sits at a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.seen = ""
        """All that was shown."""
        self._looked = 0

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def expect(self, pattern: str) -> str:
        """Read until this is shown, and return all that is new up to there."""
        new = self._read(pattern, PATIENCE)
        assert new is not None, f"{pattern!r} was never shown, but {self.seen[self._looked :]!r}"
        return new

    def type_until(self, text: str, pattern: str) -> None:
        """Type again and again until this is shown: what is typed too early does not count."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            self.type(text)
            if self._read(pattern, 0.3) is not None:
                return
        self.expect(pattern)

    def _read(self, pattern: str, seconds: float) -> str | None:
        give_up = time.monotonic() + seconds
        while (found := re.compile(pattern).search(self.seen, self._looked)) is None:
            ready, _, _ = select.select([self._fd], [], [], max(give_up - time.monotonic(), 0))
            try:
                data = os.read(self._fd, 65536) if ready else b""
            except OSError:  # nobody has the terminal any more
                data = b""
            if not data:
                return None
            self.seen += data.decode(errors="replace")
        begin, self._looked = self._looked, found.end()
        return self.seen[begin : self._looked]


class Shell(Person):
    """A terminal of a session of its own, with a program in it."""

    def __init__(self, fd: int, theirs: int, process: subprocess.Popen[bytes]) -> None:
        super().__init__(fd)
        self._theirs = theirs
        self.process = process

    def settings(self) -> Settings:
        """How the terminal is set."""
        return termios.tcgetattr(self._theirs)

    def is_raw(self) -> bool:
        """Whether single keys are taken, unseen."""
        return is_raw(self.settings())

    def echoes(self) -> bool:
        """Whether typed characters are shown."""
        return echoes(self.settings())


@contextmanager
def program(*command: str, cwd: Path | None = None, **env: str) -> Generator[Shell]:
    """Run a program of this folder, or a command, in a terminal of its own."""
    if command[0].endswith(".py"):
        command = (sys.executable, str(PROGRAMS / command[0]), *command[1:])
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, str(PROGRAMS / "session.py"), *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**_environment(), **env},
        cwd=cwd,
        start_new_session=True,
    )
    try:
        yield Shell(ours, theirs, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def _environment() -> dict[str, str]:
    """The environment of somebody at a terminal."""
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS")}
    return {**env, "TERM": "xterm-256color", "PYTHON_COLORS": "0", "THINKWELL_BUILTIN_PACE": "0"}
