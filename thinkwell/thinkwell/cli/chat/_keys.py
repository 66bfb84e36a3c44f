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
    keys = KeyBindings()
    asked = Condition(lambda: prompt.on_question)
    elsewhere = Condition(lambda: prompt.answers.wanted == "keys" and not prompt.on_question)
    empty = Condition(lambda: not prompt.buffer.text)
    waits = Condition(lambda: bool(prompt.waiting))

    def press(event: KeyPressEvent) -> None:
        """Answer a question with a key."""
        key = event.key_sequence[0].key
        if key is Keys.BracketedPaste:  # a text for the agent
            prompt.on_question = False
            prompt.buffer.insert_text(event.data)
            return
        name = {"c-m": "enter", **_NAMES}.get(str(getattr(key, "value", key)), event.data)
        if name in _NAMES.values() or (len(name) == 1 and name.isprintable()):
            prompt.answers.press(name)

    def change_sides(_event: KeyPressEvent) -> None:
        """Move from the question to the input area, or back."""
        prompt.on_question = not prompt.on_question

    def enter(_event: KeyPressEvent) -> None:
        """Enter the typed text, if it is complete."""
        document = prompt.buffer.document
        if begins_block(document.text):
            prompt.buffer.insert_text("\n")
        elif document.text_before_cursor.endswith(BACKSLASH) and document.is_cursor_at_the_end_of_line:
            prompt.buffer.delete_before_cursor()
            prompt.buffer.insert_text("\n")
        else:
            prompt.enter()

    for key in (Keys.Any, *_NAMES):
        keys.add(key, filter=asked, eager=True)(press)
    keys.add("escape", filter=asked, eager=True)(change_sides)
    keys.add("escape", filter=elsewhere)(change_sides)
    keys.add("enter", filter=~asked & ~is_searching)(enter)
    for keys_ in (("escape", "enter"), ("c-j",)):
        keys.add(*keys_, filter=~asked)(lambda _: prompt.buffer.insert_text("\n"))
    keys.add("tab", filter=~asked)(lambda _: _complete(prompt.buffer))
    keys.add("s-tab", filter=~asked)(lambda _: prompt.buffer.complete_previous())
    keys.add("up", filter=~asked & empty & waits)(lambda _: prompt.take_back())
    keys.add("c-d", filter=~asked & empty)(lambda _: prompt.leave())
    for key in ("c-c", "<sigint>"):
        keys.add(key, eager=True)(lambda _: prompt.interrupt())
    if sys.platform != "win32":  # pragma: no branch
        keys.add("c-z", eager=True)(lambda event: event.app.suspend_to_background())
    return keys


def _complete(buffer: Buffer) -> None:
    """Complete a word, or go to the next completion."""
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
