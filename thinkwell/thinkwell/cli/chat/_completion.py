"""Completion in a chat: of commands, their arguments, and files."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import Completer, Completion

from thinkwell._display.text import clean, is_clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from thinkwell.cli.chat._commands import ChatCommands

__all__ = ("ChatCompleter", "is_completed_while_typed")

ENTRIES: Final = 2_000
"""Most entries of a folder that are read."""

OFFERED: Final = 100
"""Most files that are offered."""

FILE: Final = "@"
"""Precedes the name of a file in a message."""


def is_completed_while_typed(before: str) -> bool:
    """Return whether completions appear while the user types, and not only with Tab.

    Args:
        before: The line as far as the cursor.
    """
    word = before.rpartition(" ")[2]
    return word.startswith(FILE) or before.startswith("/")


class ChatCompleter(Completer):
    """Completes the words of a chat.

    Args:
        commands: The commands.
        folder: The agent's folder; names of files are relative to it.
    """

    def __init__(self, commands: ChatCommands, folder: str) -> None:
        self._commands = commands
        self._folder = folder

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield the completions of the word at the cursor."""
        before = document.current_line_before_cursor
        if not (complete_event.completion_requested or is_completed_while_typed(before)):
            return
        word = before.rpartition(" ")[2]
        is_first = document.cursor_position_row == 0
        found = self._commands.completions(before, word) if is_first else None
        if found is None:
            yield from self._files(word)
            return
        for way, about in found:
            # A name of the agent's is typed for the user, so it may contain only visible characters.
            if way.startswith(word) and is_clean(way):
                yield Completion(f"{way} ", -len(word), display=way, display_meta=about)

    def _files(self, word: str) -> Iterator[Completion]:
        mark = FILE if word.startswith(FILE) else ""
        folder, slash, begun = word.removeprefix(mark).rpartition("/")
        where = os.path.join(self._folder, os.path.expanduser(folder + slash))  # noqa: PTH111, PTH118 - as typed
        try:
            with os.scandir(where) as entries:
                names = [
                    f"{entry.name}/" if entry.is_dir() else entry.name
                    for entry in islice(entries, ENTRIES)
                    if entry.name.startswith(begun) and (begun or not entry.name.startswith("."))
                ]
        except OSError:  # the folder does not exist, or cannot be read
            return
        for name in sorted(names)[:OFFERED]:
            if name.isprintable() and clean(name) == name:
                yield Completion(f"{mark}{folder}{slash}{name}", -len(word), display=name)
