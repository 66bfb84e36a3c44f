"""`Board`: rows that the program makes itself, drawn as `Live` draws runs."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TextIO, TypeAlias, get_args

import anyio

from thinkwell._display.text import line
from thinkwell.progress._board_state import ended_rows
from thinkwell.progress._drawing import Drawing
from thinkwell.progress._live import output_for
from thinkwell.progress._renderer import Renderer
from thinkwell.progress._showing import showing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from typing import Self

    from rich.console import Console

    from thinkwell.progress._board_state import BoardState
    from thinkwell.progress._renderer import Shown

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
        self._out, _, self._style = output_for(style, console)

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        async with showing(_UntilLeft(self._renderer), self._out):
            yield self

    def _renderer(self) -> Renderer:
        if self._style != "live":
            return _BoardLines(self._out, self._read)
        from rich.console import Console

        from thinkwell.progress._board_renderer import BoardRenderer  # needs rich

        return BoardRenderer(self._console or Console(file=self._out), self._read)


class _UntilLeft(Drawing):
    """Draws until its block is left."""

    def __init__(self, make: Callable[[], Renderer]) -> None:
        super().__init__((), (), make)
        self._over = anyio.Event()


class _BoardLines(Renderer):
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

    def draw(self, _runs: Sequence[Shown], /, *, end: bool = False) -> None:
        """Write what has ended; at the end the rest, and what all has come to."""
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
