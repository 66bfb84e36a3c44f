"""A chat at a prompt in memory: a person types, and looks at the screen."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final

from cli.command import run_with
from progress.terminal import Terminal
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from prompt_toolkit.input.base import PipeInput

PATIENCE: Final = 30.0

ENTER: Final = "\r"
ESCAPE: Final = "\x1b"
ALT_ENTER: Final = "\x1b\r"
CTRL_A: Final = "\x01"
CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"
UP: Final = "\x1b[A"
DOWN: Final = "\x1b[B"


class _Screen(Terminal):
    """A terminal that tells when something was written to it."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__(columns, lines)
        self.written = threading.Condition()

    def write(self, text: str, /) -> int:
        with self.written:
            self.written.notify_all()
            return super().write(text)


class Person:
    """A person at a terminal.

    Args:
        keyboard: Where the person types.
        screen: What the person looks at.
    """

    def __init__(self, keyboard: PipeInput, screen: _Screen) -> None:
        self.screen = screen
        self.code: int | None = None
        """The exit code, at the end."""
        self._keyboard = keyboard

    def type(self, text: str) -> None:
        self._keyboard.send_text(text)

    def hang_up(self) -> None:
        self._keyboard.close()

    def sees(self, pattern: str) -> str:
        """Wait until this stands on the screen or above it, and return all of that."""
        return self._wait(lambda text: re.search(pattern, text) is not None, pattern)

    def types_until(self, keys: str, pattern: str) -> str:
        """Press keys again and again until this stands there: what is pressed too early does not count."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            self.type(keys)
            with self.screen.written:
                self.screen.written.wait(0.1)
                if re.search(pattern, self._text):
                    break
        return self.sees(pattern)

    def resizes_until(self, columns: int, lines: int, pattern: str) -> None:
        """Make the terminal so wide until this stands there.

        A program that is not in the main thread looks at the size now and then, and not before it has begun.
        """
        for width in islice(cycle((columns + 1, columns)), round(PATIENCE)):
            self.screen.resize(width, lines)
            with self.screen.written:
                if self.screen.written.wait_for(lambda: re.search(pattern, self._text), 1.0):
                    self.screen.resize(columns, lines)
                    return
        raise AssertionError(f"{pattern!r} was never seen, but:\n{self._text}")

    def _wait(self, condition: Callable[[str], bool], what: str) -> str:
        with self.screen.written:
            if not self.screen.written.wait_for(lambda: condition(self._text), PATIENCE):
                raise AssertionError(f"{what!r} was never seen, but:\n{self._text}")
            return self._text

    @property
    def _text(self) -> str:
        return "\n".join(self.screen.everything)


@contextmanager
def at_prompt(*arguments: str, columns: int = 80, lines: int = 24) -> Generator[Person]:
    """Run ``thinkwell chat`` at a terminal in memory; it has to end with the block."""
    screen = _Screen(columns, lines)
    with create_pipe_input() as keyboard, ThreadPoolExecutor(1) as threads:
        output = Vt100_Output(
            screen.file, lambda: Size(screen.screen.lines, screen.screen.columns), term="xterm-256color"
        )
        person = Person(keyboard, screen)
        streams = (screen.file, screen.file, screen.file)
        with create_app_session(input=keyboard, output=output):
            ended = threads.submit(copy_context().run, run_with, streams, "chat", *arguments)
            try:
                yield person
                person.code = ended.result(PATIENCE)
            except BaseException:
                keyboard.close()
                raise
