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

ADDRESS: Final = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"
"""The registry's address (agentclientprotocol/registry, README)."""

MAX_BYTES: Final = 16 * 1024**2
"""Most bytes of a registry. With forty agents it had about fifty thousand."""

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
    """An agent's archive for one platform."""

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
    """An agent of the registry (its ``agent.schema.json``). Unknown keys are ignored."""

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
            ValueError: The entry cannot be used.
        """
        if NAME.fullmatch(self.id) is None:
            raise ValueError(f"its id {_shown(self.id)} is invalid: use small letters, digits and -")
        if _VERSION.fullmatch(self.version) is None:
            raise ValueError(f"its version {_shown(self.version)} is invalid")
        ways = self.distribution
        if ways.npx is None and ways.uvx is None and not ways.binary:
            raise ValueError("it has neither npx nor uvx nor binary")
        for package, form in ((ways.npx, _NPM), (ways.uvx, _PYPI)):
            if package is not None and form.fullmatch(package.package) is None:
                raise ValueError(f"{_shown(package.package)} is not a package, with or without a version")
        for text in self._texts():
            if not text.isprintable():
                raise ValueError(f"{_shown(text)} has unprintable characters")
        for way in self._ways():
            for name in way.env:
                if _VARIABLE.fullmatch(name) is None:
                    raise ValueError(f"{_shown(name)} is not a valid name of a variable")

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

    def launch(self) -> Npx | Uvx | Binary:
        """Return how to start it: by npx, else by uvx, else as a downloaded program.

        The version is the one given with the package, or the entry's own if the package has none or a range.
        The registry refuses a package whose version differs from its entry's, and asks npm and PyPI for new
        versions every hour (its CONTRIBUTING.md): so the arguments were written for that version, and the
        started version does not change before the next `update_agents`. For the newest one, use
        ``NAME@latest``.
        """
        ways = self.distribution
        if ways.npx is not None:
            package, version = _pinned(_NPM, ways.npx.package, self.version)
            return Npx(package=package, version=version, args=ways.npx.args)
        if ways.uvx is not None:
            package, version = _pinned(_PYPI, ways.uvx.package, self.version)
            return Uvx(package=package, version=version, args=ways.uvx.args)
        archives = {
            on: Archive(archive=target.archive, cmd=target.cmd, args=target.args, env=target.env)
            for on, target in ways.binary.items()
        }
        return Binary(version=self.version, archives=archives)


class SkippedEntry(Struct, frozen=True, kw_only=True):
    """An entry that cannot be used."""

    id: str
    """Its id, or its number in the registry if it has none."""
    reason: str


class RegistryChange(Struct, frozen=True, kw_only=True):
    """A change of an agent's entry in the registry."""

    id: str
    before: str
    """The version before."""
    after: str
    """The version now. It may be the same, with other changes."""


class RegistryUpdate(Struct, frozen=True, kw_only=True):
    """How a registry differs from the copy before."""

    source: str
    """The file or address of the registry."""
    path: Path
    """The path of the copy."""
    total: int
    """The number of agents in it."""
    added: tuple[str, ...]
    changed: tuple[RegistryChange, ...]
    removed: tuple[str, ...]
    skipped: tuple[SkippedEntry, ...]
    """Entries that cannot be used, and why."""


class _Index(Struct):
    agents: list[msgspec.Raw]


class _Id(Struct):
    id: str


def platform_name() -> str:
    """Return the registry's name for this platform, such as ``linux-x86_64`` or ``darwin-aarch64``."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{platform.system().lower()}-{machine}"


def _read_registry(data: bytes) -> tuple[dict[str, RegistryEntry], list[SkippedEntry]]:
    """Return the entries of a registry's JSON by id, and those that cannot be used.

    Raises:
        ValueError: It is not a registry.
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
            skipped.append(SkippedEntry(id=entry.id, reason="an earlier entry has the same id"))
        else:
            entries[entry.id] = entry
    return entries, skipped


Table: TypeAlias = dict[str, object]


