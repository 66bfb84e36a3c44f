"""The keys of a prompt, besides those that edit a text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from thinkwell.cli.chat._entries import BACKSLASH, begins_block

if TYPE_CHECKING:
    from collections import deque

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyPressEvent

    from thinkwell.cli.chat._answers import Answers

__all__ = ("Entering", "key_bindings")

_NAMES = {"up": "up", "left": "up", "down": "down", "right": "down", "enter": "enter", "c-d": "leave"}
"""The names of keys without a character, as in `Keyboard.key`."""


class Entering(Protocol):
    """The receiver of the keys."""

    buffer: Buffer
    waiting: deque[str]
    answers: Answers
    on_question: bool
    """Whether the keys go to a question, and not to the input area."""

    def enter(self) -> None:
        """Take the typed text."""
        ...

    def take_back(self) -> None:
        """Put the last waiting entry back into the input area."""
        ...

    def leave(self) -> None:
        """Leave when the waiting entries are done, or leave a form."""
        ...

    def interrupt(self) -> None:
        """Cancel the current turn or command, or clear the input area."""
        ...


def key_bindings(prompt: Entering) -> KeyBindings:
    """Return the bindings of the keys."""
    keys, does = KeyBindings(), _Does(prompt)
    asked = Condition(lambda: prompt.on_question)
    elsewhere = Condition(lambda: prompt.answers.wanted == "keys" and not prompt.on_question)
    empty = Condition(lambda: not prompt.buffer.text)
    waits = Condition(lambda: bool(prompt.waiting))
    keys.add(Keys.Any, filter=asked, eager=True)(does.press)
    for key in _NAMES:
        keys.add(key, filter=asked, eager=True)(does.press)
    keys.add("escape", filter=asked, eager=True)(does.change_sides)
    keys.add("escape", filter=elsewhere)(does.change_sides)
    keys.add("enter", filter=~asked & ~is_searching)(does.enter)
    for keys_ in (("escape", "enter"), ("c-j",)):
        keys.add(*keys_, filter=~asked)(does.begin_line)
    keys.add("tab", filter=~asked)(does.complete)
    keys.add("s-tab", filter=~asked)(does.complete_back)
    keys.add("up", filter=~asked & empty & waits)(does.take_back)
    keys.add("c-d", filter=~asked & empty)(does.leave)
    for key in ("c-c", "<sigint>"):
        keys.add(key, eager=True)(does.interrupt)
    if sys.platform != "win32":  # pragma: no branch
        keys.add("c-z", eager=True)(does.stop)
    return keys


class _Does:
    """The bindings that need more than a call."""

    def __init__(self, prompt: Entering) -> None:
        self._prompt = prompt

    def press(self, event: KeyPressEvent) -> None:
        """Answer a question with a key."""
        key = event.key_sequence[0].key
        if key is Keys.BracketedPaste:  # a text for the agent
            self._prompt.on_question = False
            self._prompt.buffer.insert_text(event.data)
            return
        name = {"c-m": "enter", **_NAMES}.get(str(getattr(key, "value", key)), event.data)
        if name in _NAMES.values() or (len(name) == 1 and name.isprintable()):
            self._prompt.answers.press(name)

    def change_sides(self, _event: KeyPressEvent) -> None:
        """Move from the question to the input area, or back."""
        self._prompt.on_question = not self._prompt.on_question

    def enter(self, _event: KeyPressEvent) -> None:
        """Enter the typed text, if it is complete."""
        document = self._prompt.buffer.document
        if begins_block(document.text):
            self._prompt.buffer.insert_text("\n")
        elif document.text_before_cursor.endswith(BACKSLASH) and document.is_cursor_at_the_end_of_line:
            self._prompt.buffer.delete_before_cursor()
            self._prompt.buffer.insert_text("\n")
        else:
            self._prompt.enter()

    def begin_line(self, _event: KeyPressEvent) -> None:
        """Begin another line."""
        self._prompt.buffer.insert_text("\n")

    def complete(self, _event: KeyPressEvent) -> None:
        """Complete a word, or go to the next completion."""
        buffer = self._prompt.buffer
        if buffer.complete_state and len(buffer.complete_state.completions) > 1:
            buffer.complete_next()
            return
        buffer.complete_state = None
        # At once, so that the next key comes after it.
        document = buffer.document
        found = list(buffer.completer.get_completions(document, CompleteEvent(completion_requested=True)))
        if len(found) == 1:
            buffer.apply_completion(found[0])
        elif common := get_common_complete_suffix(document, found):
            buffer.insert_text(common)
        else:
            buffer.start_completion()

    def complete_back(self, _event: KeyPressEvent) -> None:
        """Go to the previous completion."""
        self._prompt.buffer.complete_previous()

    def take_back(self, _event: KeyPressEvent) -> None:
        """Take back the last waiting entry."""
        self._prompt.take_back()

    def leave(self, _event: KeyPressEvent) -> None:
        """Leave."""
        self._prompt.leave()

    def interrupt(self, _event: KeyPressEvent) -> None:
        """Cancel the current turn or command."""
        self._prompt.interrupt()

    def stop(self, event: KeyPressEvent) -> None:  # pragma: no cover - needs a shell with job control
        """Stop the program until the shell continues it."""
        event.app.suspend_to_background()
