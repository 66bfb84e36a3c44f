"""A terminal as what is typed in a chat comes from: with a line that can be edited."""

from __future__ import annotations

import readline
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell.cli._chat_history import HistoryFile

__all__ = ("Keyboard",)


class Keyboard:
    """Reads the terminal of this process, with a line that can be edited, a history, and completion by Tab.

    Args:
        history: What was typed before.
        complete: Returns how a word can go on, for the line as far as the cursor and the word there.
    """

    def __init__(self, history: HistoryFile, complete: Callable[[str, str], Sequence[str]]) -> None:
        self._history = history
        self._complete = complete
        self._matches: list[str] = []
        readline.set_completer(self._match)
        readline.set_completer_delims(" \t\n")
        readline.set_auto_history(False)  # what is not kept shall not come back by the arrow either
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        if not is_libedit:  # pragma: no branch - which has no such thing
            readline.parse_and_bind("set enable-bracketed-paste on")  # several lines are one text then
        for entry in history.load():
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
