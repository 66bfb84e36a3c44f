"""The sources of profiles: the files that come with thinkwell, the registry, the user's folder, a project."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from thinkwell.agents._folders import config_folder
from thinkwell.agents._profile import LAUNCHES, NAME, VERSION, AgentProfile, Program, profile_of
from thinkwell.errors import AgentNotFound, ProfileError
from thinkwell_acp.interpreter import helper_command

if TYPE_CHECKING:
    from collections.abc import Iterator

Table: TypeAlias = Mapping[str, object]
"""A table of TOML."""

SHIPPED: Final = Path(__file__).parent / "profiles"
"""The profiles that come with thinkwell."""

BUILTIN: Final = "builtin"
"""The name of the agent that comes with thinkwell."""

logger = logging.getLogger("thinkwell")


def find_agent(name: str) -> AgentProfile:
    """Return the profile of an agent.

    It is merged from the file that comes with thinkwell, the last copy of the registry (see `update_agents`),
    ``agents/NAME.toml`` in the user's folder for configuration, and the table
    ``[tool.thinkwell.agents.NAME]`` of the nearest ``pyproject.toml`` in the current folder or above. Later
    sources override earlier ones, key by key.

    Args:
        name: The agent's name: ``claude``. An agent that npx or uvx download may have a version:
            ``claude@0.100.0``, or ``claude@latest``.

    Raises:
        AgentNotFound: No known agent has that name.
        ProfileError: Its profile cannot be read, or its version cannot be chosen.
    """
    plain, at, version = name.partition("@")
    sources = _Sources()
    if NAME.fullmatch(plain) is None or (at and not version):
        raise AgentNotFound(
            name,
            'it is not the name of an agent: use small letters, such as "claude" or "claude@latest"'
            f"{_known(sources, plain.lower())}",
        )
    profile = builtin_agent() if plain == BUILTIN else sources.profile(plain)
    if profile is None:
        raise AgentNotFound(name, f"no known agent has that name{_known(sources, plain)}")
    logger.debug("Agent %s: its profile comes from %s", plain, ", ".join(profile.files))
    return profile.at(version) if version else profile


def builtin_agent() -> AgentProfile:
    """Return the profile of the built-in agent. No file can change it."""
    command = helper_command("-P", "-m", "thinkwell.builtin")
    return AgentProfile(name=BUILTIN, title="The built-in agent", program=Program(command=tuple(command)))


def known_agents() -> tuple[AgentProfile, ...]:
    """Return all profiles, sorted by name. Those that cannot be read are logged.

    Raises:
        ProfileError: The user's ``pyproject.toml`` cannot be read.
    """
    profiles: list[AgentProfile] = []
    sources = _Sources()
    for name in sources.names():
        try:
            profile = sources.profile(name)
        except ProfileError as exc:
            logger.warning("%s", exc)
        else:
            if profile is not None:  # None: its file was removed, or is a broken link
                profiles.append(profile)
    return tuple(profiles)


def _known(sources: _Sources, wanted: str) -> str:
    """Return a hint with the names of known agents."""
    try:
        names = sources.names()
    except ProfileError:
        names = [file.stem for file in sorted(SHIPPED.glob("*.toml"))]
    names = sorted({BUILTIN, *names})
    from difflib import get_close_matches  # only after a mistake

    meant = get_close_matches(wanted, names, n=1, cutoff=0.7)
    others = f"; did you mean {meant[0]!r}?" if meant else f" (known: {', '.join(names)})."
    return f'{others} For another: open_agent(command=["program", "arg"])'


def _why_not(name: str) -> str:
    if name == BUILTIN:
        return "the built-in agent cannot be changed"
    return "use small letters, digits and ._-"


class _Sources:
    """The sources of profiles, each read once, on first use."""

    @cached_property
    def _listed(self) -> Mapping[str, tuple[str, Table]]:
        """The table of each agent in our copy of the registry, by its id there."""
        from thinkwell.agents._registry import stored_tables  # only for agents with a profile

        return stored_tables()

    @cached_property
    def _project(self) -> tuple[str, Table]:
        return _project_tables()

    @cached_property
    def _ours(self) -> Mapping[str, str]:
        """Our names of agents by their id in the registry."""
        found = (_shipped(file.stem) for file in SHIPPED.glob("*.toml"))
        tables = ((Path(file).stem, table) for file, table in filter(None, found))
        return {str(table["registry"]): name for name, table in tables if "registry" in table}

    def names(self) -> list[str]:
        """Return the names of all agents but the built-in one."""
        folders = (SHIPPED, config_folder() / "agents")
        files = (file.stem for folder in folders for file in folder.glob("*.toml"))
        listed = (name for name in self._listed if name not in self._ours)
        names = {*files, *self._project[1]}
        for name in sorted(names):
            if NAME.fullmatch(name) is None or name == BUILTIN:
                logger.warning("The profile of an agent %r is ignored: %s", name, _why_not(name))
        return sorted(name for name in {*names, *listed} - {BUILTIN} if NAME.fullmatch(name))

    def profile(self, name: str) -> AgentProfile | None:
        """Return the merged profile of an agent, by our name or the registry's."""
        profile = self._read(name)
        if profile is None and name in self._ours:
            return self._read(self._ours[name])
        return profile

    def _read(self, name: str) -> AgentProfile | None:
        files: list[str] = []
        table: Table = {}
        for file, layer in self._layers(name):
            files.append(file)
            table = _laid_over(table, layer)
        return profile_of(name, table, files) if files else None

    def _layers(self, name: str) -> Iterator[tuple[str, Table]]:
        shipped = _shipped(name)
        if shipped is not None:
            yield shipped
        listed = self._listed.get(str(shipped[1].get("registry", name)) if shipped else name)
        if listed is not None:
            file, table = listed
            if shipped is not None:
                if news := _news_of(table, shipped[1]):
                    yield file, news
            elif name not in self._ours:  # an id that we know by another name is not listed twice
                yield file, table
        own = _table(config_folder() / "agents" / f"{name}.toml", name)
        if own is not None:
            yield own
        file, tables = self._project
        if name in tables:
            project = tables[name]
            if not isinstance(project, Mapping):
                raise ProfileError(name, f"[tool.thinkwell.agents.{name}] is not a table", (file,))
            yield file, cast("Table", project)


