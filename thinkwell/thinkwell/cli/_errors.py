"""What a command says when it ends by an error: on standard error, in words for who typed it."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from thinkwell.cli._exit import BROKEN_PIPE, INTERRUPTED, exit_code
from thinkwell.cli._terminal import silence_logs

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def told() -> Generator[None]:
    """Tell of an error that ends the block, and end the command with the exit code for it."""
    silence_logs()
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # pragma: no cover - tested; which lines are traced in it depends on the reader
        stop_writing()
        raise typer.Exit(BROKEN_PIPE) from None
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as exc:
        if not is_expected(exc):
            raise
        code = exit_code(exc)
        if code != INTERRUPTED:  # who has typed Ctrl-C knows
            tell(exc)
        raise typer.Exit(code) from None


def is_expected(error: BaseException) -> bool:
    """Return whether an error is one of the world's, whose words are enough, and not a mistake of ours."""
    from thinkwell.errors import ThinkwellError

    return isinstance(error, ThinkwellError | OSError)


def tell(error: BaseException, *, displayed: bool = False) -> None:
    """Write what happened, and what to type next, to standard error.

    Args:
        error: What happened.
        displayed: Whether a display has said that already, so that only what to type is left to say.
    """
    from thinkwell._display.text import clean

    what, advice = words(error)
    lines = [*([] if displayed else [f"Error: {what}"]), *([advice] if advice else [])]
    sys.stderr.write(clean("".join(f"{line}\n" for line in lines)))
    sys.stderr.flush()


def words(error: BaseException) -> tuple[str, str]:
    """Return what happened, and what to do next; empty where the first says that too.

    The errors' own words are for programs. Here the next step is something to type.
    """
    from thinkwell import errors

    match error:
        case errors.LoginRequired():
            offered = ", ".join(method.id for method in error.methods)
            ways = f" It offers: {offered}." if offered else ""
            return (
                f"Agent {error.agent!r}: {error.reason}.{ways}",
                f"Next, type: thinkwell login {error.agent}",
            )
        case errors.AgentNotFound():
            reason, more, _ = error.reason.partition(" (known: ")  # forty names
            reason = reason.partition(" For another: ")[0].rstrip(".;")
            next_ = error.next_command or ("thinkwell agents" if more else "")
            return f"Agent {error.agent!r} was not found: {reason}", next_ and f"Next, type: {next_}"
        case errors.ThoughtTimeout(idle=True):
            what = f"Nothing was heard of the agent for {error.seconds:g} seconds, and the run was cancelled"
            return what, "Give a longer --idle-timeout where it needs that"
        case errors.ThoughtTimeout():
            return str(error), "Give a longer --timeout where it needs that"
        case errors.BudgetExceeded():
            used = f"{error.spent:g} of {error.limit:g} {error.what.replace('_', ' ')}"
            return (
                f"The run has used up what it may: {used}",
                "Give a larger --max-tokens or --max-cost to go on",
            )
        case errors.ResultMissing() if error.denied:
            return str(error).replace("`permissions=`", "--permissions"), ""
        case errors.AgentStartFailed():
            return str(error), f"To see more, type: thinkwell doctor {error.agent}"
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}", ""
        case _:
            return str(error), ""


def stop_writing() -> None:
    """Let nothing more be written to standard output, whose reader is gone: not at the exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
