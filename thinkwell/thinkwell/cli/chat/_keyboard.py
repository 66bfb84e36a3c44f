"""A terminal as what is typed in a chat comes from: with a line that can be edited, and a history in a file.

It needs the line editor of Python, which does not exist on Windows.
"""

from __future__ import annotations

import os
import readline
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from thinkwell._recording._redact import Redactor
from thinkwell.agents import state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ENTRIES: Final = 1000
"""Entries that are remembered. The file is cut when it has twice as many."""

LONGEST: Final = 20_000
"""Characters of an entry that is kept."""

PRIVATE: Final = 0o600


def history_path() -> Path:
    """Return where the entries are kept."""
    return state_folder() / "chat_history"


class Keyboard:
    """Reads the terminal of this process, with a line that can be edited, a history, and completion by Tab.

    Args:
        history: The file of what was typed before; ``None``: nothing is read or written.
        complete: Returns how a word can go on, for the line as far as the cursor and the word there.
    """

    def __init__(self, history: Path | None, complete: Callable[[str, str], Sequence[str]]) -> None:
        self._history = _HistoryFile(history)
        self._complete = complete
        self._matches: list[str] = []
        readline.set_completer(self._match)
        readline.set_completer_delims(" \t\n")
        readline.set_auto_history(False)  # what is not kept shall not come back by the arrow either
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        if not is_libedit:  # pragma: no branch - which has no such thing
            readline.parse_and_bind("set enable-bracketed-paste on")  # several lines are one text then
        for entry in self._history.load():
            readline.add_history(entry)

    def read_line(self, prompt: str) -> str:
        """Return the next line."""
        return input(prompt)

    def remember(self, entry: str) -> None:
        """Keep an entry for the arrow keys, and for the next time."""
        if self._history.keeps(entry):
            readline.add_history(entry)
        self._history.add(entry)

    def _match(self, word: str, number: int) -> str | None:
        """Return the next way to go on, as readline asks for it."""
        if number == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            self._matches = list(self._complete(line, word))
        return self._matches[number] if number < len(self._matches) else None


class _HistoryFile:
    """What was typed, this time and before: a JSON string on each line, since an entry may have several.

    What looks like a secret is not kept, nor what begins with a space. Where the file cannot be used there is
    no history, which is said once.

    Args:
        path: Where it is; ``None``: nothing is read or written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._redactor = Redactor(os.environ)

    def load(self) -> list[str]:
        """Return the entries of the file, the oldest first."""
        if self._path is None:
            return []
        try:
            lines = self._path.read_bytes().splitlines()
            if len(lines) > 2 * ENTRIES:
                self._cut(self._path, lines[-ENTRIES:])
        except FileNotFoundError:
            return []
        except OSError as exc:
            self._give_up(exc)
            return []
        return [entry for line in lines[-ENTRIES:] if (entry := _decoded(line)) is not None]

    def add(self, entry: str) -> None:
        """Append an entry, if it is one to keep."""
        if self._path is None or not self.keeps(entry):
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # At once: a chat may be killed, and others append to the same file.
            _write(self._path, msgspec.json.encode(entry) + b"\n", os.O_APPEND)
        except OSError as exc:
            self._give_up(exc)

    def keeps(self, entry: str) -> bool:
        """Return whether an entry may be remembered at all."""
        if not entry.strip() or entry.startswith(" ") or len(entry) > LONGEST:
            return False
        return self._redactor.text(entry) == entry

    def _cut(self, path: Path, lines: list[bytes]) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}")
        _write(new, b"".join(line + b"\n" for line in lines), os.O_TRUNC)
        new.replace(path)

    def _give_up(self, error: OSError) -> None:
        sys.stderr.write(f"No history is kept: {self._path}: {error.strerror}\n")
        self._path = None


def _decoded(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=str)
    except msgspec.DecodeError:
        return None


def _write(path: Path, data: bytes, how: int) -> None:
    """Write to a file that only its owner can read, however it was made."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | how, PRIVATE)
    with open(file, "wb") as opened:  # noqa: PTH123 - it is open already
        if sys.platform != "win32":  # pragma: no branch
            os.fchmod(file, PRIVATE)
        opened.write(data)