def _news_of(listed: Table, shipped: Table) -> Table:
    """Return what the registry adds to a shipped profile: a newer version of the same package.

    Its variables are added if ours does not set them. The command stays the one that was tested.
    """
    for way in ("npx", "uvx"):
        theirs, ours = _table_at(listed, way), _table_at(shipped, way)
        same = ours.get("package") == theirs.get("package")
        version = str(theirs.get("version"))
        if same and VERSION.fullmatch(version) and _order(version) > _order(str(ours.get("version"))):
            added = _table_at(_table_at(listed, "env"), "set")
            known = _table_at(_table_at(shipped, "env"), "set")
            more = {name: value for name, value in added.items() if name not in known}
            return {way: {"version": version}, "env": {"set": more}}
    return {}


def _table_at(table: Table, key: str) -> Table:
    inner = table.get(key)
    return cast("Table", inner) if isinstance(inner, Mapping) else {}


def _order(version: str) -> tuple[int, ...]:
    """Return the key to compare versions: a pre-release counts as its release, a malformed version as old."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))


@lru_cache
def _shipped(name: str) -> tuple[str, Table] | None:
    """Return the file and the table of an agent that comes with thinkwell; both stay as they are."""
    return _table(SHIPPED / f"{name}.toml", name)


def _table(file: Path, name: str) -> tuple[str, Table] | None:
    """Return a file and its table, or ``None`` if it is missing."""
    import tomllib  # only for agents with a profile

    try:
        return str(file), tomllib.loads(file.read_text("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as exc:  # malformed TOML and UTF-8 raise ValueError
        raise ProfileError(name, f"it cannot be read: {exc}", (str(file),)) from exc


def _project_tables() -> tuple[str, Table]:
    """Return the agents' tables of the current folder's project, and the file.

    Not of the folder that the agent works in: a file that an agent can write must not choose what is started.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed in the meantime
        return "", {}
    files = (folder / "pyproject.toml" for folder in (here, *here.parents))
    # Path.is_file would raise for a folder above that is not readable.
    file = next((file for file in files if os.path.isfile(file)), None)  # noqa: PTH113
    found = None if file is None else _table(file, "pyproject.toml")
    return ("", {}) if found is None else _agents_of(*found)


def _agents_of(file: str, table: Table) -> tuple[str, Table]:
    path = ""
    ours = _table_at(_table_at(table, "tool"), "thinkwell")
    for key in ours.keys() - {"agents"}:
        logger.warning("%s: [tool.thinkwell.%s] is unknown; agents are in [tool.thinkwell.agents]", file, key)
    for key in ("tool", "thinkwell", "agents"):
        path += f".{key}"
        inner = table.get(key, {})
        if not isinstance(inner, Mapping):
            raise ProfileError("pyproject.toml", f"[{path[1:]}] is not a table", (file,))
        table = cast("Table", inner)
    return file, table


def _laid_over(lower: Table, upper: Table) -> Table:
    """Return a profile with another merged over it. Another way to start an agent replaces the one before."""
    if any(key in upper for key in LAUNCHES):
        lower = {key: value for key, value in lower.items() if key not in LAUNCHES or key in upper}
    return _merged(lower, upper)


def _merged(lower: Table, upper: Table) -> Table:
    """Return a table with another merged over it, key by key."""
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = _merged(cast("Table", below), cast("Table", value))
        else:
            result[key] = value
    return result
