"""Where profiles are read: files that come with thinkwell, the registry, the user's folder, a project."""

from __future__ import annotations

import difflib
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from thinkwell.agents._folders import config_folder
from thinkwell.agents._profile import LAUNCHES, NAME, AgentProfile, Program, profile_of
from thinkwell.errors import AgentNotFound, ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterator

Table: TypeAlias = Mapping[str, object]
"""A table of TOML."""

SHIPPED: Final = Path(__file__).parent / "profiles"
"""The profiles that come with thinkwell."""

BUILTIN: Final = AgentProfile(
    name="builtin",
    title="The built-in agent",
    program=Program(command=(sys.executable, "-P", "-m", "thinkwell.builtin")),
)
"""The agent that comes with thinkwell. No file says anything of it."""

logger = logging.getLogger("thinkwell")


def find_agent(name: str) -> AgentProfile:
    """Return the profile of an agent.

    It is put together from the file that comes with thinkwell, the last copy of the registry (see
    `update_agents`), ``agents/NAME.toml`` in the user's folder for configuration, and the table
    ``[tool.thinkwell.agents.NAME]`` of the nearest ``pyproject.toml`` of the current folder or above. What
    stands later in this list wins, key by key.

    Args:
        name: What the agent is called: ``claude``. With a version of an agent that npx or uvx fetches:
            ``claude@0.100.0``, or ``claude@latest``.

    Raises:
        AgentNotFound: No agent of that name is known.
        ProfileError: Its profile cannot be read, or its version cannot be chosen.
    """
    plain, at, version = name.partition("@")
    if NAME.fullmatch(plain) is None or (at and not version):
        raise AgentNotFound(
            name,
            'that is no name of an agent: they are in small letters, such as "claude" or "claude@latest"'
            f"{_known(plain.lower())}",
        )
    profile = BUILTIN if plain == BUILTIN.name else _read(plain) or _by_registry_id(plain)
    if profile is None:
        raise AgentNotFound(name, f"no agent of that name is known{_known(plain)}")
    logger.debug("Agent %s: its profile comes from %s", plain, ", ".join(profile.files))
    return profile.at(version) if version else profile


def known_agents() -> tuple[AgentProfile, ...]:
    """Return the profiles of all agents that have one, by name. One that cannot be read is logged.

    Raises:
        ProfileError: The user's ``pyproject.toml`` cannot be read.
    """
    profiles: list[AgentProfile] = []
    for name in _names():
        try:
            profile = _read(name)
        except ProfileError as exc:
            logger.warning("%s", exc)
        else:
            if profile is not None:  # else its file is gone, or is a link to nowhere
                profiles.append(profile)
    return tuple(profiles)


def _names() -> list[str]:
    folders = (SHIPPED, config_folder() / "agents")
    files = (file.stem for folder in folders for file in folder.glob("*.toml"))
    _, project = _project_tables()
    taken = dict(_shipped_by_registry_id())
    listed = (name for name in _registry_tables() if name not in taken)
    names = {name for name in (*files, *project, *listed) if NAME.fullmatch(name)}
    return sorted(names - {BUILTIN.name})


def _known(wanted: str) -> str:
    """Return what to say of the names that there are."""
    try:
        names = _names()
    except ProfileError:
        names = [file.stem for file in sorted(SHIPPED.glob("*.toml"))]
    names = sorted({BUILTIN.name, *names})
    meant = difflib.get_close_matches(wanted, names, n=1, cutoff=0.7)
    guess = f"; did you mean {meant[0]!r}?" if meant else ""
    return f'{guess} (known: {", ".join(names)}). For another: open_agent(command=["program", "arg"])'


def _read(name: str) -> AgentProfile | None:
    files: list[str] = []
    table: Table = {}
    for file, layer in _layers(name):
        files.append(file)
        table = _laid_over(table, layer)
    return profile_of(name, table, files) if files else None


def _layers(name: str) -> Iterator[tuple[str, Table]]:
    shipped = _table(SHIPPED / f"{name}.toml", name)
    if shipped is not None:
        yield shipped
    known: Table = {} if shipped is None else shipped[1]
    listed = _registry_tables().get(str(known.get("registry", name)))
    if listed is not None:
        file, table = listed
        if shipped is None:
            if name not in dict(_shipped_by_registry_id()):  # it has a name of ours, and what we know of it
                yield file, table
        elif "binary" not in table:  # what npx or uvx fetches is no worse than what has to be unpacked
            yield file, {key: table[key] for key in LAUNCHES if key in table}
    own = _table(config_folder() / "agents" / f"{name}.toml", name)
    if own is not None:
        yield own
    file, tables = _project_tables()
    if name in tables:
        project = tables[name]
        if not isinstance(project, Mapping):
            raise ProfileError(name, f"[tool.thinkwell.agents.{name}] is no table", (file,))
        yield file, cast("Table", project)


def _by_registry_id(name: str) -> AgentProfile | None:
    """Return the profile of the agent that the registry calls so, where we call it otherwise."""
    ours = dict(_shipped_by_registry_id()).get(name)
    return None if ours is None else _read(ours)


def _shipped_by_registry_id() -> Iterator[tuple[str, str]]:
    """Yield the registry's names of agents, and ours."""
    for file in sorted(SHIPPED.glob("*.toml")):
        table = _table(file, file.stem)
        if table is not None and isinstance(listed := table[1].get("registry"), str):
            yield listed, file.stem


def _registry_tables() -> Mapping[str, tuple[str, Table]]:
    """Return what the last copy of the registry says of each agent, by its id there."""
    from thinkwell.agents._registry import stored_tables  # only for agents with a profile

    return stored_tables()


def _table(file: Path, name: str) -> tuple[str, Table] | None:
    """Return what a file holds, or ``None`` where there is none."""
    import tomllib  # only for agents with a profile

    try:
        return str(file), tomllib.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as exc:  # no TOML and no UTF-8 are ValueErrors
        raise ProfileError(name, f"it cannot be read: {exc}", (str(file),)) from exc


def _project_tables() -> tuple[str, Table]:
    """Return what the project of the current folder says of agents, and in which file.

    Not the folder that an agent works in: what an agent may write there must not choose what is started.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:  # somebody has removed it
        return "", {}
    files = (folder / "pyproject.toml" for folder in (here, *here.parents))
    # Path.is_file would raise where a folder above may not be looked into.
    file = next((file for file in files if os.path.isfile(file)), None)  # noqa: PTH113
    found = None if file is None else _table(file, "pyproject.toml")
    return ("", {}) if found is None else _agents_of(*found)


def _agents_of(file: str, table: Table) -> tuple[str, Table]:
    path = ""
    for key in ("tool", "thinkwell", "agents"):
        path += f".{key}"
        inner = table.get(key, {})
        if not isinstance(inner, Mapping):
            raise ProfileError("pyproject.toml", f"[{path[1:]}] is no table", (file,))
        table = cast("Table", inner)
    return file, table


def _laid_over(lower: Table, upper: Table) -> Table:
    """Return a profile with another laid over it. Another way to start an agent replaces the one before."""
    if any(key in upper for key in LAUNCHES):
        lower = {key: value for key, value in lower.items() if key not in LAUNCHES or key in upper}
    return _merged(lower, upper)


def _merged(lower: Table, upper: Table) -> Table:
    """Return a table with another laid over it, key by key."""
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = _merged(cast("Table", below), cast("Table", value))
        else:
            result[key] = value
    return result
