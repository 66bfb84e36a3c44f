"""`Board`: rows that the program makes itself, drawn as `Live` draws runs."""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TextIO, TypeAlias, cast, get_args

import anyio

from thinkwell._display.text import line
from thinkwell._terminal.output import direct, in_background
from thinkwell.progress._board_state import ended_rows
from thinkwell.progress._drawing import LAST_FRAME_TIMEOUT, TICK, Drawing
from thinkwell.progress._live import _check_rich, _console, choose_style
from thinkwell.progress._renderer import Deferred
from thinkwell.progress._showing import showing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from typing import Self

    from anyio.abc import TaskGroup
    from rich.console import Console

    from thinkwell.progress._board_state import BoardState
    from thinkwell.progress._renderer import Renderer, Shown

BoardStyle: TypeAlias = Literal["auto", "live", "lines"]
"""A style of `Board`."""

QUIET: Final = 30.0
"""Seconds after which the lines say how far all is, if nothing has ended."""

logger = logging.getLogger("thinkwell")


class Board(anyio.AsyncContextManagerMixin):
    """Shows rows that a function returns, while its block is open: ``async with Board(read): …``.

    It looks like `Live` with several runs, and is for work that runs elsewhere. It reads once a second, and a
    last time when the block is left. If the function fails, that is logged once, and the board shows what it
    had.

    Args:
        read: Returns what to show.
        console: Where to draw; by default standard error.
        style: ``live``: redrawn in place. ``lines``: only appended to. ``auto``: as with `Live`.

    Raises:
        ValueError: The style is unknown.
        ImportError: A live board needs rich: ``pip install 'thinkwell[cli]'``.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[BoardState]],
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
        self._state: BoardState | None = None
        """What was read last; `None` until then."""
        self._has_failed = False

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        renderer = Deferred(self._made) if self._live else _BoardLines(self._out, lambda: self._state)
        async with showing(_Polling(self._look, renderer), self._out):
            yield self

    async def _look(self) -> None:
        """Read the state anew."""
        try:
            self._state = await self._read()
        except Exception:
            if not self._has_failed:
                logger.exception("The board is not up to date: its state cannot be read. It is tried again")
            self._has_failed = True

    def _made(self) -> Renderer:
        from thinkwell.progress._board_renderer import BoardRenderer  # needs rich

        return BoardRenderer(self._console or _console(self._out), lambda: self._state)


class _Polling(Drawing):
    """Draws until its block is left.

    Args:
        look: Reads the state anew.
        renderer: Draws it.
    """

    def __init__(self, look: Callable[[], Awaitable[None]], renderer: Renderer) -> None:
        super().__init__((), (), renderer)
        self._look_anew = look
        self._over = anyio.Event()

    def watch(self, tasks: TaskGroup) -> None:
        """Read the state all the time."""
        tasks.start_soon(self._poll)

    async def _poll(self) -> None:
        while True:
            await self._look_anew()
            self.poke()
            await anyio.sleep(TICK)

    async def leave(self) -> None:
        """Read the state a last time, in bounded time, and draw the end."""
        with anyio.move_on_after(LAST_FRAME_TIMEOUT):
            await self._look_anew()
        await super().leave()


class _BoardLines:
    """Writes a line for each row that has ended, and from time to time one for all.

    Args:
        out: The file.
        state: Returns what is shown.
    """

    def __init__(self, out: TextIO, state: Callable[[], BoardState | None]) -> None:
        self._out = out
        self._state = state
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
        state = self._state()
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
