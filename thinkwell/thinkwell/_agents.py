"""Agents known by name: how to start them, and what else there is to know."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell.errors import AgentNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from thinkwell._tooling import Way

COMMAND_VARIABLE: Final = "THINKWELL_AGENT_CMD"
"""Environment variable with the command of the agent to use."""

NAME_VARIABLE: Final = "THINKWELL_AGENT"
"""Environment variable with the name of the agent to use."""

TRACE_VARIABLE: Final = "THINKWELL_TRACE"
"""Environment variable with a folder in which each agent that is opened without ``record=`` is recorded."""

GUARDS: Final = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
"""Variables by which agents notice that they run inside of another one, and refuse. Never passed on."""


class Profile(Struct, frozen=True, kw_only=True):
    """What is known of an agent."""

    name: str
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    """Variables that it needs."""
    way: Way | None = None
    """The way for our tools, where it is not the plainest that the agent advertises."""
    install: str = ""
    """What to do where the program is missing."""


_NODE: Final = "it needs Node.js, whose program npx fetches it"

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile(name="builtin", command=(sys.executable, "-P", "-m", "thinkwell.builtin")),
        Profile(
            name="claude",
            command=("npx", "--yes", "@agentclientprotocol/claude-agent-acp"),
            # With that search, the model does not see the schemas of our tools at once.
            env=(("ENABLE_TOOL_SEARCH", "0"),),
            install=_NODE,
        ),
        Profile(name="codex", command=("npx", "--yes", "@agentclientprotocol/codex-acp"), install=_NODE),
        Profile(name="gemini", command=("npx", "--yes", "@google/gemini-cli", "--acp"), install=_NODE),
        Profile(name="opencode", command=("npx", "--yes", "opencode-ai", "acp"), install=_NODE),
    )
}


def find(agent: str | None, command: str | Sequence[str] | None) -> Profile:
    """Return which agent to start: as the arguments say, else as the environment does, else the built-in one.

    Raises:
        AgentNotFound: No agent of that name is known.
        ValueError: Both a name and a command are given, or the command is empty or cannot be split.
    """
    if agent is not None and command is not None:
        raise ValueError(f"open_agent({agent!r}, command=…): give a name or a command, not both")
    if command is not None:
        return _of_command(command, "open_agent(command=…)")
    if agent is not None:
        return _of_name(agent, "")
    if line := os.environ.get(COMMAND_VARIABLE):
        return _of_command(line, f"the environment variable {COMMAND_VARIABLE}")
    if name := os.environ.get(NAME_VARIABLE):
        return _of_name(name, f". The name comes from the environment variable {NAME_VARIABLE}")
    return PROFILES["builtin"]


def _of_command(command: str | Sequence[str], source: str) -> Profile:
    try:
        words = shlex.split(command, posix=os.name == "posix") if isinstance(command, str) else list(command)
    except ValueError as exc:
        raise ValueError(f"{source}: {exc}; close the quotes, or give a list of words") from exc
    if not words:
        raise ValueError(f"{source}: the command is empty")
    return Profile(name=Path(words[0]).name, command=tuple(words))


def _of_name(name: str, source: str) -> Profile:
    if name not in PROFILES:
        known = ", ".join(sorted(PROFILES))
        raise AgentNotFound(
            name,
            f"no agent of that name is known (known: {known}). "
            f'For another: open_agent(command=["program", "arg"]){source}',
        )
    return PROFILES[name]


def environment(profile: Profile, extra: Mapping[str, str] | None) -> dict[str, str]:
    """Return the environment for an agent: the caller's without guards, its own needs, what is asked for."""
    inherited = {key: value for key, value in os.environ.items() if key not in GUARDS}
    return {**inherited, **dict(profile.env), **(extra or {})}
