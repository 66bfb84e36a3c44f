"""`login`: log in to an agent, in the terminal if it requires that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell._core.agent.open_agent import open_agent
from thinkwell._values.folders import existing_folder
from thinkwell.agents._choosing import choose, environment
from thinkwell.agents._profile import advising
from thinkwell.errors import LoginFailed, LoginRequired, _how_it_ended

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from thinkwell._core.agent.agent_handle import Agent
    from thinkwell.errors import AuthMethod
    from thinkwell.questions import QuestionHandler


async def login(
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
    profile = choose(agent, command)
    folder = existing_folder(cwd or ".", "login(cwd=…)")

    def opened() -> AbstractAsyncContextManager[Agent]:
        return open_agent(
            agent,
            command=command,
            env=env,
            cwd=folder,
            permissions="deny" if on_question is None else "ask",
            on_question=on_question,
            startup_timeout=startup_timeout,
        )

    with advising(profile):
        async with opened() as running:
            name = running.name
            chosen = _choose(name, running.auth_methods, method)
            if chosen.type == "agent":
                await running.authenticate(chosen.id)
                await _check(running, chosen)
                return
        # The agent does not run during its login: it reads the result when it starts again.
        await _log_in_here(name, chosen, environment(profile, env), folder)
        async with opened() as running:
            await _check(running, chosen)


def _choose(agent: str, methods: Sequence[AuthMethod], wanted: str | None) -> AuthMethod:
    """Return the method to use.

    Raises:
        LoginRequired: The method does not exist, or there are several.
    """
    matching = [method for method in methods if wanted in (None, method.id)]
    if len(matching) == 1:
        return matching[0]
    what = "without a method" if wanted is None else f"method {wanted!r}"
    raise LoginRequired(agent, methods, f"login({what}): {'choose one' if matching else 'there is none'}")


async def _log_in_here(agent: str, method: AuthMethod, env: Mapping[str, str], folder: str) -> None:
    """Run a login command in the caller's terminal.

    The program is the one that was started as the agent: an agent cannot name another. It may set any
    variable for it, even ``PATH`` or ``LD_PRELOAD``, as the protocol says. That gives it no power that the
    same program, with the same rights, did not have when it ran as the agent.

    Raises:
        LoginRequired: A terminal is required and missing.
        LoginFailed: The login failed.
    """
    from thinkwell._terminal.foreground import in_foreground, run_in_foreground  # few agents need it

    if not in_foreground():
        why = f"the login {method.id!r} needs a terminal in the foreground, and standard input is not one"
        raise LoginRequired(agent, (method,), why)
    try:
        exit_code = await run_in_foreground(method.command, env={**env, **method.env}, cwd=folder)
    except (OSError, ValueError) as exc:
        raise LoginFailed(agent, method.id, f"its command cannot be started: {exc}") from exc
    if exit_code != 0:
        raise LoginFailed(agent, method.id, f"its command {_how_it_ended(exit_code)}", exit_code)


async def _check(agent: Agent, method: AuthMethod) -> None:
    """Open a session and close it again.

    Raises:
        LoginRequired: The agent still requires a login.
    """
    try:
        async with agent.session():
            pass
    except LoginRequired as exc:
        raise LoginRequired(exc.agent, exc.methods, f"after the login {method.id!r}, {exc.reason}") from exc
