"""The command, run as a person types it, but in this process."""

from __future__ import annotations

from typing import NamedTuple

from typer.testing import CliRunner

from thinkwell.cli._app import app


class Done(NamedTuple):
    """What came of it."""

    code: int
    out: str
    err: str


def run_command(*arguments: str, stdin: str = "") -> Done:
    """Run ``thinkwell`` with these arguments, without a terminal."""
    result = CliRunner().invoke(app, list(arguments), input=stdin, prog_name="thinkwell")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)
