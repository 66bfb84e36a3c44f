"""The public registry of agents that speak the Agent Client Protocol, and our copy of it."""

from __future__ import annotations

import logging
import os
import platform
import re
import tempfile
from collections.abc import Mapping  # noqa: TC003 - types of fields, read at run time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from thinkwell.agents._folders import cache_folder
from thinkwell.agents._profile import NAME, Archive, Binary, Npx, Uvx
from thinkwell.errors import RegistryError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = (
    "ADDRESS",
    "Registry",
    "RegistryChange",
    "RegistryEntry",
    "RegistryUpdate",
    "SkippedEntry",
    "as_profile_table",
    "platform_name",
    "read_registry",
    "stored_registry_path",
    "stored_tables",
    "update_agents",
)

ADDRESS: Final = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"
"""Where the registry is published (agentclientprotocol/registry, README)."""

MAX_BYTES: Final = 16 * 1024**2
"""How many bytes a registry may have. With forty agents it had some fifty thousand."""

_NPM: Final = re.compile(
    r"(?P<name>(?:@[\w~][\w.~-]*/)?[\w~][\w.~-]*)(?:@(?P<version>\w[\w.+-]*))?", re.ASCII
)
_PYPI: Final = re.compile(
    r"(?P<name>\w[\w.-]*(?:\[[\w., -]+\])?)"
    r"\s*(?:(?:==|@)\s*(?P<version>\w[\w.+!-]*)|(?:>=|~=)\s*\w[\w.+!-]*)?",
    re.ASCII,
)
_VERSION: Final = re.compile(r"\w[\w.+!-]*", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

logger = logging.getLogger("thinkwell")


class Package(Struct, frozen=True, kw_only=True):
    """A package of npm or PyPI, as the registry names it."""

    package: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Target(Struct, frozen=True, kw_only=True):
    """What the registry says of one kind of machine."""

    archive: str
    cmd: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Distribution(Struct, frozen=True, kw_only=True):
    """The ways to get an agent."""

    npx: Package | None = None
    uvx: Package | None = None
    binary: Mapping[str, Target] = {}


class RegistryEntry(Struct, frozen=True, kw_only=True):
    """An agent of the registry (its ``agent.schema.json``). Keys that are not known are ignored."""

    id: str
    version: str
    distribution: Distribution
    name: str = ""
    description: str = ""
    repository: str = ""
    website: str = ""

    def __post_init__(self) -> None:
        """Check what the types do not say.

        Raises:
            ValueError: The entry is not used.
        """
        if NAME.fullmatch(self.id) is None:
            raise ValueError(f"its id {_shown(self.id)} is none: it has small letters, digits and -")
        if _VERSION.fullmatch(self.version) is None:
            raise ValueError(f"its version {_shown(self.version)} is none")
        ways = self.distribution
        if ways.npx is None and ways.uvx is None and not ways.binary:
            raise ValueError("it comes neither by npx nor by uvx nor as a binary")
        for package, form in ((ways.npx, _NPM), (ways.uvx, _PYPI)):
            if package is not None and form.fullmatch(package.package) is None:
                raise ValueError(f"{_shown(package.package)} is no package with or without its version")
        for text in self._texts():
            if not text.isprintable():
                raise ValueError(f"{_shown(text)} has characters that cannot be shown")
        for way in self._ways():
            for name in way.env:
                if _VARIABLE.fullmatch(name) is None:
                    raise ValueError(f"{_shown(name)} cannot be the name of a variable")

    def _ways(self) -> Iterable[Package | Target]:
        yield from (way for way in (self.distribution.npx, self.distribution.uvx) if way is not None)
        yield from self.distribution.binary.values()

    def _texts(self) -> Iterable[str]:
        yield from (self.name, self.repository, self.website, *self.distribution.binary)
        for way in self._ways():
            yield from way.args
            yield from way.env.values()
            if isinstance(way, Target):
                yield from (way.archive, way.cmd)

    def launch(self, on: str | None = None) -> Npx | Uvx | Binary | None:
        """Return how to start it: by npx, else by uvx, else as a program that is downloaded.

        A version that stands with the package is taken. Where none does, or a range, it is the entry's own.
        The registry takes no package whose version differs from its entry's, and asks npm and PyPI for new
        ones every hour (its CONTRIBUTING.md): so that is the version for which the arguments were written,
        and what is started does not change before the next `update_agents`. The newest one is
        ``NAME@latest``.

        Args:
            on: The kind of machine, such as ``linux-x86_64``; this one where none is given.

        Returns:
            ``None`` where there is nothing for that machine.
        """
        ways = self.distribution
        if ways.npx is not None:
            package, version = _pinned(_NPM, ways.npx.package, self.version)
            return Npx(package=package, version=version, args=ways.npx.args)
        if ways.uvx is not None:
            package, version = _pinned(_PYPI, ways.uvx.package, self.version)
            return Uvx(package=package, version=version, args=ways.uvx.args)
        return self._binary() if (on or platform_name()) in ways.binary else None

    def _binary(self) -> Binary:
        archives = {
            on: Archive(archive=target.archive, cmd=target.cmd, args=target.args, env=target.env)
            for on, target in self.distribution.binary.items()
        }
        return Binary(version=self.version, archives=archives)


class SkippedEntry(Struct, frozen=True, kw_only=True):
    """An entry that is not used."""

    id: str
    """Its id, or its number in the registry where it has none."""
    reason: str


class Registry(Struct, frozen=True, kw_only=True):
    """What a registry holds."""

    entries: tuple[RegistryEntry, ...]
    skipped: tuple[SkippedEntry, ...]


class RegistryChange(Struct, frozen=True, kw_only=True):
    """An agent of which the registry says something else than before."""

    id: str
    before: str
    """The version before."""
    after: str
    """The version now. It may be the same, and something else be new."""


class RegistryUpdate(Struct, frozen=True, kw_only=True):
    """How a registry differs from the copy that there was before."""

    source: str
    """The file or address that was read."""
    path: Path
    """The copy."""
    total: int
    """How many agents it has."""
    added: tuple[str, ...]
    changed: tuple[RegistryChange, ...]
    removed: tuple[str, ...]
    skipped: tuple[SkippedEntry, ...]
    """Entries that are not used, and why."""


class _Index(Struct):
    agents: list[msgspec.Raw]


class _Id(Struct):
    id: str


def platform_name() -> str:
    """Return what the registry calls this kind of machine, such as ``linux-x86_64`` or ``darwin-aarch64``."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{platform.system().lower()}-{machine}"


def read_registry(data: bytes) -> Registry:
    """Read a registry's JSON. An entry that cannot be used is skipped, and said so.

    Raises:
        ValueError: It is no registry.
    """
    try:
        index = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_Index)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ValueError(str(exc)) from exc
    entries: dict[str, RegistryEntry] = {}
    skipped: list[SkippedEntry] = []
    for number, raw in enumerate(index.agents, 1):
        try:
            entry = msgspec.json.decode(raw, type=RegistryEntry)
        except (msgspec.DecodeError, RecursionError) as exc:
            skipped.append(SkippedEntry(id=_id(raw) or f"#{number}", reason=str(exc)))
            continue
        if entry.id in entries:
            skipped.append(SkippedEntry(id=entry.id, reason="there is another entry of this id before it"))
        else:
            entries[entry.id] = entry
    return Registry(entries=tuple(entries.values()), skipped=tuple(skipped))


Table: TypeAlias = dict[str, object]


def as_profile_table(entry: RegistryEntry) -> Table:
    """Return what an entry says in the form of a profile's file.

    Variables go to the profile's own where the agent comes by npx or uvx; those of a binary may differ
    between kinds of machines, and stay with it. An agent that does not support this machine is given with
    what is there for others, so that starting it says what is missing.
    """
    launch = entry.launch() or entry._binary()
    table: Table = {"title": entry.name or entry.id, "registry": entry.id}
    if website := entry.website or entry.repository:
        table["website"] = website
    table[type(launch).__name__.lower()] = _table(launch)
    way = entry.distribution.npx or entry.distribution.uvx
    if way is not None and way.env:
        table["env"] = {"set": dict(way.env)}
    return table


def stored_registry_path() -> Path:
    """Return where our copy of the registry is; there may be none."""
    return cache_folder() / "registry.json"


def stored_tables() -> Mapping[str, tuple[str, Table]]:
    """Return the file and the table of each agent in our copy of the registry; none without a copy."""
    path = stored_registry_path()
    return {entry.id: (str(path), as_profile_table(entry)) for entry in _stored(path)}


async def update_agents(source: str | os.PathLike[str] | None = None) -> RegistryUpdate:
    """Read the public registry of agents, and keep a copy of it for `find_agent`.

    Args:
        source: A file, or an address that begins with ``https://``. The registry's own address where none is
            given.

    Returns:
        How it differs from the copy before.

    Raises:
        RegistryError: It cannot be read, or no agent in it can be used. The copy before is kept.
    """
    name = os.fspath(ADDRESS if source is None else source)
    path = stored_registry_path()
    try:
        await anyio.to_thread.run_sync(_make_folder, path.parent)
        data = await _read(name, path.parent)
        registry = read_registry(data)
        if not registry.entries:
            raise ValueError(f"no agent in it can be used{_first_of(registry.skipped)}")
        before = await anyio.to_thread.run_sync(_stored, path)
        await anyio.to_thread.run_sync(_replace, path, data)
    except OSError as exc:
        raise RegistryError(name, f"{exc.filename or path}: {exc.strerror or exc}") from exc
    except ValueError as exc:
        reason = f"it is no registry of agents: {exc}. Check the address; {ADDRESS} is the public one"
        raise RegistryError(name, reason) from exc
    old = {entry.id: entry for entry in before}
    new = {entry.id: entry for entry in registry.entries}
    return RegistryUpdate(
        source=name,
        path=path,
        total=len(new),
        added=tuple(id_ for id_ in new if id_ not in old),
        changed=tuple(
            RegistryChange(id=id_, before=old[id_].version, after=entry.version)
            for id_, entry in new.items()
            if id_ in old and old[id_] != entry
        ),
        removed=tuple(id_ for id_ in old if id_ not in new),
        skipped=registry.skipped,
    )


async def _read(source: str, folder: Path) -> bytes:
    if not source.lower().startswith(("https://", "http://")):
        return await anyio.to_thread.run_sync(_read_file, Path(source))
    from thinkwell.agents._download import DownloadError, download  # loads what speaks HTTP and TLS

    with tempfile.TemporaryDirectory(prefix=".registry-", dir=folder) as temporary:
        file = Path(temporary) / "registry.json"
        try:
            await download(source, file, limit=MAX_BYTES)
        except DownloadError as exc:
            raise RegistryError(source, str(exc)) from exc
        return await anyio.to_thread.run_sync(_read_file, file)


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    return data


def _stored(path: Path) -> tuple[RegistryEntry, ...]:
    """Return what our copy holds: nothing where there is none, or none that can be read."""
    try:
        return read_registry(_read_file(path)).entries
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as exc:
        logger.warning("The copy of the agent registry is not used: %s: %s. Update it", path, exc)
        return ()


def _replace(path: Path, data: bytes) -> None:
    """Put a file in a file's place, at once and whole."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # for its owner alone
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise


def _pinned(form: re.Pattern[str], spec: str, version: str) -> tuple[str, str]:
    found = form.fullmatch(spec)
    assert found is not None  # an entry where it does not fit is none
    return found["name"], found["version"] or version


def _table(launch: Npx | Uvx | Binary | Archive) -> Table:
    """Return a launch's table. No arguments are told as such: else those of a file below would be taken."""
    table = msgspec.json.decode(msgspec.json.encode(launch), type=dict[str, object])
    if isinstance(launch, Binary):
        table["archives"] = {on: _table(archive) for on, archive in launch.archives.items()}
    return {key: value for key, value in table.items() if value is not None}


def _id(raw: msgspec.Raw) -> str:
    try:
        return _shown(msgspec.json.decode(raw, type=_Id).id)
    except (msgspec.DecodeError, RecursionError):
        return ""


def _first_of(skipped: Iterable[SkippedEntry]) -> str:
    return "".join(f" ({entry.id}: {entry.reason})" for entry in list(skipped)[:1])


def _shown(text: str) -> str:
    return text if text.isprintable() and len(text) <= 100 else ascii(text[:100])
