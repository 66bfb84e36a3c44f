"""The command, run as a person types it, but in this process."""

from __future__ import annotations

import ctypes
import io
import logging
import runpy
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import TextIO

PR_SET_DUMPABLE = 4
"""What to tell the kernel (Linux, prctl(2))."""


class Done(NamedTuple):
    """What came of it."""

    code: int
    out: str
    err: str


def run_command(*arguments: str, stdin: str = "") -> Done:
    """Run ``thinkwell`` with these arguments, without a terminal."""
    given, out, err = (io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (stdin.encode(), b"", b""))
    return Done(run_with((given, out, err), *arguments), *(_text(stream) for stream in (out, err)))


def run_with(streams: tuple[TextIO, TextIO, TextIO], *arguments: str) -> int:
    """Run ``thinkwell`` with these streams and arguments, and return its exit code."""
    code: object = 0
    with _process_as_before():
        sys.argv = ["thinkwell", *arguments]
        sys.stdin, sys.stdout, sys.stderr = streams
        try:
            runpy.run_module("thinkwell", run_name="__main__", alter_sys=False)
        except SystemExit as exc:
            code = exc.code
    assert isinstance(code, int), code
    return code


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


@contextmanager
def _process_as_before() -> Generator[None]:
    """Undo what a program does to its own process, which ends with it."""
    loggers = [logging.getLogger(name) for name in ("thinkwell", "uvicorn.error")]
    before = [(logger.level, tuple(logger.handlers)) for logger in loggers]
    given = sys.argv, sys.stdin, sys.stdout, sys.stderr, sys.excepthook
    try:
        yield
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr, sys.excepthook = given
        for logger, (level, handlers) in zip(loggers, before, strict=True):
            logger.setLevel(level)
            for handler in set(logger.handlers) - set(handlers):
                logger.removeHandler(handler)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
