"""The keyboard of a terminal: single keys and lines, without waiting."""

from __future__ import annotations

import atexit
import codecs
import os
import re
import sys
from contextlib import suppress
from typing import Final, Protocol

POLL_INTERVAL: Final = 0.05
"""Seconds between checks of the keyboard while it is needed. Polling is the only way that works with every
event loop, with every terminal and on every system."""

BACKGROUND_INTERVAL: Final = 1.0
"""Seconds between checks whether a background program has come to the foreground."""

CHUNK: Final = 4096
"""Bytes that are read at once. No line of a terminal is longer."""

_CONTROLS: Final = re.compile(
    r"\x1b (?: \[ [0-?]* [\ -/]* [^0-?\ -/] | O . | [^\[O] ) | [\x00-\x1a\x1c-\x1f\x7f-\x9f]",
    re.VERBOSE | re.DOTALL,
)
"""The sequences of arrows, function keys and Alt, and control characters. Letters in them were not typed."""


_NAMED: Final = {
    **dict.fromkeys(("\x1b[A", "\x1bOA", "\x1b[D", "\x1bOD"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB", "\x1b[C", "\x1bOC"), "down"),
    **dict.fromkeys(("\r", "\n"), "enter"),
    "\x04": "leave",
}
"""The sequences of keys without a character."""


class Keyboard(Protocol):
    """A keyboard. It is ours between `take` and `release`."""

    def take(self, *, lines: bool = False) -> bool:
        """Take single keys from now on, without echo. Earlier input is dropped.

        Args:
            lines: Take whole lines, which are echoed and can be edited.

        Returns:
            Whether that is possible now: a program in the background has no keyboard.
        """
        ...

    def key(self) -> str | None:
        """Return the key that was pressed since the last look, or ``None``.

        An arrow is ``up`` or ``down``, Enter ``enter``, and Ctrl-D ``leave``. Several keys at once count as
        none: that is pasted text, not typing. Neither do function keys and similar ones count.
        """
        ...

    def line(self) -> str | None:
        """Return a typed line; ``None`` if there is none yet.

        Raises:
            EOFError: Ctrl-D was pressed, or the terminal has closed.
        """
        ...

    def forget(self) -> None:
        """Drop the input so far."""
        ...

    def mute(self) -> None:
        """Hide what is typed while the keyboard is not ours, until `unmute`: an echo would move a display.

        The input stays there, for the program or its shell.
        """
        ...

    def unmute(self) -> None:
        """Restore the keyboard as it was before `mute`, and before `take`."""
        ...

    def release(self) -> None:
        """Restore the keyboard as it was before `take`."""
        ...

    def close(self) -> None:
        """Restore it for good."""
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

        def mute(self) -> None:
            """Do nothing: a console only echoes what a program reads."""

        def unmute(self) -> None:
            self.release()

        def release(self) -> None:
            self.forget()

        def close(self) -> None:
            self.release()

        def _next(self) -> str | None:
            """Return the pressed key, empty for one without a character; ``None``: there was none."""
            if not msvcrt.kbhit():
                return None
            key = msvcrt.getwch()
            if key in ("\x00", "\xe0"):  # a key without a character sends two
                return {"H": "\x1b[A", "K": "\x1b[A", "P": "\x1b[B", "M": "\x1b[B"}.get(msvcrt.getwch(), "")
            return key

    def find_keyboard() -> Keyboard | None:
        """Return the keyboard of the console; ``None`` if standard input is something else."""
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
            self._before: list[int | list[bytes | int]] | None = None
            """The settings before we changed them; ``None`` while they are not changed."""
            self._taken = False
            self._muted = False
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._begun = ""
            """Incomplete input: a line, or a key's sequence."""

        def take(self, *, lines: bool = False) -> bool:
            # Without the flag that turns Ctrl-C and Ctrl-Z into signals.
            both = termios.ICANON | termios.ECHO
            self._taken = self._set(on=both) if lines else self._set(off=both)
            if self._taken:
                self.forget()
            return self._taken

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

        def mute(self) -> None:
            self._muted = True
            if not self._taken:
                self._set(off=termios.ECHO)

        def unmute(self) -> None:
            self._muted = False
            self.release()
            self._restore()

        def release(self) -> None:
            if not self._taken:
                return
            self._taken = False
            if self._in_foreground():
                self.forget()
            if self._muted:
                self._set(off=termios.ECHO)
            else:
                self._restore()

        def close(self) -> None:
            """Restore it, and close the terminal."""
            self.unmute()
            os.close(self._fd)

        def _set(self, *, on: int = 0, off: int = 0) -> bool:
            """Switch flags on or off, compared with the settings before; return whether that was possible."""
            if not self._in_foreground():
                return False
            try:
                if self._before is None:
                    self._before = termios.tcgetattr(self._fd)
                    atexit.register(self._restore)
                settings = self._before.copy()
                flags = settings[3]
                assert isinstance(flags, int)
                settings[3] = flags & ~off | on
                termios.tcsetattr(self._fd, termios.TCSANOW, settings)  # waits for no output to drain
            except termios.error:  # pragma: no cover - it is gone since a moment
                return False
            return True

        def _restore(self) -> None:
            """Restore the settings before."""
            if self._before is None:
                return
            before, self._before = self._before, None
            atexit.unregister(self._restore)
            if self._in_foreground():  # otherwise a shell has it, with other settings
                with suppress(termios.error):
                    termios.tcsetattr(self._fd, termios.TCSANOW, before)

        def _read(self) -> str:
            """Return the input since the last look.

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
            except OSError:  # it is not our session's, and has no foreground
                return os.isatty(self._fd)

    def find_keyboard() -> Keyboard | None:
        """Return the keyboard of the terminal.

        It is the terminal of standard input, or else the session's: if a prompt is piped in, questions can
        still be answered. ``None`` if there is none.
        """
        for name in _names():
            # Opened again, so that non-blocking mode applies to this descriptor only.
            with suppress(OSError):
                return TerminalKeyboard(os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
        return None

    def _names() -> list[str]:
        names = ["/dev/tty"]
        with suppress(OSError):
            names.insert(0, os.ttyname(0))
        return names
