"""``thinkwell login``: log in to an agent, including the choice of a method."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
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
        log_in = partial(thinkwell.login, agent, command=command, cwd=cwd)
        try:
            try:
                anyio.run(log_in, method)
            except LoginRequired as exc:
                # The choice comes first: nothing was tried before it.
                undecided = method is None and len(exc.methods) >= SEVERAL
                chosen = _asked(profile, exc.methods) if undecided else None
                if chosen is None:
                    raise
                anyio.run(log_in, chosen)
        except LoginRequired as exc:
            own = ["--command", command] if command else []
            again = ["thinkwell", "login", *([agent] if agent else []), *own]
            sys.stderr.write("\n".join(_what_now(exc, profile, again, method)) + "\n")
            raise typer.Exit(LOGIN_REQUIRED) from None
        sys.stderr.write(f"Logged in: agent {line(profile.name)} opens sessions\n")


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
