"""The command, run as a person types it, but in this process."""

from __future__ import annotations

import ctypes
import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from typer.testing import CliRunner

from thinkwell.cli._app import app
from thinkwell.cli._serve_privacy import PR_SET_DUMPABLE

if TYPE_CHECKING:
    from collections.abc import Generator


class Done(NamedTuple):
    """What came of it."""

    code: int
    out: str
    err: str


def run_command(*arguments: str, stdin: str = "") -> Done:
    """Run ``thinkwell`` with these arguments, without a terminal."""
    with _process_as_before():
        result = CliRunner().invoke(app, list(arguments), input=stdin, prog_name="thinkwell")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


@contextmanager
def _process_as_before() -> Generator[None]:
    """Undo what a program does to the logs and to its own process, which ends with it."""
    loggers = [logging.getLogger(name) for name in ("thinkwell", "uvicorn.error")]
    before = [(logger.level, tuple(logger.handlers)) for logger in loggers]
    try:
        yield
    finally:
        for logger, (level, handlers) in zip(loggers, before, strict=True):
            logger.setLevel(level)
            for handler in set(logger.handlers) - set(handlers):
                logger.removeHandler(handler)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
