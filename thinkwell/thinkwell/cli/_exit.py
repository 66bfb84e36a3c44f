"""Exit codes of ``thinkwell``, for scripts to tell one end from another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def exit_code(error: BaseException) -> int:
    """Return the exit code for what a command ended by."""
    from thinkwell import errors

    codes: Sequence[tuple[type[BaseException], int]] = (
        (KeyboardInterrupt, INTERRUPTED),
        (BrokenPipeError, BROKEN_PIPE),
        (errors.LoginRequired, LOGIN_REQUIRED),
        (errors.LoginFailed, LOGIN_REQUIRED),
        (errors.ThoughtTimeout, LIMIT),
        (errors.BudgetExceeded, LIMIT),
        (errors.BufferOverflow, LIMIT),
        (errors.RecordingError, UNREADABLE),
        (errors.AgentClosed, NO_AGENT),
        (errors.ThoughtCancelled, INTERRUPTED),
        (errors.PolicyError, WRONG_USAGE),
        (errors.ProfileError, WRONG_USAGE),
        (errors.McpServerError, WRONG_USAGE),
        (errors.SkillError, WRONG_USAGE),
        (errors.AgentError, NO_AGENT),
        (errors.ThinkwellError, NO_RESULT),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), NO_RESULT)
