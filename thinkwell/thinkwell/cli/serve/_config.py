"""The configuration file of ``thinkwell serve``."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeAlias, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from thinkwell._core.exit import QUESTION_TIMEOUT
from thinkwell._core.schema.json_schema import is_object
from thinkwell._core.schema.settings import convert_settings, path_from, unknown_key
from thinkwell.cli._config_files import read_settings
from thinkwell.journal import Retention
from thinkwell.web import Limits
from thinkwell.web.access import SESSION_AGE

T = TypeVar("T", bound=Struct)

_AGENT_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
"""Characters that need no escape in an address."""

_LARGEST_NUMBER: Final = 2**53

WORDS: Final = ("deny", "ask", "allow")
"""Permissions that are not a file."""

REDIS_VARIABLE: Final = "THINKWELL_SERVE_REDIS"
"""The variable with the address of Redis, unless the file names another."""

PORT: Final = 8283
"""The port of a self-hosted Letta server: their clients look there."""

JOURNALS: Final = ("memory", "redis")
"""Journals that are not a file."""

Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=10_000)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=1e10)]
SecondsOrNever: TypeAlias = Seconds | bool
"""``False``: never."""


class AgentSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent for callers. ``None``: not in the file."""

    agent: Text | None = None
    """Its name, if callers use another one; with a version, if wanted."""
    command: Text | None = None
    """Or its command."""
    title: str = ""
    """Its title for people."""
    folders: dict[str, Text] = {}
    """Its folders, by the names for callers."""
    permissions: list[str] | None = None
    """Its permissions, by the names for callers."""
    models: list[Text] = []
    """The models for callers."""
    retry: Annotated[int, Meta(ge=0)] = 0
    """How many times a turn is tried again."""
    fallback: list[Text] = []
    """The agents to open if it does not start."""
    timeout: SecondsOrNever = 3600.0
    """For a run."""
    idle_timeout: SecondsOrNever = 600.0
    """Of silence."""
    question_timeout: Seconds = QUESTION_TIMEOUT
    """Until an unanswered question is denied."""
    max_tokens: Annotated[int, Meta(gt=0)] | None = None
    """For a run."""
    max_cost: Annotated[float, Meta(gt=0, le=1e10)] | None = None
    """For a run, in dollars."""


class CallerSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A caller, and where its tokens are."""

    token_env: Text | None = None
    token_file: Text | None = None


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file. ``None``: not in the file."""

    host: Text = "127.0.0.1"
    """Where to listen."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = PORT
    journal: Text | None = None
    """Where to store runs: a file, ``memory`` or ``redis``."""
    redis_env: Text = REDIS_VARIABLE
    """The environment variable with the address of Redis."""
    token_env: Text | None = None
    """The environment variable with the token, if there is one caller."""
    token_file: Text | None = None
    """Or the file with the token."""
    hosts: list[Text] = []
    """Names of the server; this, and what follows, as in `Access`."""
    origins: list[Text] = []
    proxies: list[Text] = []
    session_age: Seconds = SESSION_AGE
    page: bool = True
    """Whether to serve the page."""
    letta: bool = True
    """Whether to serve Letta clients."""
    idle_after: SecondsOrNever = 3600.0
    """Until an unused conversation ends."""
    abandoned_after: Seconds | None = None
    """Until a run without watchers is cancelled."""
    agents: dict[str, AgentSection] = {}
    permissions: dict[str, Text] = {}
    """Modes or files of rules, by name."""
    callers: dict[str, CallerSection] = {}
    limits: Limits | None = None
    retention: Retention | None = None


def read_config(path: Path | None) -> Config:
    """Read a file, as `read_settings` does."""
    return read_settings(path, _checked)


def _checked(table: dict[str, object], folder: Path) -> Config:
    config = _read(table)
    _check(config)
    return _with_paths(config, folder)


def _read(table: dict[str, object]) -> Config:
    """Convert section by section, so that an error can name the section."""
    agents = {
        name: _convert(section, AgentSection, f"agents.{name}")
        for name, section in _section(table, "agents").items()
    }
    callers = {
        name: _convert(section, CallerSection, f"callers.{name}")
        for name, section in _section(table, "callers").items()
    }
    limits = _numbers(_section(table, "limits"), Limits, "limits")
    retention = _numbers(_section(table, "retention"), Retention, "retention")
    return replace(
        _convert(table, Config, ""), agents=agents, callers=callers, limits=limits, retention=retention
    )


def _section(table: dict[str, object], key: str) -> dict[str, object]:
    section = table.pop(key, {})
    if not is_object(section):
        raise ValueError(f"{key}: give a table, such as [{key}]")
    return section


def _convert(section: object, kind: type[T], at: str) -> T:
    return convert_settings(section, kind, partial(_unknown, kind), at=at)


def _numbers(section: dict[str, object], kind: type[T], at: str) -> T | None:
    """Convert a section of numbers above 0."""
    for key, value in section.items():
        if key not in kind.__struct_fields__:
            raise ValueError(_unknown(kind, at, key))
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST_NUMBER:
            raise ValueError(f"{at}.{key}: give a whole number above 0")
    return kind(**section) if section else None


def _unknown(kind: type[Struct], at: str, key: str) -> str:
    if key in ("token", "secret", "key", "password", "redis"):
        return (
            f"{at and f'{at}.'}{key!r}: a secret does not belong into this file. Put it into an environment "
            "variable, or into a file that only you can read, and name that: token_env, token_file, redis_env"
        )
    return unknown_key(at, key, kind.__struct_fields__)


def _check(config: Config) -> None:
    """Check what msgspec does not: combinations of keys.

    Raises:
        ValueError: They are invalid.
    """
    for name in config.permissions:
        if name in WORDS:
            raise ValueError(f"permissions.{name}: that name has its own meaning; take another")
    for name, agent in config.agents.items():
        _check_agent(name, agent, {*WORDS, *config.permissions})
    for name, caller in config.callers.items():
        if caller.token_env is None and caller.token_file is None:
            raise ValueError(f"callers.{name}: give token_env or token_file")
    if config.idle_after is True:
        raise ValueError("idle_after: give a number of seconds above 0, or false")


def _check_agent(name: str, agent: AgentSection, permissions: set[str]) -> None:
    where = f"agents.{name}"
    if not _AGENT_NAME.fullmatch(name):
        raise ValueError(f"{where!r:.80}: a name has up to 64 letters, digits, and - . _ within")
    if agent.permissions == []:
        raise ValueError(f"{where}.permissions: give at least one")
    for each in agent.permissions or ():
        if each not in permissions:
            words = f"there are no {each!r:.60}; name them in [permissions]"
            raise ValueError(f"{where}.permissions: {words}")
    for key in ("timeout", "idle_timeout"):
        if getattr(agent, key) is True:
            raise ValueError(f"{where}.{key}: give a number of seconds above 0, or false")


def _with_paths(config: Config, folder: Path) -> Config:
    """Resolve the paths in the file from its folder."""

    def found(key: str, name: str | None) -> str | None:
        return None if name is None else str(path_from(folder, name, at=key))

    agents = {
        name: replace(
            agent,
            folders={
                known: str(path_from(folder, path, at=f"agents.{name}.folders"))
                for known, path in agent.folders.items()
            },
        )
        for name, agent in config.agents.items()
    }
    callers = {
        name: replace(caller, token_file=found(f"callers.{name}.token_file", caller.token_file))
        for name, caller in config.callers.items()
    }
    permissions = {
        name: rules if rules in WORDS else str(path_from(folder, rules, at=f"permissions.{name}"))
        for name, rules in config.permissions.items()
    }
    journal = config.journal if config.journal in JOURNALS else found("journal", config.journal)
    token_file = found("token_file", config.token_file)
    return replace(
        config,
        agents=agents,
        callers=callers,
        permissions=permissions,
        journal=journal,
        token_file=token_file,
    )
