"""The keys of a prompt, besides those that edit a text."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from thinkwell.cli.chat._entries import BACKSLASH, begins_block

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.filters import FilterOrBool
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

    def change_sides() -> None:
        """Move from the question to the input area, or back."""
        prompt.on_question = not prompt.on_question

    def stop(event: KeyPressEvent) -> None:  # pragma: no cover - needs a shell with job control
        """Stop the program until the shell continues it."""
        event.app.suspend_to_background()

    def on(*names: str, do: Callable[[], object], when: FilterOrBool = True, eager: bool = False) -> None:
        """Let keys, pressed one after the other, do something."""

        def handle(_event: KeyPressEvent) -> None:
            do()

        keys.add(*names, filter=when, eager=eager)(handle)

    for key in (Keys.Any, *_NAMES):
        keys.add(key, filter=asked, eager=True)(partial(_press, prompt))
    on("escape", do=change_sides, when=asked, eager=True)
    on("escape", do=change_sides, when=elsewhere)
    on("enter", do=partial(_enter, prompt), when=~asked & ~is_searching)
    for names in (("escape", "enter"), ("c-j",)):
        on(*names, do=partial(prompt.buffer.insert_text, "\n"), when=~asked)
    on("tab", do=partial(_complete, prompt.buffer), when=~asked)
    on("s-tab", do=prompt.buffer.complete_previous, when=~asked)
    on("up", do=prompt.take_back, when=~asked & empty & waits)
    on("c-d", do=prompt.leave, when=~asked & empty)
    for key in ("c-c", "<sigint>"):
        on(key, do=prompt.interrupt, eager=True)
    if sys.platform != "win32":  # pragma: no branch
        keys.add("c-z", eager=True)(stop)
    return keys


def _press(prompt: Entering, event: KeyPressEvent) -> None:
    """Answer a question with a key."""
    key = event.key_sequence[0].key
    if key is Keys.BracketedPaste:  # a text for the agent
        prompt.on_question = False
        prompt.buffer.insert_text(event.data)
        return
    name = {"c-m": "enter", **_NAMES}.get(str(getattr(key, "value", key)), event.data)
    if name in _NAMES.values() or (len(name) == 1 and name.isprintable()):
        prompt.answers.press(name)


def _enter(prompt: Entering) -> None:
    """Enter the typed text, if it is complete."""
    document = prompt.buffer.document
    if begins_block(document.text):
        prompt.buffer.insert_text("\n")
    elif document.text_before_cursor.endswith(BACKSLASH) and document.is_cursor_at_the_end_of_line:
        prompt.buffer.delete_before_cursor()
        prompt.buffer.insert_text("\n")
    else:
        prompt.enter()


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