def _as_profile_table(entry: RegistryEntry) -> Table:
    """Return an entry in the form of a profile's file.

    With npx and uvx, variables become the profile's own. Those of a binary may differ between platforms, and
    stay with it. An agent that does not support this machine keeps its other platforms, so that starting it
    reports what is missing.
    """
    launch = entry.launch()
    table: Table = {"title": entry.name or entry.id, "registry": entry.id}
    if website := entry.website or entry.repository:
        table["website"] = website
    table[type(launch).__name__.lower()] = msgspec.to_builtins(launch)
    way = entry.distribution.npx or entry.distribution.uvx
    if way is not None and way.env:
        table["env"] = {"set": dict(way.env)}
    return table


def _stored_path() -> Path:
    """Return the path of our copy of the registry. It need not exist."""
    return cache_folder() / "registry.json"


def stored_tables() -> Mapping[str, tuple[str, Table]]:
    """Return the file and the table of each agent in our copy of the registry; empty without a copy."""
    path = _stored_path()
    return {id_: (str(path), _as_profile_table(entry)) for id_, entry in _stored(path).items()}


async def update_agents(source: str | os.PathLike[str] | None = None) -> RegistryUpdate:
    """Read the public registry of agents, and keep a copy of it for `find_agent`.

    Args:
        source: A file, or an address that begins with ``https://``; the registry's own address by default.

    Returns:
        How it differs from the copy before.

    Raises:
        RegistryError: It cannot be read, or has no usable agent. The copy before is kept.
    """
    name = os.fspath(ADDRESS if source is None else source)
    path = _stored_path()
    try:
        await anyio.Path(path.parent).mkdir(parents=True, exist_ok=True)
        data = await _read(name, path.parent)
        new, skipped = _read_registry(data)
        if not new:
            first = "".join(f" ({entry.id}: {entry.reason})" for entry in skipped[:1])
            raise ValueError(f"it has no usable agent{first}")
        old = await anyio.to_thread.run_sync(_stored, path)
        await anyio.to_thread.run_sync(_replace, path, data)
    except OSError as exc:
        raise RegistryError(name, f"{exc.filename or path}: {exc.strerror or exc}") from exc
    except ValueError as exc:
        reason = f"it is not a registry of agents: {exc}. Check the address; {ADDRESS} is the public one"
        raise RegistryError(name, reason) from exc
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
        skipped=tuple(skipped),
    )


async def _read(source: str, folder: Path) -> bytes:
    if not source.lower().startswith(("https://", "http://")):
        return await anyio.to_thread.run_sync(_read_file, Path(source))
    from thinkwell.agents._download import DownloadError, download  # imports HTTP and TLS

    with tempfile.TemporaryDirectory(prefix=".registry-", dir=folder) as temporary:
        file = Path(temporary) / "registry.json"
        try:
            await download(source, file, limit=MAX_BYTES)
        except DownloadError as exc:
            raise RegistryError(source, str(exc)) from exc
        return await anyio.to_thread.run_sync(_read_file, file)


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    return data


def _stored(path: Path) -> dict[str, RegistryEntry]:
    """Return the entries of our copy by id, or none if it is missing or cannot be read."""
    try:
        entries, _ = _read_registry(_read_file(path))
        return entries
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        logger.warning("The copy of the agent registry is not used: %s: %s. Update it", path, exc)
        return {}


def _replace(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    descriptor, temporary = tempfile.mkstemp(
        prefix=f".{path.name}-", dir=path.parent
    )  # readable by its owner only
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise


def _pinned(form: re.Pattern[str], spec: str, version: str) -> tuple[str, str]:
    found = form.fullmatch(spec)
    assert found is not None  # entries that do not match are refused
    return found["name"], found["version"] or version


def _id(raw: msgspec.Raw) -> str:
    try:
        return _shown(msgspec.json.decode(raw, type=_Id).id)
    except (msgspec.DecodeError, RecursionError):
        return ""


def _shown(text: str) -> str:
    return text if text.isprintable() and len(text) <= 100 else ascii(text[:100])
