"""Writes to a terminal, a pipe or a file without blocking the event loop."""

from __future__ import annotations

import io
import os
import stat
import threading
from contextlib import suppress
from contextvars import copy_context
from typing import Final, TextIO

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from thinkwell._terminal.output import direct

LOOK: Final = 0.05
"""Seconds between checks of a write that nothing waits for any more."""

_POOR: Final = str.maketrans({"┆": "|", "│": "|", "…": "...", "⚠": "!"})
"""For files that know no other characters."""


class Writer:
    """Writes texts, in their order.

    A terminal may block (after Ctrl-S), and so may a pipe without a reader. A daemon thread writes to these,
    so that a blocked write does not keep the program from ending.

    Args:
        out: The file to write to. Characters that it cannot encode are written as escapes.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._may_hang = _may_hang(out)
        self._left: list[str] = []
        self._turn = anyio.Lock()
        self._thread: threading.Thread | None = None

    def put(self, text: str) -> None:
        """Queue a text to be written."""
        self._left.append(text)

    async def flush(self) -> None:
        """Wait until everything is written. A cancelled wait does not cancel the write.

        Raises:
            OSError: It cannot be written.
            ValueError: The file was closed.
        """
        async with self._turn:
            while self._thread is not None and self._thread.is_alive():  # noqa: ASYNC110 - of another loop, maybe
                await anyio.sleep(LOOK)
            text = _encodable("".join(self._left), getattr(self._out, "encoding", None) or "utf-8")
            self._left.clear()
            if not text:
                return
            if self._may_hang:
                await self._write_past_the_buffer(text)
            else:
                self._out.write(text)
                self._out.flush()

    async def _write_past_the_buffer(self, text: str) -> None:
        done = anyio.Event()
        token = current_token()
        failures: list[Exception] = []

        def write() -> None:
            try:
                self._out.flush()
                past = direct(self._out)
                past.write(text)
                past.flush()
            except Exception as exc:
                failures.append(exc)
            with suppress(RuntimeError):  # the event loop has ended, and the waiting task with it
                anyio.from_thread.run_sync(done.set, token=token)

        self._thread = threading.Thread(
            target=copy_context().run, args=(write,), name="thinkwell terminal", daemon=True
        )
        self._thread.start()
        await done.wait()
        self._thread = None
        if failures:
            raise failures[0]


def _may_hang(out: TextIO) -> bool:
    if type(out) is not io.TextIOWrapper:  # another object belongs to the program
        return False
    try:
        mode = os.fstat(out.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode)


def _encodable(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        pass
    except LookupError:
        encoding = "ascii"
    else:
        return text
    return text.translate(_POOR).encode(encoding, "backslashreplace").decode(encoding)
