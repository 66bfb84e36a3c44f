"""``python -m thinkwell.agents``: which agents are known, what is known of one, and the registry's news."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

import anyio
import msgspec

from thinkwell.agents import find_agent, known_agents, update_agents
from thinkwell.agents._registry import platform_name
from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.agents import AgentProfile, RegistryUpdate


def main(arguments: Sequence[str] | None = None, *, prog: str = "python -m thinkwell.agents") -> int:
    """Do what the arguments say, and return the exit code: 0, 1 where it failed, 2 for wrong usage.

    Args:
        arguments: Those of this process by default.
        prog: What the program is called in messages.
    """
    parser = argparse.ArgumentParser(prog=prog, description="The agents that open_agent(NAME) can start.")
    parser.set_defaults(name=None, json=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    listing = commands.add_parser("list", help="list them (the default)")
    showing = commands.add_parser("show", help="show all that is known of one, and from which files")
    showing.add_argument("name", metavar="NAME", help="such as claude, or claude@latest")
    for command in (listing, showing):
        command.add_argument("--json", action="store_true", help="as JSON")
    updating = commands.add_parser("update", help="fetch the public registry of agents")
    updating.add_argument("source", nargs="?", help="a file or an address, instead of the official one")
    given = parser.parse_args(arguments)
    try:
        if given.command == "update":
            print(_news(anyio.run(update_agents, given.source)))
        else:
            profiles = [find_agent(given.name)] if given.name else [find_agent("builtin"), *known_agents()]
            print(_json(profiles) if given.json else _text(profiles, whole=bool(given.name)))
    except ThinkwellError as exc:
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


def _json(profiles: Sequence[AgentProfile]) -> str:
    return msgspec.json.format(msgspec.json.encode(profiles), indent=2).decode()


def _text(profiles: Sequence[AgentProfile], *, whole: bool) -> str:
    if whole:
        return "\n".join(map(_all_of, profiles))
    name = max(len(profile.name) for profile in profiles)
    title = max(len(profile.title) for profile in profiles)
    return "\n".join(
        f"{profile.name:{name}}  {profile.title:{title}}  {_command(profile)}".rstrip()
        for profile in profiles
    )


def _command(profile: AgentProfile) -> str:
    return shlex.join(profile.command) or f"a program of version {profile.version}, which is downloaded"


def _download_of(profile: AgentProfile) -> str:
    """Return where a program comes from, for this machine."""
    if profile.binary is None:
        return ""
    archive = profile.binary.archives.get(platform_name())
    if archive is None:
        return f"nothing for {platform_name()}"
    return f"{archive.archive} ({'sha256 ' + archive.sha256 if archive.sha256 else 'without a checksum'})"


def _all_of(profile: AgentProfile) -> str:
    install = "" if profile.program is None else profile.program.install
    facts = {
        "website": profile.website,
        "command": _command(profile),
        "install": install,
        "download": _download_of(profile),
        "version": profile.version or "as you have installed it",
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
    for known in profile.errors:
        lines.append(f"{'error':9}  {known.said or known.error} ({known.version}, {known.seen})")
        lines.append(f"{'':9}  {known.hint}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
