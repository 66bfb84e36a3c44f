"""The profile of an agent: everything known about it, as data."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - type of a field, read at run time
import fnmatch
import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell.agents._known_errors import KnownError  # noqa: TC001 - type of a field, read at run time
from thinkwell.errors import LoginRequired, ProfileError, ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Generator

    from thinkwell.errors import AgentReported, AuthMethod

ToolTransport: TypeAlias = Literal["acp", "http", "stdio"]
"""How our tools reach an agent: over the ACP connection, over loopback HTTP, or through a small program that
the agent starts."""

LATEST: Final = "latest"
"""The version name for the newest version."""

COLD_START: Final = 300.0
"""Seconds for a first installation. The longest that users reported took 81 over a slow line."""

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""Valid names of agents. Each is safe as a file name."""

VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,63}")
"""A version or its name. No range and no address: npx would accept both, and run what it finds there."""

_NPM_PACKAGE: Final = re.compile(r"(@[A-Za-z0-9_][A-Za-z0-9._~-]*/)?[A-Za-z0-9_][A-Za-z0-9._~-]*")
_PYPI_PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?")
_VARIABLE: Final = re.compile(r"[^=\0]+")
_PYPI_PROGRAM: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class Npx(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent from npm, which ``npx`` downloads, caches and runs."""

    package: str
    version: str = LATEST
    args: tuple[str, ...] = ()

    @property
    def spec(self) -> str:
        """The package and its version."""
        return f"{self.package}@{self.version}"

    @property
    def command(self) -> tuple[str, ...]:
        """The command that starts it (ACP registry, distribution ``npx``).

        npx asks the registry about every package, even one of a fixed version. If a proxy refuses, it does
        not start the package that it has, unless it is told to prefer its cache.
        """
        known = () if self.version == LATEST else ("--prefer-offline",)
        return ("npx", "--yes", *known, self.spec, *self.args)


class Uvx(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent from PyPI, which ``uvx`` downloads, caches and runs."""

    package: str
    version: str = LATEST
    program: str | None = None
    """The program of the package, if its name differs."""
    args: tuple[str, ...] = ()

    @property
    def spec(self) -> str:
        """The package and its version."""
        return f"{self.package}@{self.version}"

    @property
    def command(self) -> tuple[str, ...]:
        """The command that starts it (ACP registry, distribution ``uvx``)."""
        if self.program is None:
            return ("uvx", self.spec, *self.args)
        return ("uvx", "--from", self.spec, self.program, *self.args)


class Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent that the user has installed."""

    command: tuple[str, ...]
    install: str = ""
    """How to install it, or where to look, when it is missing."""


class Archive(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file to download for one platform."""

    archive: str
    """Its address: a zip, a compressed tar, or the program itself."""
    cmd: str
    """The program within it, or the name of its interpreter."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    sha256: str | None = None


class Binary(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent that is downloaded as a program."""

    version: str
    archives: Mapping[str, Archive]
    """By system and processor, such as ``linux-x86_64``."""


Launch: TypeAlias = Npx | Uvx | Program | Binary
"""How an agent is started."""

LAUNCHES: Final = ("npx", "uvx", "program", "binary")
"""The tables of which a profile has exactly one."""


class EnvironmentRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to the caller's environment for an agent."""

    set: Mapping[str, str] = {}
    """Variables to set, whatever the caller's environment says. ``open_agent(env=…)`` overrides them."""
    strip: tuple[str, ...] = ()
    """Patterns of variables to remove, such as ``CLAUDE_CODE_*``."""

    def applied(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the environment that results from the caller's."""
        kept = {
            name: value
            for name, value in inherited.items()
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.strip)
        }
        return {**kept, **self.set}


class Quirk(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A behaviour of an agent that no specification describes."""

    about: str
    version: str
    """The version of the agent in which it was seen."""
    seen: dt.date
    """The date on which it was seen."""


class AgentProfile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to start an agent, and everything else known about it.

    Exactly one of `npx`, `uvx`, `program` and `binary` is set. To change a profile, see
    `msgspec.structs.replace`.
    """

    name: str
    title: str = ""
    """The name to show."""
    website: str = ""
    registry: str | None = None
    """Its id in the public registry of the Agent Client Protocol."""
    npx: Npx | None = None
    uvx: Uvx | None = None
    program: Program | None = None
    binary: Binary | None = None
    env: EnvironmentRules = EnvironmentRules()
    tools_via: tuple[ToolTransport, ...] = ()
    """The transports for our tools, preferred ones first. Those that the agent does not offer are skipped."""
    bare_tool_names: bool = False
    """Whether it shows a call of an MCP tool by the tool's name alone. Our tools then get unique names. With
    any agent, this is detected when it asks for permission for such a call."""
    cold_start: float = COLD_START
    """Seconds for a first installation."""
    ends_on_eof: bool = True
    """Whether it exits when its standard input is closed. If not, SIGTERM follows at once."""
    fails_in_text: bool = False
    """Whether it ends a failed turn like any other, with the failure as its message and the mark of
    codex-acp. Without the mark, a failure looks like an answer."""
    whole_fields: bool = False
    """Whether it shows the arguments of a call, while its model writes them, field by field, each whole. With
    any other agent, the last field may be incomplete."""
    keeps_system: bool = False
    """Whether a session keeps the system prompt that it began with, so that one that is given when it is
    loaded, resumed or forked has no effect."""
    login: str = ""
    """The command that logs in with the agent's own program."""
    quirks: tuple[Quirk, ...] = ()
    errors: tuple[KnownError, ...] = ()
    """How to recognise its errors, and what to do about each."""
    files: tuple[str, ...] = ()
    """The files that this profile was read from, the most general first."""

    def __post_init__(self) -> None:
        """Check the types, which Python does not, and what they do not say.

        Raises:
            ProfileError: It does not have exactly one way to start the agent, or a value is invalid.
        """
        self._check_types()
        if sum(getattr(self, key) is not None for key in LAUNCHES) != 1:
            self._refuse(f"give exactly one of {', '.join(LAUNCHES)}")
        if not self.cold_start > 0:  # also refuses NaN
            self._refuse(f"cold_start = {self.cold_start:g}: give seconds")
        match self.launch:
            case Npx(package=package):
                self._check("npx.package", package, _NPM_PACKAGE, "the name of an npm package")
            case Uvx(package=package, program=program):
                self._check("uvx.package", package, _PYPI_PACKAGE, "the name of a PyPI package")
                if program is not None:
                    self._check("uvx.program", program, _PYPI_PROGRAM, "the name of a program")
            case Program(command=command):
                if not command:
                    self._refuse("program.command is empty")
            case _:  # each version has a folder
                self._check("name", self.name, NAME, "a name of small letters, digits and ._-")
        if self.version is not None:
            self._check("version", self.version, VERSION, "a version such as 1.2.3, or latest")
        for key, value in self.env.set.items():
            self._check("the name of a variable in env.set", key, _VARIABLE, "a valid name")
            if "\0" in value:
                self._refuse(f"env.set.{key} has a zero byte, which no system accepts")

    def _check_types(self) -> None:
        for key, wanted in _types().items():
            value = getattr(self, key)
            try:
                # msgspec would accept an existing struct without checks.
                fits = type(msgspec.convert(msgspec.to_builtins(value), wanted)) is type(value)
            except (msgspec.ValidationError, TypeError) as exc:
                self._refuse(f"{key} = {value!r:.100}: {exc}")
            if not fits and not isinstance(value, Sequence | int):
                self._refuse(f"{key} = {value!r:.100}: give a value of the class for it")

    def _check(self, key: str, value: str, pattern: re.Pattern[str], wanted: str) -> None:
        if pattern.fullmatch(value) is None:
            self._refuse(f"{key} = {value!r}: give {wanted}")

    def _refuse(self, reason: str) -> NoReturn:
        raise ProfileError(self.name, reason, self.files)

    @property
    def launch(self) -> Launch:
        """How it is started."""
        launch = self.npx or self.uvx or self.program or self.binary
        assert launch is not None
        return launch

    @property
    def command(self) -> tuple[str, ...]:
        """The command that starts it; empty if it is known only after the download."""
        return () if isinstance(self.launch, Binary) else self.launch.command

    @property
    def version(self) -> str | None:
        """The version that is started, or ``latest``; ``None`` for an agent that you have installed."""
        return None if isinstance(self.launch, Program) else self.launch.version

    def at(self, version: str) -> AgentProfile:
        """Return the profile for another version, such as ``latest``.

        Raises:
            ProfileError: Its version cannot be chosen.
        """
        match self.launch:
            case Npx() as npx:
                return replace(self, npx=replace(npx, version=version))
            case Uvx() as uvx:
                return replace(self, uvx=replace(uvx, version=version))
            case launch:
                how = "is downloaded" if isinstance(launch, Binary) else "you install yourself"
                reason = f"@{version} works for agents that npx or uvx download; this one {how}"
                raise ProfileError(self.name, reason, self.files)

    def started_by(self, command: Sequence[str]) -> AgentProfile:
        """Return the profile with your own command: another build, or one in a container.

        Args:
            command: Program and arguments.
        """
        program = Program(command=tuple(command))
        return replace(self, npx=None, uvx=None, binary=None, program=program)

    def hints(self, error: Exception) -> tuple[str, ...]:
        """Return the hints for an error, each once."""
        return tuple(dict.fromkeys(known.hint for known in self.errors if known.matches(error)))

    def classified(
        self, reported: AgentReported, agent: str, methods: Sequence[AuthMethod]
    ) -> AgentReported | None:
        """Return an error that an agent reported in the class of the first matching row, or ``None``.

        Args:
            reported: The error that it reported.
            agent: The agent's name.
            methods: The login methods that it offers.
        """
        rows = (known.classified(reported, agent, methods) for known in self.errors)
        return next((error for error in rows if error is not None), None)


@cache
def _types() -> Mapping[str, object]:
    """Return the types of the fields of a profile."""
    return {field.name: field.type for field in msgspec.structs.fields(AgentProfile)}


def advise(error: Exception, profile: AgentProfile) -> None:
    """Add the hints for an error of this agent to it, as notes."""
    hints = profile.hints(error)
    if isinstance(error, LoginRequired) and profile.login:
        by_hand = f"A login with its own program counts too, where you have that: {profile.login}"
        hints = (*hints, by_hand)
    for hint in hints:
        if hint not in getattr(error, "__notes__", ()):
            error.add_note(hint)


@contextmanager
def advising(profile: AgentProfile | None) -> Generator[None]:
    """Add hints to the errors that leave a block. Without a profile, do nothing."""
    try:
        yield
    except ThinkwellError as exc:
        if profile is not None:
            advise(exc, profile)
        raise


def profile_of(name: str, table: Mapping[str, object], files: Sequence[str]) -> AgentProfile:
    """Return the profile that a table of TOML describes.

    Args:
        name: The agent's name.
        table: The other keys of the profile.
        files: The files that it was read from, the most general first.

    Raises:
        ProfileError: It is not a valid profile.
    """
    for key in ("name", "files"):
        if key in table:
            raise ProfileError(name, f"a profile has no key {key!r}", files)
    try:
        return msgspec.convert({**table, "name": name, "files": tuple(files)}, AgentProfile)
    except msgspec.ValidationError as exc:
        reason = exc.__cause__.reason if isinstance(exc.__cause__, ProfileError) else str(exc)
        raise ProfileError(name, reason, files) from exc
