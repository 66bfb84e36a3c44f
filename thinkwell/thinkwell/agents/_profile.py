"""What is known of an agent, as data."""

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

__all__ = (
    "AgentProfile",
    "Archive",
    "Binary",
    "EnvironmentRules",
    "Launch",
    "Npx",
    "Program",
    "Quirk",
    "ToolTransport",
    "Uvx",
    "advise",
    "advising",
    "profile_of",
)

ToolTransport: TypeAlias = Literal["acp", "http", "stdio"]
"""How our tools reach an agent: over the ACP connection, over loopback HTTP, or through a small program that
the agent starts."""

LATEST: Final = "latest"
"""The version that stands for the newest one."""

COLD_START: Final = 300.0
"""Seconds that a first installation may take. The longest that users reported took 81 over a slow line."""

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""What an agent may be called: a name that is safe as the name of a file."""

VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,63}")
"""A version, or a name for one. No range, and no address: npx would take both, and run what is there."""

_NPM_PACKAGE: Final = re.compile(r"(@[A-Za-z0-9_][A-Za-z0-9._~-]*/)?[A-Za-z0-9_][A-Za-z0-9._~-]*")
_PYPI_PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?")
_VARIABLE: Final = re.compile(r"[^=\0]+")
_PYPI_PROGRAM: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class Npx(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent from npm, which ``npx`` fetches, keeps and runs."""

    package: str
    version: str = LATEST
    args: tuple[str, ...] = ()

    @property
    def spec(self) -> str:
        """The package and its version."""
        return f"{self.package}@{self.version}"

    @property
    def command(self) -> tuple[str, ...]:
        """What starts it (ACP registry, distribution ``npx``).

        npx asks the registry about every package, of a fixed version too, and does not start one that it has
        where a proxy refuses to ask, unless it is told to prefer what it knows.
        """
        known = () if self.version == LATEST else ("--prefer-offline",)
        return ("npx", "--yes", *known, self.spec, *self.args)


