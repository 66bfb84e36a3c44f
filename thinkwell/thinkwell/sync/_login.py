"""`login`: log in to an agent, for callers who block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from thinkwell import login as log_in
from thinkwell.sync._loop import call_once
from thinkwell.sync._supervisor import async_handlers

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from thinkwell.questions import QuestionHandler


def login(
    agent: str | None = None,
    method: str | None = None,
    *,
    command: str | Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    on_question: QuestionHandler | Sequence[QuestionHandler] | None = None,
    startup_timeout: float = 60,
) -> None:
    """Log in to an agent, and return once it opens a session.

    A login of type ``terminal`` runs the agent's own command, with the arguments and variables that the agent
    adds, in your terminal; Ctrl-C there ends the login, not your program.

    Args:
        agent: A known agent, as for `open_agent`.
        method: The id of the login method; by default the only one that the agent offers.
        command: The command of any other agent, as for `open_agent`.
        env: Variables in addition to your environment; use the same for later runs.
        cwd: The folder in which the agent works; by default the current one.
        on_question: Answers the agent's questions during the login, such as for a key.
        startup_timeout: Seconds for the agent to answer its first request.

    Raises:
        LoginRequired: You have to name a method, or it needs a terminal; or the login succeeded, but
            the agent still requires one.
        LoginFailed: The login failed.
        AgentError: The agent could not be started, or opened no session.
        NotADirectoryError: The folder does not exist.
        ValueError: An argument contradicts another.
    """
    call_once(
        partial(
            log_in,
            agent,
            method,
            command=command,
            env=env,
            cwd=cwd,
            on_question=async_handlers(on_question),
            startup_timeout=startup_timeout,
        )
    )
