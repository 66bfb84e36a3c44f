"""``python -m thinkwell.agents``: list the known agents, show one, update the copy of the registry."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import msgspec
from msgspec.structs import replace

from thinkwell.agents import find_agent, known_agents, update_agents
from thinkwell.agents._preparing import is_installed
from thinkwell.agents._registry import platform_name
from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from thinkwell.agents import AgentProfile, RegistryUpdate
    from thinkwell.events import OptionChoice

FindModels: TypeAlias = "Callable[[AgentProfile], Awaitable[Sequence[OptionChoice] | str]]"
"""Starts an agent, and returns the models that it offers, or why they are unknown."""


def main(
    arguments: Sequence[str] | None = None,
    *,
    prog: str = "python -m thinkwell.agents",
    find_models: FindModels | None = None,
) -> int:
    """Run the command line, and return the exit code: 0, 1 after a failure, 2 for wrong usage.

    Args:
        arguments: ``sys.argv[1:]`` by default.
        prog: The program's name in messages.
        find_models: Finds the models of an installed agent; by default no models are shown.
    """
    parser = argparse.ArgumentParser(prog=prog, description="The agents that open_agent(NAME) can start.")
    parser.set_defaults(name=None, json=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    listing = commands.add_parser("list", help="list them (the default)")
    showing = commands.add_parser("show", help="show the whole profile of one, and its files")
    showing.add_argument("name", metavar="NAME", help="such as claude, or claude@latest")
    for command in (listing, showing):
        command.add_argument("--json", action="store_true", help="as JSON")
    updating = commands.add_parser("update", help="fetch the public registry of agents")
    updating.add_argument("source", nargs="?", help="a file or an address, instead of the official one")
    given = parser.parse_args(arguments)
    try:
        if given.command == "update":
            print(_news(anyio.run(update_agents, given.source)))
        elif given.name:
            facts = anyio.run(_find_facts, find_agent(given.name), find_models)
            print(_json([facts]) if given.json else _all_of(facts))
        else:
            found = anyio.run(_find_installed, [find_agent("builtin"), *known_agents()])
            print(_json(found) if given.json else _table(found))
    except (ThinkwellError, NotADirectoryError) as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


def _news(update: RegistryUpdate) -> str:
    lines = [f"{update.total} agents of {update.source} are in {update.path}"]
    lines += [f"new      {id_}" for id_ in update.added]
    lines += [f"changed  {change.id}: {change.before} to {change.after}" for change in update.changed]
    lines += [f"gone     {id_}" for id_ in update.removed]
    lines += [f"skipped  {entry.id}: {entry.reason}" for entry in update.skipped]
    return "\n".join(lines)


class _Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A profile, and what was found on this machine."""

    profile: AgentProfile
    installed: bool
    models: Sequence[OptionChoice] | str | None = None
    """The models that it offers, or why they are unknown; ``None``: not looked up."""

    def to_builtins(self) -> dict[str, Any]:
        """Return the profile and the findings as JSON values."""
        told = {**msgspec.to_builtins(self.profile), "installed": self.installed}
        if self.models is None:
            return told
        return {**told, "models": None if isinstance(self.models, str) else msgspec.to_builtins(self.models)}


async def _find_installed(profiles: Sequence[AgentProfile]) -> list[_Facts]:
    """Look for all agents at once: for some, another program is started."""
    try:
        here, found = str(Path.cwd()), dict[str, bool]()
    except FileNotFoundError:
        gone = "the current folder has been deleted; change to one that exists"
        raise NotADirectoryError(gone) from None

    async def look(profile: AgentProfile) -> None:
        found[profile.name] = await is_installed(profile, here)

    async with anyio.create_task_group() as tasks:
        for profile in profiles:
            tasks.start_soon(look, profile)
    return [_Facts(profile=profile, installed=found[profile.name]) for profile in profiles]


async def _find_facts(profile: AgentProfile, find_models: FindModels | None) -> _Facts:
    (facts,) = await _find_installed([profile])
    if find_models is None:
        return facts
    if facts.installed:
        return replace(facts, models=await find_models(profile))
    return replace(facts, models=f"it is not installed; `thinkwell doctor {profile.name}` does that")


def _json(found: Sequence[_Facts]) -> str:
    return msgspec.json.format(msgspec.json.encode([one.to_builtins() for one in found]), indent=2).decode()


def _table(found: Sequence[_Facts]) -> str:
    name = max(len(one.profile.name) for one in found)
    title = max(len(one.profile.title) for one in found)
    return "\n".join(
        f"{one.profile.name:{name}}  {one.profile.title:{title}}  {'installed' if one.installed else '':9}  "
        f"{_command(one.profile)}"
        for one in found
    )


def _models(facts: _Facts) -> str:
    """Return the models of an agent as text."""
    if facts.models is None or isinstance(facts.models, str):
        return f"not known: {facts.models}" if facts.models else ""
    names = [
        model.value + (f" ({model.name})" if model.name != model.value else "") for model in facts.models
    ]
    return "\n           ".join(names) or "it offers no choice"


def _command(profile: AgentProfile) -> str:
    return shlex.join(profile.command) or f"a program of version {profile.version}, which is downloaded"


def _download_of(profile: AgentProfile) -> str:
    """Return the address of an archive for this machine."""
    if profile.binary is None:
        return ""
    archive = profile.binary.archives.get(platform_name())
    if archive is None:
        return f"nothing for {platform_name()}"
    return f"{archive.archive} ({'sha256 ' + archive.sha256 if archive.sha256 else 'without a checksum'})"


def _all_of(known: _Facts) -> str:
    profile = known.profile
    install = "" if profile.program is None else profile.program.install
    facts = {
        "website": profile.website,
        "command": _command(profile),
        "install": install,
        "download": _download_of(profile),
        "version": profile.version or "as you have installed it",
        "installed": "yes" if known.installed else "no",
        "models": _models(known),
        "login": profile.login,
        "sets": shlex.join(f"{name}={value}" for name, value in profile.env.set.items()),
        "strips": ", ".join(profile.env.strip),
        "tools via": ", ".join(profile.tools_via),
        "from": "\n           ".join(profile.files),
    }
    lines = [f"{profile.name}: {profile.title}" if profile.title else profile.name]
    lines += [f"{what:9}  {fact}" for what, fact in facts.items() if fact]
    for quirk in profile.quirks:
        lines.append(f"{'quirk':9}  {quirk.about} ({quirk.version}, {quirk.seen})")
    for error in profile.errors:
        lines.append(f"{'error':9}  {error.said or error.error} ({error.version}, {error.seen})")
        lines.append(f"{'':9}  {error.hint}")
    return "\n".join(lines)
