"""The keyboard of a terminal: single keys and lines, and neither is waited for."""

from __future__ import annotations

import atexit
import codecs
import os
import re
import sys
from contextlib import suppress
from typing import Final, Protocol

POLL_INTERVAL: Final = 0.05
"""Seconds between looks at the keyboard, while it is needed. Looking works with every event loop, with every
terminal and on every system; nothing else does."""

BACKGROUND_INTERVAL: Final = 1.0
"""Seconds between looks at whether a program in the background has come to the front."""

CHUNK: Final = 4096
"""Bytes that are read at once. No line of a terminal is longer."""

_CONTROLS: Final = re.compile(
    r"\x1b (?: \[ [0-?]* [\ -/]* [^0-?\ -/] | O . | [^\[O] ) | [\x00-\x1a\x1c-\x1f\x7f-\x9f]",
    re.VERBOSE | re.DOTALL,
)
"""What arrows, function keys and Alt send, and control characters. The letters in it were never pressed."""


_NAMED: Final = {
    **dict.fromkeys(("\x1b[A", "\x1bOA", "\x1b[D", "\x1bOD"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB", "\x1b[C", "\x1bOC"), "down"),
    **dict.fromkeys(("\r", "\n"), "enter"),
    "\x04": "leave",
}
"""What keys without a character of their own send."""


class Keyboard(Protocol):
    """A keyboard. It is ours between `take` and `release`."""

    def take(self, *, lines: bool = False) -> bool:
        """Take single keys from now on, unseen. What was typed before is forgotten.

        Args:
            lines: Take whole lines, which are seen and can be edited.

        Returns:
            Whether it can be done now: a program in the background has no keyboard.
        """
        ...

    def key(self) -> str | None:
        """Return the key that was pressed since the last look; ``None`` where none was.

        An arrow is ``up`` or ``down``, Enter ``enter``, and Ctrl-D ``leave``. Several keys at once are none:
        a person does not type so fast, but pastes so. Nor are function keys and their like.
        """
        ...

    def line(self) -> str | None:
        """Return a line that was typed; ``None`` where there is none yet.

        Raises:
            EOFError: There will be none: Ctrl-D was pressed, or the terminal is gone.
        """
        ...

    def forget(self) -> None:
        """Forget what was typed until now."""
        ...

    def release(self) -> None:
        """Give the keyboard back as it was."""
        ...

    def close(self) -> None:
        """Give it back for good."""
        ...


if sys.platform == "win32":
    import msvcrt

    class _Console:
        """The keyboard of a console."""

        def __init__(self) -> None:
            self._line = ""

        def take(self, *, lines: bool = False) -> bool:
            self.forget()
            return True

        def key(self) -> str | None:
            typed = [_NAMED.get(key, key) for key in iter(self._next, None)]
            return typed[0] if len(typed) == 1 and typed[0].isprintable() and typed[0] else None

        def line(self) -> str | None:
            while (key := self._next()) is not None:
                if key == "\x1a":  # Ctrl-Z
                    raise EOFError
                if key == "\r":
                    line, self._line = self._line, ""
                    msvcrt.putwch("\n")
                    return line
                if key == "\b":
                    self._line = self._line[:-1]
                    print("\b \b", end="", flush=True)  # noqa: T201 - the echo
                elif key.isprintable() and key:
                    self._line += key
                    msvcrt.putwch(key)
            return None

        def forget(self) -> None:
            self._line = ""
            while self._next() is not None:
                pass

        def release(self) -> None:
            self.forget()

        def close(self) -> None:
            self.release()

        def _next(self) -> str | None:
            """Return what was pressed, empty for a key without a character; ``None``: nothing was."""
            if not msvcrt.kbhit():
                return None
            key = msvcrt.getwch()
            if key in ("\x00", "\xe0"):  # of a key without a character there are two
                return {"H": "\x1b[A", "K": "\x1b[A", "P": "\x1b[B", "M": "\x1b[B"}.get(msvcrt.getwch(), "")
            return key

    def find_keyboard() -> Keyboard | None:
        """Return the keyboard of the console; ``None`` where the standard input is something else."""
        return _Console() if sys.stdin is not None and sys.stdin.isatty() else None

else:
    import termios

    class TerminalKeyboard:
        """The keyboard of a terminal.

        Args:
            fd: The terminal, opened for reading without waiting. It is closed by `close`.
        """

        def __init__(self, fd: int) -> None:
            self._fd = fd
            self._settings: list[int | list[bytes | int]] | None = None
            """What was set before; ``None`` while the keyboard is not ours."""
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._begun = ""
            """What is not complete yet: a line, or what a key sends."""

        def take(self, *, lines: bool = False) -> bool:
            if not self._in_foreground():
                return False
            try:
                settings = termios.tcgetattr(self._fd)
                if self._settings is None:
                    self._settings = settings.copy()
                    atexit.register(self.release)
                # Not the flag that lets Ctrl-C and Ctrl-Z be signals.
                how = termios.ICANON | termios.ECHO
                settings[3] = settings[3] | how if lines else settings[3] & ~how
                termios.tcsetattr(self._fd, termios.TCSANOW, settings)  # waits for no output to drain
            except termios.error:  # pragma: no cover - it is gone since a moment
                return False
            self.forget()
            return True

        def key(self) -> str | None:
            try:
                self._begun += self._read()
            except EOFError:
                return None
            if (named := _NAMED.get(self._begun)) is not None:
                self._begun = ""
                return named
            typed = _CONTROLS.sub("", self._begun)
            rest = typed.find("\x1b")
            self._begun = "" if rest < 0 else typed[rest:]
            typed = typed if rest < 0 else typed[:rest]
            return typed if len(typed) == 1 else None

        def line(self) -> str | None:
            self._begun += self._read()
            line, end, rest = self._begun.partition("\n")
            if not end:
                return None
            self._begun = rest
            return line

        def forget(self) -> None:
            self._begun = ""
            self._decoder.reset()
            with suppress(termios.error):
                termios.tcflush(self._fd, termios.TCIFLUSH)

        def release(self) -> None:
            if self._settings is None:
                return
            settings, self._settings = self._settings, None
            atexit.unregister(self.release)
            if self._in_foreground():  # else a shell has it, with settings of its own
                self.forget()
                with suppress(termios.error):
                    termios.tcsetattr(self._fd, termios.TCSANOW, settings)

        def close(self) -> None:
            """Give it back, and close the terminal."""
            self.release()
            os.close(self._fd)

        def _read(self) -> str:
            """Return what was typed since the last look.

            Raises:
                EOFError: The input has ended.
            """
            try:
                data = os.read(self._fd, CHUNK)
            except BlockingIOError:
                return ""
            except OSError as exc:  # pragma: no cover - some systems tell so that it is gone
                raise EOFError from exc
            if not data:
                raise EOFError
            return self._decoder.decode(data)

        def _in_foreground(self) -> bool:
            try:
                return os.tcgetpgrp(self._fd) == os.getpgrp()
            except OSError:  # it is not our session's, and knows no foreground
                return os.isatty(self._fd)

    def find_keyboard() -> Keyboard | None:
        """Return the keyboard of the terminal.

        That is the terminal that standard input is, or else that of the session: where a prompt is piped in,
        questions can be answered all the same. ``None`` where there is none.
        """
        for name in _names():
            # Opened again, so that not waiting is a setting of this descriptor alone.
            with suppress(OSError):
                return TerminalKeyboard(os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
        return None

    def _names() -> list[str]:
        names = ["/dev/tty"]
        with suppress(OSError):
            names.insert(0, os.ttyname(0))
        return names
