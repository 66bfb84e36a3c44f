"""The program's output while a live zone is on its terminal."""

from __future__ import annotations

import io
import logging
import sys
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console


class StandIn(io.TextIOBase):
    """A text stream that passes on its text; the stream itself, once that is over."""

    def __init__(self, stream: TextIO, write: Callable[[str], bool], flush: Callable[[], None]) -> None:
        self.stream = stream
        self.over = False
        self._write = write
        self._flush = flush

    def write(self, text: str, /) -> int:
        """Pass on a text."""
        if self.over or not self._write(text):  # this object was kept
            return self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Show everything."""
        if self.over:
            self.stream.flush()
        else:
            self._flush()

    def isatty(self) -> bool:
        """Return what the stream returns."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """Return the stream's file descriptor."""
        return self.stream.fileno()

    def writable(self) -> bool:
        """Return that it is writable."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a text stream's own has no getter there
        """The stream's encoding."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """The stream's handling of characters that it cannot encode."""
        return self.stream.errors

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


class Diversion:
    """Takes the program's output to the terminal of a console: from it, ``print`` or ``logging``.

    Other output, such as that of child processes, is not seen here.
    """

    def __init__(self, console: Console, write: Callable[[str], bool], flush: Callable[[], None]) -> None:
        self._console = console
        self._functions = write, flush
        self._stand_ins: list[tuple[TextIO, StandIn]] = []
        """The same object twice, with two types."""
        self._handlers: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []

    def begin(self) -> TextIO:
        """Begin, and return the terminal.

        Raises:
            RuntimeError: Another live display is on it.
        """
        terminal = cast("TextIO", self._console.file)
        if _taken(terminal):
            raise RuntimeError(
                "another live display is on this terminal; give all streams to one: Live(first, second)"
            )
        for name in ("stdout", "stderr"):
            stream = cast("TextIO | None", getattr(sys, name))
            if stream is not None and not _taken(stream) and (stream is terminal or _shows(stream)):
                stream.flush()
                setattr(sys, name, self._stand_in(stream))
        if self._console.file is terminal:
            self._console.file = self._stand_in(terminal)
        for handler in _handlers():
            for taken, stand_in in self._stand_ins:
                if handler.stream is stand_in.stream:
                    handler.setStream(taken)
                    self._handlers.append((handler, taken))
        return terminal

    def _stand_in(self, stream: TextIO) -> TextIO:
        stand_in = StandIn(stream, *self._functions)
        self._stand_ins.append((cast("TextIO", stand_in), stand_in))
        return self._stand_ins[-1][0]

    def end(self) -> None:
        """Restore every stream that others have not replaced meanwhile."""
        streams = {id(taken): stand_in.stream for taken, stand_in in self._stand_ins}
        for handler, taken in self._handlers:
            if handler.stream is taken:
                handler.setStream(streams[id(taken)])
        for taken, stand_in in self._stand_ins:
            stand_in.over = True
            for name in ("stdout", "stderr"):
                if getattr(sys, name) is taken:
                    setattr(sys, name, stand_in.stream)
            if self._console.file is taken:
                self._console.file = stand_in.stream
        self._stand_ins.clear()
        self._handlers.clear()


def _taken(stream: object) -> bool:
    return isinstance(stream, StandIn) and not stream.over


def _shows(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # the file is closed
        return False


def _handlers() -> Iterator[logging.StreamHandler[TextIO]]:
    loggers = [logging.getLogger(), *logging.root.manager.loggerDict.values()]
    for logger in loggers:
        if isinstance(logger, logging.Logger):
            for handler in logger.handlers:
                if isinstance(handler, logging.StreamHandler):
                    yield cast("logging.StreamHandler[TextIO]", handler)
