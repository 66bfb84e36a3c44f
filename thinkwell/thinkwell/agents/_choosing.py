"""Choose the agent to start, by name, by command or from the environment; and build its environment."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from thinkwell.agents._profile import AgentProfile, Program
from thinkwell.agents._sources import builtin_agent, find_agent
from thinkwell.errors import AgentNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMAND_VARIABLE: Final = "THINKWELL_AGENT_CMD"
"""Environment variable with the command of the agent to use."""

NAME_VARIABLE: Final = "THINKWELL_AGENT"
"""Environment variable with the name of the agent to use."""

TRACE_VARIABLE: Final = "THINKWELL_TRACE"
"""Environment variable with the folder where agents that are opened without ``record=`` are recorded."""

GUARDS: Final = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
"""Variables by which agents notice that they run inside another agent, and refuse. Never passed on."""

_PYTHON: Final = re.compile(r"python[\d.]*(\.exe)?")
_MODULE_OR_TEXT: Final = re.compile(r"-[^cmWX-]*([cm])(.*)", re.DOTALL)
"""Python's options, alone or after others, that name what to run. The arguments after it are the
program's."""

_FETCHERS: Final = re.compile(r"(npx|uvx)(\.exe|\.cmd)?")


def choose(agent: str | AgentProfile | None, command: str | Sequence[str] | None) -> AgentProfile:
    """Return the agent that the arguments name, else the one of the environment, else the built-in one.

    With both an agent and a command, the command starts that agent.

    Raises:
        AgentNotFound: No known agent has that name.
        ProfileError: Its profile cannot be read.
        ValueError: Both a version and a command are given, or the command is empty or cannot be split.
    """
    words = None if command is None else _words_of(command, "open_agent(command=…)")
    if isinstance(agent, str) and "@" in agent and words is not None:
        raise ValueError(f"open_agent({agent!r}, command=…): the command says which version; leave @… out")
    if agent is not None:
        profile = agent if isinstance(agent, AgentProfile) else find_agent(agent)
        return profile if words is None else profile.started_by(words)
    if words is not None:
        return _of_command(words)
    if line := os.environ.get(COMMAND_VARIABLE):
        return _of_command(_words_of(line, f"the environment variable {COMMAND_VARIABLE}"))
    if wanted := os.environ.get(NAME_VARIABLE):
        try:
            return find_agent(wanted)
        except AgentNotFound as exc:
            reason = f"{exc.reason}. The name comes from the environment variable {NAME_VARIABLE}"
            raise AgentNotFound(wanted, reason) from exc
    return builtin_agent()


def _words_of(command: str | Sequence[str], source: str) -> list[str]:
    try:
        words = shlex.split(command, posix=os.name == "posix") if isinstance(command, str) else list(command)
    except ValueError as exc:
        raise ValueError(f"{source}: {exc}; close the quotes, or give a list of words") from exc
    if not words:
        raise ValueError(f"{source}: the command is empty")
    if isinstance(command, str):
        with suppress(RuntimeError):  # pathlib finds no home folder of this user
            words = [str(Path(word).expanduser()) if word.startswith("~/") else word for word in words]
    return words


def _of_command(words: Sequence[str]) -> AgentProfile:
    return AgentProfile(name=_name_of(words), program=Program(command=tuple(words)))


def _name_of(words: Sequence[str]) -> str:
    """Return a name for an agent that has none: the script or module rather than the interpreter."""
    program = Path(words[0]).name
    name = ""
    if _PYTHON.fullmatch(program):
        name = _run_by_python(words[1:])
    elif _FETCHERS.fullmatch(program):
        package = next((word for word in words[1:] if not word.startswith("-")), "")
        name = package.rpartition("/")[2].partition("@")[0]
    return name or program


def _run_by_python(arguments: Sequence[str]) -> str:
    """Return the module or script that Python runs, or ``""`` if it is not a file."""
    words = iter(arguments)
    for word in words:
        if not word.startswith("-"):
            return Path(word).name
        if word in ("-W", "-X"):
            next(words, None)
        elif found := _MODULE_OR_TEXT.fullmatch(word):
            return (found[2] or next(words, "")) if found[1] == "m" else ""
    return ""


def environment(profile: AgentProfile | None, extra: Mapping[str, str] | None) -> dict[str, str]:
    """Return the agent's environment: the caller's without guards, the profile's variables, then `extra`."""
    inherited = {key: value for key, value in os.environ.items() if key not in GUARDS}
    if profile is None:
        return {**inherited, **(extra or {})}
    if profile.binary is not None:
        from thinkwell.agents._registry import platform_name  # only for downloaded agents

        archive = profile.binary.archives.get(platform_name())
        inherited |= {} if archive is None else archive.env
    return {**profile.env.applied(inherited), **(extra or {})}
