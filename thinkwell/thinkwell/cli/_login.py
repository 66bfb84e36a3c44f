"""``thinkwell login``: log in to an agent, including the choice of a method."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer

import thinkwell
from thinkwell import AuthMethod, LoginRequired
from thinkwell._display.text import line
from thinkwell.agents import AgentProfile
from thinkwell.cli._errors import LOGIN_REQUIRED, told
from thinkwell.cli._launch import chosen_agent
from thinkwell.cli._options import AgentArgument, CommandOption, CwdOption

SEVERAL: Final = 2
"""Number of login methods from which on the user has to choose."""


def login(
    agent: AgentArgument = None,
    method: Annotated[
        str | None,
        typer.Option("--method", metavar="ID", help="The login method, if the agent offers several."),
    ] = None,
    command: CommandOption = None,
    cwd: CwdOption = None,
) -> None:
    """Log in to an agent, and check that it then opens a session.

    If the agent offers several login methods, you choose one; without a terminal they are only listed.

    \b
    Examples:
      thinkwell login claude
      thinkwell login codex --method chat-gpt
      thinkwell login --command "my-agent --acp"
    """
    with told():
        profile = chosen_agent(agent, command)
        own = ["--command", command] if command else []
        again = ["thinkwell", "login", *([agent] if agent else []), *own]
        attempt = partial(_attempt, agent, command=command, cwd=cwd)
        missing = _chosen(anyio.run(attempt, method), method, profile, attempt)
        if missing is not None:
            sys.stderr.write("\n".join(_what_now(missing, profile, again, method)) + "\n")
            raise typer.Exit(LOGIN_REQUIRED)
        sys.stderr.write(f"Logged in: agent {line(profile.name)} opens sessions\n")


def _chosen(
    missing: LoginRequired | None,
    method: str | None,
    profile: AgentProfile,
    attempt: Callable[[str], Awaitable[LoginRequired | None]],
) -> LoginRequired | None:
    """If there are several methods, let the user choose one, and log in; return the remaining problem.

    The choice comes first: nothing was tried before it.
    """
    if missing is None or method is not None or len(missing.methods) < SEVERAL:
        return missing
    chosen = _asked(profile, missing.methods)
    return missing if chosen is None else anyio.run(attempt, chosen)


async def _attempt(
    agent: str | None, method: str | None, *, command: str | None, cwd: Path | None
) -> LoginRequired | None:
    """Log in; return the problem, if this method cannot be used like this."""
    try:
        await thinkwell.login(agent, method, command=command, cwd=cwd)
    except LoginRequired as exc:
        return exc
    return None


def _asked(profile: AgentProfile, methods: Sequence[AuthMethod]) -> str | None:
    """Ask the user for a method; ``None`` without a terminal or an answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    sys.stderr.write(f"Agent {line(profile.name)} offers:\n")
    for number, method in enumerate(methods, 1):
        sys.stderr.write(f"  {number}  {_shown(method)}\n")
    while True:
        sys.stderr.write(f"Which one? [1-{len(methods)}] ")
        sys.stderr.flush()
        said = sys.stdin.readline().strip()
        if not said:
            return None
        for number, method in enumerate(methods, 1):
            if said in (str(number), method.id):
                return method.id


def _what_now(
    error: LoginRequired, profile: AgentProfile, again: Sequence[str], method: str | None
) -> list[str]:
    """Return the lines that explain the missing login, and the next command."""
    who = f"agent {line(profile.name)}"
    several = len(error.methods) >= SEVERAL
    if not error.methods:
        lines = [f"Error: {who} offers no login"]
    elif method is None and several:
        lines = [f"Error: {who} offers several logins, and none was chosen:"]
    elif method is not None and all(method != known.id for known in error.methods):
        lines = [f"Error: {who} offers no login {line(method)!r}, but:"]
    else:
        lines = [f"Error: {who}: {line(error.reason)}. It offers:"]
    lines += [f"  {_shown(known)}" for known in error.methods]
    if error.methods:
        ids = "ID" if several else shlex.quote(line(error.methods[0].id))
        lines.append(f"Next, type: {shlex.join(again)} --method {ids}")
    if profile.login:
        lines.append(f"A login with its own program counts too: {profile.login}")
    return lines


def _shown(method: AuthMethod) -> str:
    kind = " (in this terminal)" if method.type == "terminal" else ""
    about = f": {line(method.description)}" if method.description else ""
    name = f"  {line(method.name)}" if method.name != method.id else ""
    return f"{line(method.id)}{name}{kind}{about}"
