"""`login`: log in to an agent, for callers who block."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from thinkwell import login as log_in
from thinkwell.sync._loop import hold
from thinkwell.sync._supervisor import async_handlers

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Mapping, Sequence

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
    """Log in to an agent, and return when it opens a session.

    A login of type ``terminal`` runs the agent's own command, with what the agent adds to its arguments and
    variables, in the caller's terminal; Ctrl-C there ends the login, not the caller.

    Args:
        agent: A known agent, as for `open_agent`.
        method: The id of the way to log in; by default the only one that the agent offers.
        command: The command of any other agent, as for `open_agent`.
        env: Variables on top of the caller's environment: the same as those of the work to come.
        cwd: The folder in which the agent works; by default the current one.
        on_question: Who answers what the agent asks in the course of it, such as for a key.
        startup_timeout: Seconds until the agent has answered its first request.

    Raises:
        LoginRequired: It is not clear which way to go, or there is no terminal for it; or it went well, and
            the agent wants a login all the same.
        LoginFailed: It did not work.
        AgentError: The agent could not be started, or opened no session.
        NotADirectoryError: There is no such folder.
        ValueError: An argument contradicts another.
    """

    @asynccontextmanager
    async def logged_in() -> AsyncGenerator[None]:
        await log_in(
            agent,
            method,
            command=command,
            env=env,
            cwd=cwd,
            on_question=async_handlers(on_question),
            startup_timeout=startup_timeout,
        )
        yield

    held, _ = hold(logged_in)
    held.close()
