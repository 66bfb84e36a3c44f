"""What a command says on standard error when it ends by an error, and its exit code."""

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
"""The run has ended without a valid result."""
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
"""128 and the number of the signal, as shells have it."""
BROKEN_PIPE: Final = 141
"""The same for a writer whose reader has gone."""

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
"""The exit codes of errors. The first that fits counts."""

MISSING: Final = """\
`thinkwell {command}` needs {name}, which is not installed. Install what it needs:

    {python} -m pip install 'thinkwell[{extra}]'
"""


def exit_code(error: BaseException) -> int:
    """Return the exit code for what a command ended by."""
    return next((code for kind, code in CODES.items() if isinstance(error, kind)), NO_RESULT)


@contextmanager
def told() -> Generator[None]:
    """Tell of an error of ours that ends the block, and end the command with the exit code for it."""
    silence_logs()
    try:
        yield
    except ThinkwellError as exc:
        tell(exc)
        raise typer.Exit(exit_code(exc)) from None


@contextmanager
def ended() -> Generator[None]:
    """End any command that Ctrl-C has reached, or whose reader or disk takes no more."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # at the exit of Python it would be too late to tell
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
    """Where something that a command needs is not installed, say what to install, and end the command.

    Args:
        command: The command.
        extras: What may be missing, and the extra of ours that brings it.
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
    """Return whether an error is one of the world's, whose words are enough, and not a mistake of ours."""
    return isinstance(error, ThinkwellError | OSError)


def tell(error: BaseException, *, displayed: bool = False) -> None:
    """Write what happened, and what to do next, to standard error.

    Args:
        error: What happened.
        displayed: Whether a display has said that already, so that only what to type is left to say.
    """
    what, next_ = words(error)
    lines = [advice(error)] if displayed else [f"Error: {what}", next_]
    with suppress(OSError):  # the exit code tells too
        sys.stderr.write(clean("".join(f"{line}\n" for line in lines if line)))
        sys.stderr.flush()


def words(error: BaseException) -> tuple[str, str]:
    """Return what happened, and what to do next; empty where that is not known."""
    from thinkwell._display.summary import error_words  # it takes time, and the help needs none of it

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
    """Return what to type next, where errors say it for programs, or not at all."""
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
            return "Next: give a larger --max-tokens or --max-cost to go on"
        case errors.ResultMissing() if error.denied:
            return "Next: allow what it needs by --permissions"
        case _:
            return ""


def _login(agent: str) -> str:
    return (
        f"thinkwell login {agent}" if _is_known(agent) else 'thinkwell login --command "…", with its command'
    )


def _is_known(agent: str) -> bool:
    """Return whether an agent can be named, and was not started by its command."""
    from thinkwell.agents import find_agent  # the help does not wait for it

    try:
        find_agent(agent)
    except ThinkwellError:
        return False
    return True


def stop_writing(stream: TextIO) -> None:
    """Forget what a standard stream does not take, as its reader is gone or its disk full.

    At the exit it would fail once more, and Python ends with a code of its own then.
    """
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
