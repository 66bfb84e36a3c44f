"""`Board`: rows that the program makes itself, drawn as `Live` draws runs."""

from __future__ import annotations

import os
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TextIO, TypeAlias, cast, get_args

import anyio

from thinkwell._display.text import line
from thinkwell._terminal.output import direct, in_background
from thinkwell.progress._board_state import ended_rows
from thinkwell.progress._drawing import Drawing
from thinkwell.progress._live import _check_rich, _console, choose_style
from thinkwell.progress._renderer import Deferred
from thinkwell.progress._showing import showing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from typing import Self

    from rich.console import Console

    from thinkwell.progress._board_state import BoardState
    from thinkwell.progress._renderer import Renderer, Shown

BoardStyle: TypeAlias = Literal["auto", "live", "lines"]
"""A style of `Board`."""

QUIET: Final = 30.0
"""Seconds after which the lines say how far all is, if nothing has ended."""


class Board(anyio.AsyncContextManagerMixin):
    """Shows rows that a function returns, while its block is open: ``async with Board(read): …``.

    It looks like `Live` with several runs, and is for work that runs elsewhere. Leaving the block draws the
    last state. If the function fails, that is logged once, and nothing is drawn any more.

    Args:
        read: Returns what to show; ``None``: nothing. It is called in another thread, about once a second.
        console: Where to draw; by default standard error.
        style: ``live``: redrawn in place. ``lines``: only appended to. ``auto``: as with `Live`.

    Raises:
        ValueError: The style is unknown.
        ImportError: A live board needs rich: ``pip install 'thinkwell[cli]'``.
    """

    def __init__(
        self,
        read: Callable[[], BoardState | None],
        *,
        console: Console | None = None,
        style: BoardStyle = "auto",
    ) -> None:
        if style not in get_args(BoardStyle):
            raise ValueError(f'style={style!r}: choose "auto", "live" or "lines"')
        self._read = read
        self._console = console
        self._out = direct(sys.stderr) if console is None else cast("TextIO", console.file)
        terminal = self._out.isatty() if console is None else console.is_terminal
        drawable = terminal and not in_background()
        self._live = choose_style(style, console, terminal=drawable, environ=os.environ) == "live"
        if self._live:
            _check_rich()

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        renderer = Deferred(self._made) if self._live else _BoardLines(self._out, self._read)
        async with showing(_UntilLeft(renderer), self._out):
            yield self

    def _made(self) -> Renderer:
        from thinkwell.progress._board_renderer import BoardRenderer  # needs rich

        return BoardRenderer(self._console or _console(self._out), self._read)


class _UntilLeft(Drawing):
    """Draws until its block is left."""

    def __init__(self, renderer: Renderer) -> None:
        super().__init__((), (), renderer)
        self._over = anyio.Event()


class _BoardLines:
    """Writes a line for each row that has ended, and from time to time one for all.

    Args:
        out: The file.
        read: Returns what to show.
    """

    def __init__(self, out: TextIO, read: Callable[[], BoardState | None]) -> None:
        self._out = out
        self._read = read
        self._told = set[int]()
        self._quiet_since = time.monotonic()

    def draw(self, _runs: Sequence[Shown], /) -> None:
        """Write what has ended."""
        self._write(end=False)

    def finish(self, _runs: Sequence[Shown], /) -> None:
        """Write the rest, and what all has come to."""
        self._write(end=True)

    def suspend(self) -> None:
        """Leave the terminal; there is nothing to do."""

    def resume(self) -> None:
        """Take it back."""

    def _write(self, *, end: bool) -> None:
        state = self._read()
        if state is None:
            return
        lines = [(f"[{row.status}]", row.label, row.text, row.right) for row in ended_rows(state, self._told)]
        now = time.monotonic()
        if end or (not lines and now - self._quiet_since >= QUIET):
            lines.append(("[all]", state.title, state.text, state.right))
        if not lines:
            return
        self._quiet_since = now
        texts = (" ".join(filter(None, map(line, parts))) for parts in lines)
        encoding = self._out.encoding or "utf-8"
        written = "".join(f"{text}\n" for text in texts).encode(encoding, "backslashreplace").decode(encoding)
        self._out.write(written)
        self._out.flush()
