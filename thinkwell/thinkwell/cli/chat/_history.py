"""The history of chats."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import msgspec
from prompt_toolkit.history import History

from thinkwell._recording._redact import Redactor
from thinkwell.agents import state_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("HistoryFile", "history_path")

ENTRIES: Final = 1000
"""Entries that are kept. The file is cut when it has twice as many."""

LONGEST: Final = 20_000
"""Most characters of an entry that is kept."""

PRIVATE: Final = 0o600


def history_path() -> Path:
    """Return the path of the history."""
    return state_folder() / "chat_history"


class HistoryFile(History):
    """A history file: a JSON string on each line, since an entry may have several lines.

    Entries that look like a secret or begin with a space are not kept. If the file cannot be used, there is
    no history, and one message says so.

    Args:
        path: The file; ``None``: nothing is read or written.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path
        self._redactor = Redactor(os.environ)

    def load_history_strings(self) -> list[str]:
        """Return the entries of the file, the newest first."""
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
        return [entry for line in lines[: -ENTRIES - 1 : -1] if (entry := _decoded(line)) is not None]

    def append_string(self, string: str) -> None:
        """Keep an entry. Some are not kept: the arrow keys do not bring them back either."""
        if self._keeps(string):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Append an entry to the file."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # At once: a chat may be killed, and others append to the same file.
            _write(self._path, msgspec.json.encode(string) + b"\n", os.O_APPEND)
        except OSError as exc:
            self._give_up(exc)

    def _keeps(self, entry: str) -> bool:
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
    """Open a file that only its owner can read, even if it exists."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | how, PRIVATE)
    with open(file, "wb") as opened:  # noqa: PTH123 - it is open
        if sys.platform != "win32":  # pragma: no branch
            os.fchmod(file, PRIVATE)
        opened.write(data)