class Uvx(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent from PyPI, which ``uvx`` fetches, keeps and runs."""

    package: str
    version: str = LATEST
    program: str | None = None
    """What to run of the package, where it is not called like it."""
    args: tuple[str, ...] = ()

    @property
    def spec(self) -> str:
        """The package and its version."""
        return f"{self.package}@{self.version}"

    @property
    def command(self) -> tuple[str, ...]:
        """What starts it (ACP registry, distribution ``uvx``)."""
        if self.program is None:
            return ("uvx", self.spec, *self.args)
        return ("uvx", "--from", self.spec, self.program, *self.args)


class Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent that the user has installed."""

    command: tuple[str, ...]
    install: str = ""
    """What to type, or where to look, where it is missing."""


class Archive(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file to download for one kind of machine."""

    archive: str
    """Its address: a zip, a tar that is compressed, or the program itself."""
    cmd: str
    """The program within it, or the name of one that runs what is in it."""
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
"""The tables of a profile of which it has exactly one."""


class EnvironmentRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is changed of the caller's environment for an agent."""

    set: Mapping[str, str] = {}
    """Variables that it needs, whatever the caller's environment says; ``open_agent(env=…)`` says more."""
    strip: tuple[str, ...] = ()
    """Patterns of the names of variables that it must not see, such as ``CLAUDE_CODE_*``."""

    def applied(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the environment that comes of the caller's."""
        kept = {
            name: value
            for name, value in inherited.items()
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.strip)
        }
        return {**kept, **self.set}


class Quirk(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that an agent does and no specification says."""

    about: str
    version: str
    """The version that was seen to do it."""
    seen: dt.date
    """When."""


class AgentProfile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to start an agent, and what else is known of it.

    Exactly one of `npx`, `uvx`, `program` and `binary` is there. To change a profile, see
    `msgspec.structs.replace`.
    """

    name: str
    title: str = ""
    """What to show."""
    website: str = ""
    registry: str | None = None
    """Its id in the public registry of the Agent Client Protocol."""
    npx: Npx | None = None
    uvx: Uvx | None = None
    program: Program | None = None
    binary: Binary | None = None
    env: EnvironmentRules = EnvironmentRules()
    tools_via: tuple[ToolTransport, ...] = ()
    """The ways for our tools in the order in which they are preferred, of those that the agent offers."""
    bare_tool_names: bool = False
    """Whether it shows a call of an MCP tool by the tool's name alone. Our tools get names then that no other
    tool can have. Of any agent that is learnt when it asks for permission for one."""
    cold_start: float = COLD_START
    """Seconds that a first installation may take."""
    ends_on_eof: bool = True
    """Whether it exits when its standard input is closed. Else SIGTERM follows at once."""
    fails_in_text: bool = False
    """Whether it ends a turn that has failed like any other, with the failure as its message, and marks it as
    codex-acp does. Without the mark, nothing tells that from an answer."""
    whole_fields: bool = False
    """Whether it shows the arguments of a call, while its model writes them, field by field, each whole. Of
    any other agent, the last one may go on."""
    login: str = ""
    """What to type to log in with the agent's own program."""
    quirks: tuple[Quirk, ...] = ()
    errors: tuple[KnownError, ...] = ()
    """How its errors are recognised, and what to do about each."""
    files: tuple[str, ...] = ()
    """Where all of this was read, the most general first."""

    def __post_init__(self) -> None:
        """Check the types, which Python does not, and what they do not say.

        Raises:
            ProfileError: There is not exactly one way to start the agent, or one that cannot be.
        """
        self._check_types()
        if sum(getattr(self, key) is not None for key in LAUNCHES) != 1:
            self._refuse(f"give exactly one of {', '.join(LAUNCHES)}")
        if not self.cold_start > 0:  # not a number is no limit
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
            case _:  # a folder has its name
                self._check("name", self.name, NAME, "a name of small letters, digits and ._-")
        if self.version is not None:
            self._check("version", self.version, VERSION, "a version such as 1.2.3, or latest")
        for key, value in self.env.set.items():
            self._check("the name of a variable in env.set", key, _VARIABLE, "one that a system takes")
            if "\0" in value:
                self._refuse(f"env.set.{key} has a zero byte: no system takes that")

    def _check_types(self) -> None:
        for key, wanted in _types().items():
            value = getattr(self, key)
            try:
                # A struct that is there already would be taken as it is.
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
        """What starts it; empty where that is known only when it was downloaded."""
        return () if isinstance(self.launch, Binary) else self.launch.command

    @property
    def version(self) -> str | None:
        """The version that is started, or ``latest``; ``None`` where that is as it was installed."""
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
            case Binary():
                reason = f"@{version} is for agents that npx or uvx fetch; this one is downloaded"
            case _:
                reason = f"@{version} is for agents that npx or uvx fetch; this one is installed by you"
        raise ProfileError(self.name, reason, self.files)

    def started_by(self, command: Sequence[str]) -> AgentProfile:
        """Return the profile for your own program of this agent: another build, or one in a container.

        Args:
            command: Program and arguments.
        """
        program = Program(command=tuple(command))
        return replace(self, npx=None, uvx=None, binary=None, program=program)

    def hints(self, error: Exception) -> tuple[str, ...]:
        """Return what is known to do about an error, each hint once."""
        return tuple(dict.fromkeys(known.hint for known in self.errors if known.matches(error)))

    def classified(
        self, reported: AgentReported, agent: str, methods: Sequence[AuthMethod]
    ) -> AgentReported | None:
        """Return what an agent reported as an error of its class: that of the first row that knows one.

        Args:
            reported: What it reported.
            agent: The agent's name.
            methods: The ways to log in that it offers.
        """
        rows = (known.classified(reported, agent, methods) for known in self.errors)
        return next((error for error in rows if error is not None), None)


@cache
def _types() -> Mapping[str, object]:
    """Return the types of the fields of a profile."""
    return {field.name: field.type for field in msgspec.structs.fields(AgentProfile)}


def advise(error: Exception, profile: AgentProfile) -> None:
    """Add to an error, as notes, what is known to do about it where it comes of this agent."""
    hints = profile.hints(error)
    if isinstance(error, LoginRequired) and profile.login:
        by_hand = f"A login with its own program counts too, where you have that: {profile.login}"
        hints = (*hints, by_hand)
    for hint in hints:
        if hint not in getattr(error, "__notes__", ()):
            error.add_note(hint)


@contextmanager
def advising(profile: AgentProfile | None) -> Generator[None]:
    """Add what is known to do about them to the errors that leave a block; nothing without a profile."""
    try:
        yield
    except ThinkwellError as exc:
        if profile is not None:
            advise(exc, profile)
        raise


def profile_of(name: str, table: Mapping[str, object], files: Sequence[str]) -> AgentProfile:
    """Return the profile that a table of TOML comes to.

    Args:
        name: What the agent is called.
        table: Everything else of a profile.
        files: Where it was read, the most general first.

    Raises:
        ProfileError: It is none.
    """
    for key in ("name", "files"):
        if key in table:
            raise ProfileError(name, f"there is no key {key!r} in a profile", files)
    try:
        return msgspec.convert({**table, "name": name, "files": tuple(files)}, AgentProfile)
    except msgspec.ValidationError as exc:
        reason = exc.__cause__.reason if isinstance(exc.__cause__, ProfileError) else str(exc)
        raise ProfileError(name, reason, files) from exc
