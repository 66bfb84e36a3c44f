"""What a command says when it ends by an error: on standard error, in words for who typed it."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from thinkwell.cli._exit import BROKEN_PIPE, INTERRUPTED, NO_RESULT, exit_code
from thinkwell.cli._terminal import silence_logs

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import TextIO


@contextmanager
def told() -> Generator[None]:
    """Tell of an error of ours that ends the block, and end the command with the exit code for it."""
    silence_logs()
    from thinkwell.errors import ThinkwellError

    try:
        yield
    except ThinkwellError as exc:
        tell(exc)
        raise typer.Exit(exit_code(exc)) from None


@contextmanager
def ended() -> Generator[None]:
    """End any command that Ctrl-C has reached, or whose reader or disk takes no more.

    It loads nothing before that happens: the help is within it.
    """
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


def is_expected(error: BaseException) -> bool:
    """Return whether an error is one of the world's, whose words are enough, and not a mistake of ours."""
    from thinkwell.errors import ThinkwellError

    return isinstance(error, ThinkwellError | OSError)


def tell(error: BaseException, *, displayed: bool = False) -> None:
    """Write what happened, and what to do next, to standard error.

    Args:
        error: What happened.
        displayed: Whether a display has said that already, so that only what to type is left to say.
    """
    from thinkwell._display.text import clean

    what, next_ = words(error)
    lines = [advice(error)] if displayed else [f"Error: {what}", next_]
    with suppress(OSError):  # the exit code tells too
        sys.stderr.write(clean("".join(f"{line}\n" for line in lines if line)))
        sys.stderr.flush()


def words(error: BaseException) -> tuple[str, str]:
    """Return what happened, and what to do next; empty where that is not known."""
    from thinkwell._display.summary import error_words
    from thinkwell.errors import AgentNotFound

    if isinstance(error, AgentNotFound):
        reason = error.reason.partition(" (known: ")[0]  # forty names
        reason = reason.partition(" For another: ")[0].rstrip(".;")
        return f"Agent {error.agent!r} was not found: {reason}", advice(error)
    missing = isinstance(error, FileNotFoundError | NotADirectoryError) and error.filename is None
    if missing and not _is_somewhere():
        return "The current folder is not there any more. Go to another", ""  # pragma: no cover - as below
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
    from thinkwell import errors

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
    from thinkwell.agents import find_agent
    from thinkwell.errors import ThinkwellError

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
