"""A terminal in two zones: rows that are printed once, and below them rows that are redrawn."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, Final, TextIO

from rich.cells import chop_cells
from rich.text import Text

from thinkwell._display.cells import cells
from thinkwell.progress._printing import Diversion
from thinkwell.progress._rows import Row, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console, RenderableType

    from thinkwell._terminal.shared import SharedTerminal

_BEGIN: Final = "\x1b[?2026h\x1b[?7l"
"""Show a frame only when it is complete; and do not wrap characters that the terminal takes for wider."""
_END: Final = "\x1b[?7h\x1b[?2026l"
_WRAP: Final = "\x1b[?7h"
_NO_WRAP: Final = "\x1b[?7l"
_HIDE: Final = "\x1b[?25l"
_SHOW: Final = "\x1b[?25h"
_PLAIN: Final = "\x1b[0m"
_ERASE_LINE: Final = "\x1b[K"
_ERASE_BELOW: Final = "\x1b[J"

LEAVE_TIMEOUT: Final = 0.5
"""Seconds that an ending program waits for a frame that is being written."""

UNFINISHED: Final = 10_000
"""Most characters of the program's unfinished line; then it is broken."""


class Screen:
    """Draws on the terminal of a console, from any thread.

    The cursor is below the live zone, at the beginning of a row: however the program ends, its last output
    and the shell's prompt appear below.

    Args:
        console: The console of the terminal.
        reflows: Whether the terminal rewraps rows when it becomes narrower. By default the environment
            decides.
    """

    def __init__(self, console: Console, *, reflows: bool | None = None) -> None:
        self._console = console
        self._reflows = wraps_again(os.environ) if reflows is None else reflows
        self._lock = threading.RLock()
        self._diversion = Diversion(console, self.print, self.flush)
        self._file: TextIO | None = None
        """The terminal, while it is taken."""
        self._live: list[Row] = []
        self._shown: list[Row] = []
        """The live zone as shown on the terminal, including the program's unfinished last line."""
        self._width = 0
        """The terminal's width at that time; 0: everything must be redrawn."""
        self._unfinished = ""
        """The program's unfinished last line."""

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return max(self._console.width, 1)

    @property
    def height(self) -> int:
        """Rows of the terminal."""
        return max(self._console.height, 1)

    def draw(self, above: Iterable[RenderableType], live: Sequence[RenderableType]) -> None:
        """Print finished items, and redraw the live zone: with one write, or none if nothing changes.

        Args:
            above: Printed above the live zone, once.
            live: The live zone, which must be lower than the terminal.

        Raises:
            RuntimeError: Another live display is on this terminal.
            OSError: The terminal is gone.
        """
        width = self.width
        settled = [row for renderable in above for row in rows_of(self._console, renderable, width)]
        rows = [row for renderable in live for row in rows_of(self._console, renderable, width)]
        with self._lock:
            taken = self._take()
            self._live = rows[: max(self.height - 2, 1)]
            self._write(taken, self._frame("".join(_written(row, width) for row in settled), width))

    def print(self, text: str) -> bool:
        """Print the program's output, or return that this screen does not do it any more.

        An unfinished line appears with the next frame.
        """
        with self._lock:
            if self._file is None:
                return False
            done, ended, self._unfinished = (self._unfinished + text).rpartition("\n")
            if len(self._unfinished) > UNFINISHED:
                done, ended, self._unfinished = done + ended + self._unfinished, "\n", ""
            if ended:
                lines = done.replace("\r\n", "\n").replace("\n", "\r\n")
                printed = f"{_ERASE_BELOW}{_WRAP}{lines}{_PLAIN}\r\n{_NO_WRAP}"
                self._write("", self._frame(printed, self.width))
            return True

    def flush(self) -> None:
        """Show the program's last line, too: now, unless a thread waits for the terminal."""
        if not self._lock.acquire(timeout=LEAVE_TIMEOUT):
            return  # Python flushes its streams before it ends
        try:
            if self._file is not None:
                self._write("", self._frame("", self.width))
        finally:
            self._lock.release()

    def release(self) -> None:
        """Leave the terminal to others: the live zone disappears. The next frame takes it back."""
        with self._lock:
            if self._file is None:
                return
            self._live = []
            unfinished, self._unfinished = self._unfinished, ""
            frame = self._frame("", self.width)
            self._diversion.end()
            atexit.unregister(self._leave)
            try:
                self._write("", f"{frame}{unfinished}{_SHOW}")
            finally:
                self._file = None

    def _leave(self) -> None:
        """Leave the terminal because the program ends, unless a thread waits for the terminal forever."""
        if self._lock.acquire(timeout=LEAVE_TIMEOUT):
            try:
                self.release()
            finally:
                self._lock.release()
        else:
            self._diversion.end()  # otherwise Python would wait for that thread when it flushes its streams

    def _take(self) -> str:
        """Take the terminal, if it is not taken, and return the text to write first."""
        if self._file is not None:
            return ""
        self._file = self._diversion.begin()
        atexit.register(self._leave)
        self._shown = []
        return _HIDE

    def _frame(self, above: str, width: int) -> str:
        """Return the text that makes the terminal show rows above and the live zone below them."""
        rows = [*self._unfinished_row(width), *self._live]
        before, drawn = self._shown, self._width
        self._shown, self._width = rows, width
        if above or width != drawn:
            home = _up(sum(self._height(row, width) for row in before))
            written = "".join(_written(row, width) for row in rows)
            return f"{_BEGIN}{home}{above}{written}{_ERASE_BELOW}{_END}"
        if rows == before:
            return ""
        return f"{_BEGIN}{_changes(before, rows, width)}{_END}"

    def _height(self, row: Row, width: int) -> int:
        """Return how many rows a row takes now."""
        if not self._reflows or cells(row.plain) <= width:
            return 1
        return len(chop_cells(row.plain, width))

    def _unfinished_row(self, width: int) -> list[Row]:
        last = self._unfinished.rpartition("\r")[2] or self._unfinished.rstrip("\r").rpartition("\r")[2]
        if not last:
            return []
        text = Text.from_ansi(last)
        return rows_of(self._console, text[-(width if last.isascii() else width // 2) :], width)[-1:]

    def _write(self, first: str, frame: str) -> None:
        text = first + frame
        if not text:
            return
        assert self._file is not None
        encoding = self._file.encoding or "utf-8"
        try:
            self._file.write(text.encode(encoding, "replace").decode(encoding))
            self._file.flush()
        except BlockingIOError:  # a child process made the terminal non-blocking; its contents are unknown
            self._width = 0


class SharedScreen:
    """Draws above the owner of a console's terminal.

    Args:
        console: The console.
        terminal: The terminal's owner, which shows the rows.
    """

    def __init__(self, console: Console, terminal: SharedTerminal) -> None:
        self._console = console
        self._terminal = terminal

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return max(self._terminal.size[0], 1)

    @property
    def height(self) -> int:
        """Rows of the terminal."""
        return max(self._terminal.size[1], 1)

    def draw(self, above: Iterable[RenderableType], live: Sequence[RenderableType]) -> None:
        """Print the settled rows, and redraw the live zone."""
        width = self.width
        settled, rows = (
            [row.text for each in part for row in rows_of(self._console, each, width)]
            for part in (above, live)
        )
        self._terminal.draw("".join(f"{row}\n" for row in settled), rows)

    def release(self) -> None:
        """Remove the live zone."""
        self._terminal.draw("", ())


def wraps_again(environ: Mapping[str, str]) -> bool:
    """Return whether a terminal, by its environment, rewraps rows when it becomes narrower.

    Nearly all do. The others cut their rows.
    """
    if "XTERM_VERSION" in environ or environ.get("TERM") == "linux":
        return False
    return "STY" not in environ or "TMUX" in environ  # of GNU screen


def _up(rows: int) -> str:
    return f"\r\x1b[{rows}A" if rows else "\r"


def _written(row: Row, width: int) -> str:
    # After a full row, the cursor is on its last character, which would be erased. But a terminal may take
    # the row for shorter than we do.
    if cells(row.plain) >= width:
        return f"{_ERASE_LINE}{row.text}\r\n"
    return f"{row.text}{_ERASE_LINE}\r\n"


def _changes(before: Sequence[Row], rows: Sequence[Row], width: int) -> str:
    """Return the text that turns rows into others; it writes only those that differ."""
    same = 0
    while same < min(len(before), len(rows)) and before[same] == rows[same]:
        same += 1
    parts = [_up(len(before) - same)]
    for number in range(same, len(rows)):
        equal = number < len(before) and before[number] == rows[number]
        parts.append("\r\n" if equal else _written(rows[number], width))
    if len(rows) < len(before):
        parts.append(_ERASE_BELOW)
    return "".join(parts)
