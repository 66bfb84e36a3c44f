"""Error messages of commands on standard error, and their exit codes."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from thinkwell import errors
from thinkwell._display.text import clean
from thinkwell.cli._process import silence_logs
from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import TextIO

OK: Final = 0
NO_RESULT: Final = 1
"""The run ended without a valid result."""
WRONG_USAGE: Final = 2
"""The arguments cannot be used; nothing was started. Typer uses it too."""
NO_AGENT: Final = 3
"""The agent was not found, did not start, died, or answered with an error."""
LOGIN_REQUIRED: Final = 4
LIMIT: Final = 5
"""A limit was reached: time, silence, tokens, cost."""
UNREADABLE: Final = 6
"""A recording cannot be read, or ends before its run does."""
INTERRUPTED: Final = 130
"""128 and the number of the signal, as in shells."""
BROKEN_PIPE: Final = 141
"""The same if the reader of the output has gone."""

CODES: Final[Mapping[type[BaseException], int]] = {
    KeyboardInterrupt: INTERRUPTED,
    BrokenPipeError: BROKEN_PIPE,
    errors.LoginRequired: LOGIN_REQUIRED,
    errors.LoginFailed: LOGIN_REQUIRED,
    errors.ThoughtTimeout: LIMIT,
    errors.BudgetExceeded: LIMIT,
    errors.BufferOverflow: LIMIT,
    errors.RecordingError: UNREADABLE,
    errors.AgentClosed: NO_AGENT,
    errors.ThoughtCancelled: INTERRUPTED,
    errors.PolicyError: WRONG_USAGE,
    errors.ProfileError: WRONG_USAGE,
    errors.McpServerError: WRONG_USAGE,
    errors.SkillError: WRONG_USAGE,
    errors.AgentError: NO_AGENT,
    errors.ThinkwellError: NO_RESULT,
}
"""The exit codes of errors. The first match counts."""

MISSING: Final = """\
`thinkwell {command}` needs {name}, which is not installed. Install what it needs:

    {python} -m pip install 'thinkwell[{extra}]'
"""


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    return next((code for kind, code in CODES.items() if isinstance(error, kind)), NO_RESULT)


@contextmanager
def told() -> Generator[None]:
    """Report an expected error that ends the block, and end the command with its exit code."""
    silence_logs()
    try:
        yield
    except ThinkwellError as exc:
        tell(exc)
        raise typer.Exit(exit_code(exc)) from None


@contextmanager
def ended() -> Generator[None]:
    """End any command after Ctrl-C, or if the reader or disk of its output takes no more."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # when Python exits, it is too late for a message
    except BrokenPipeError:  # pragma: no cover - tested; which lines are traced in it depends on the reader
        stop_writing(sys.stdout)
        raise typer.Exit(BROKEN_PIPE) from None
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise typer.Exit(INTERRUPTED) from None
    except OSError as exc:
        tell(exc)
        stop_writing(sys.stdout)
        raise typer.Exit(NO_RESULT) from None


@contextmanager
def needing(command: str, extras: Mapping[str, str]) -> Generator[None]:
    """If a package that a command needs is missing, say what to install, and end the command.

    Args:
        command: The command.
        extras: The packages that may be missing, each with our extra that installs it.
    """
    try:
        yield
    except ImportError as exc:
        name = (exc.name or "").partition(".")[0]
        if name not in extras:
            raise
        sys.stderr.write(
            MISSING.format(command=command, name=name, python=sys.executable, extra=extras[name])
        )
        raise typer.Exit(WRONG_USAGE) from None


def is_expected(error: BaseException) -> bool:
    """Return whether an error is expected, so that its message is enough, and not a bug of ours."""
    return isinstance(error, ThinkwellError | OSError)


def tell(error: BaseException, *, displayed: bool = False) -> None:
    """Write the error, and what to do next, to standard error.

    Args:
        error: The error.
        displayed: Whether a display has shown the error, so that only the next step is missing.
    """
    what, next_ = words(error)
    lines = [advice(error)] if displayed else [f"Error: {what}", next_]
    with suppress(OSError):  # the exit code is enough
        sys.stderr.write(clean("".join(f"{line}\n" for line in lines if line)))
        sys.stderr.flush()


def words(error: BaseException) -> tuple[str, str]:
    """Return the message, and what to do next; empty if unknown."""
    from thinkwell._display.summary import error_words  # a slow import that the help does not need

    if isinstance(error, errors.AgentNotFound):
        reason = error.reason.partition(" (known: ")[0]  # forty names
        reason = reason.partition(" For another: ")[0].rstrip(".;")
        return f"Agent {error.agent!r} was not found: {reason}", advice(error)
    missing = isinstance(error, FileNotFoundError | NotADirectoryError) and error.filename is None
    if missing and not _is_somewhere():
        return "The current folder does not exist any more. Go to another", ""  # pragma: no cover - as below
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}", ""
    told = error_words(error)
    what = f"{told.what}\n{told.detail}" if told.detail else told.what
    return what, advice(error) or (f"Next: {told.next}" if told.next else "")


def _is_somewhere() -> bool:  # pragma: no cover - tested; nothing is measured where there is no folder
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def advice(error: BaseException) -> str:
    """Return the next step, if the error gives it only for programs, or not at all."""
    match error:
        case errors.LoginRequired() | errors.LoginFailed():
            return f"Next, type: {_login(error.agent)}"
        case errors.AgentNotFound():
            next_ = error.next_command or ("thinkwell agents" if " (known: " in error.reason else "")
            return next_ and f"Next, type: {next_}"
        case errors.AgentStartFailed():
            return f"Next, type: thinkwell doctor {error.agent}" if _is_known(error.agent) else ""
        case errors.ThoughtTimeout():
            option = "--idle-timeout" if error.idle else "--timeout"
            return f"Next: give a longer {option} where it needs that"
        case errors.BudgetExceeded():
            return "Next: give a larger --max-tokens or --max-cost to continue"
        case errors.ResultMissing() if error.denied:
            return "Next: allow what it needs by --permissions"
        case _:
            return ""


def _login(agent: str) -> str:
    return (
        f"thinkwell login {agent}" if _is_known(agent) else 'thinkwell login --command "…", with its command'
    )


def _is_known(agent: str) -> bool:
    """Return whether an agent is known by name, and was not started by its command."""
    from thinkwell.agents import find_agent  # a slow import that the help does not need

    try:
        find_agent(agent)
    except ThinkwellError:
        return False
    return True


def stop_writing(stream: TextIO) -> None:
    """Drop the buffered text of a standard stream whose reader is gone or whose disk is full.

    Otherwise it would fail again at exit, and Python would use its own exit code.
    """
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
