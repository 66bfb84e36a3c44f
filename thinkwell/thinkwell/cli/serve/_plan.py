"""The plan of ``thinkwell serve``: the agents for callers, their folders, and the storage of runs."""

from __future__ import annotations

import ipaddress
import os
import secrets
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import typer
from msgspec import Struct
from msgspec.structs import replace

from thinkwell import Budget, PermissionMode, PermissionPolicy
from thinkwell._core.exit import find_starter
from thinkwell.agents import state_folder
from thinkwell.cli._config_files import read_secret
from thinkwell.cli._errors import words
from thinkwell.cli._launch import chosen_agent, read_permissions, retrying
from thinkwell.cli._options import at_home
from thinkwell.cli.serve._config import AgentSection, Config, read_config
from thinkwell.errors import ThinkwellError
from thinkwell.journal import Journal, MemoryJournal, SqliteJournal
from thinkwell.web import Access, ServedAgent, served_agent
from thinkwell.web.access import read_authority, token_flaw

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from thinkwell.agents import AgentProfile

TOKEN_VARIABLE: Final = "THINKWELL_SERVE_TOKEN"  # noqa: S105 - the name of a variable
"""The variable with the token, if there is one caller."""

OPERATOR: Final = "operator"
"""The name of the caller, if there is one."""

GOOD_TOKEN: Final = 'this makes a good one: python3 -c "import secrets; print(secrets.token_urlsafe(32))"'  # noqa: S105

NO_TOKEN: Final = (
    "{place} is not this machine alone, so callers have to have a token. Put one into the "
    f"environment variable {TOKEN_VARIABLE}, or into a file that --token-file names; {GOOD_TOKEN}"
)


class Plan(Struct, frozen=True, kw_only=True):
    """What to serve, and how. Everything in it is valid."""

    agents: Mapping[str, ServedAgent]
    missing: Sequence[str]
    """Why some of them cannot be started, such as a missing program."""
    access: Access
    secret: str | None
    """The generated token, which must be printed."""
    journal: Journal
    kept: str
    """Where runs are stored, in words."""
    config: Config
    """The content of the file, overridden by the options."""
    verbose: bool


def read_plan(
    *,
    agents: Sequence[str],
    commands: Sequence[str],
    model: str | None,
    retry: int,
    fallback: Sequence[str] | None,
    config: Path | None,
    host: str | None,
    port: int | None,
    journal: str | None,
    token_file: Path | None,
    cwd: Path | None,
    permissions: str | None,
    no_page: bool,
    no_letta: bool,
    verbose: bool,
) -> Plan:
    """Return the plan. Afterwards its secrets are not in the environment any more, which agents inherit.

    Raises:
        typer.BadParameter: A value cannot be used.
        AgentNotFound: An agent does not exist.
        ProfileError: A profile cannot be read.
        ImportError: The package for Redis is not installed.
    """
    config = None if config is None else at_home(config)
    file = read_config(config)
    file = replace(
        file,
        host=host or file.host,
        port=file.port if port is None else port,
        page=file.page and not no_page,
        letta=file.letta and not no_letta,
    )
    with _told_of(config):
        if agents or commands or not file.agents:
            section = AgentSection(
                folders={} if cwd is None else {"default": str(cwd)},
                models=[model] if model else [],
                retry=retry,
                fallback=list(fallback or ()),
            )
            served = _agents_of_options(agents, commands, section, permissions)
        else:
            for option, given in (
                ("--cwd", cwd),
                ("--permissions", permissions),
                ("--model", model),
                ("--retry", retry or None),
                ("--fallback", fallback),
            ):
                if given is not None:
                    told = "the agents of the file have their own; name them there, or give --agent as well"
                    raise typer.BadParameter(told, param_hint=option)
            served = {name: _agent_of_file(name, agent, file) for name, agent in file.agents.items()}
        tokens = _tokens(file, None if token_file is None else at_home(token_file))
        secret = None
        if not tokens:
            if not is_loopback(file.host):
                raise typer.BadParameter(NO_TOKEN.format(place=file.host), param_hint="--host")
            secret = secrets.token_urlsafe(32)
            tokens[secret] = OPERATOR
        access = _access(tokens, file)
        kept, where = _journal(journal, file)
    return Plan(
        # If it generates the only secret itself, the reader is the operator.
        agents={name: replace(agent, show_stderr=secret is not None) for name, (_, agent) in served.items()},
        missing=[why for profile, agent in served.values() if (why := _missing(profile, agent)) is not None],
        access=access,
        secret=secret,
        journal=kept,
        kept=where,
        config=file,
        verbose=verbose,
    )


@contextmanager
def _told_of(config: Path | None) -> Generator[None]:
    """Add the name of the file to errors about its contents."""
    try:
        yield
    except typer.BadParameter as exc:
        if exc.param_hint != "--config":
            raise
        raise typer.BadParameter(f"{config}: {exc.message}", param_hint="--config") from None


# Agents


_Agent: TypeAlias = "tuple[AgentProfile, ServedAgent]"


def _agents_of_options(
    agents: Sequence[str], commands: Sequence[str], section: AgentSection, permissions: str | None
) -> dict[str, _Agent]:
    permissions = None if permissions is None else str(at_home(Path(permissions)))
    rules = read_permissions(permissions, can_ask=True)
    name = rules if isinstance(rules, str) else Path(permissions or "").stem
    policies: dict[str, PermissionMode | PermissionPolicy] = {name: rules}
    sections = [
        *(replace(section, agent=name) for name in agents),
        *(replace(section, command=line) for line in commands),
    ] or [section]
    for option, given in (("--model", section.models), ("--fallback", section.fallback)):
        if given and len(sections) > 1:
            told = "it is that of one agent; name those of several in a file, by --config"
            raise typer.BadParameter(told, param_hint=option)
    served: dict[str, _Agent] = {}
    for each in sections:
        try:
            profile, agent = _served(each, policies)
        except ValueError as exc:
            raise typer.BadParameter(str(exc), param_hint="--fallback") from None
        if profile.name in served:
            told = f"two agents are called {profile.name}; call them something else in a file, by --config"
            raise typer.BadParameter(told, param_hint="--agent")
        served[profile.name] = profile, agent
    return served


def _agent_of_file(name: str, agent: AgentSection, file: Config) -> _Agent:
    where = f"agents.{name}"
    if agent.agent is None and agent.command is None:
        agent = replace(agent, agent=name)
    try:
        return _served(agent, {each: _policy(each, file) for each in agent.permissions or ("ask",)})
    except NotADirectoryError as exc:
        folder = str(exc).partition("there is ")[2]
        raise typer.BadParameter(f"{where}.folders: there is {folder}", param_hint="--config") from None
    except ValueError as exc:
        raise typer.BadParameter(f"{where}.{exc}", param_hint="--config") from None
    except typer.BadParameter as exc:
        raise typer.BadParameter(f"{where}: {exc.message}", param_hint="--config") from None


def _served(section: AgentSection, permissions: Mapping[str, PermissionMode | PermissionPolicy]) -> _Agent:
    """Return an agent for callers, and its profile. Raises what `chosen_agent` and `served_agent` raise."""
    profile = chosen_agent(section.agent, section.command)
    limited = section.max_tokens is not None or section.max_cost is not None
    return profile, served_agent(
        profile,
        title=section.title,
        folders=section.folders or {"default": str(Path.cwd())},
        permissions=permissions,
        question_timeout=section.question_timeout,
        timeout=section.timeout or None,
        idle_timeout=section.idle_timeout or None,
        budget=partial(Budget, max_tokens=section.max_tokens, max_cost=section.max_cost) if limited else None,
        models=section.models,
        retry=retrying(section.retry),
        fallback=section.fallback or None,
    )


def _missing(profile: AgentProfile, agent: ServedAgent) -> str | None:
    """Return why an agent cannot be started now, as far as this can be seen without starting it."""
    try:
        find_starter(profile, next(iter(agent.folders.values())))
    except ThinkwellError as exc:
        what, next_ = words(exc)
        return " ".join(f"{what}. Until then its runs fail. {next_}".split())  # in one line
    return None


def _policy(name: str, file: Config) -> PermissionMode | PermissionPolicy:
    try:
        return read_permissions(file.permissions.get(name, name), can_ask=True)
    except typer.BadParameter as exc:
        raise typer.BadParameter(f"permissions: {name}: {exc.message}", param_hint="--config") from None


# Callers


def _tokens(file: Config, token_file: Path | None) -> dict[str, str]:
    """Return the names of the callers, by token."""
    tokens: dict[str, str] = {}

    def add(caller: str, key: str, source: Path | str, hint: str | None = "--config") -> None:
        """Add the token in a file or a variable, which a key of the settings names."""
        token = read_secret(source, key, hint) if isinstance(source, Path) else _taken(source, key)
        if (flaw := token_flaw(token)) is not None:
            what = f"{key}the token in {source} {flaw}; {GOOD_TOKEN}"
            raise typer.BadParameter(what, param_hint=hint)
        if tokens.setdefault(token, caller) != caller:
            what = f"{tokens[token]} and {caller} have the same token; give each its own"
            raise typer.BadParameter(what, param_hint="--config")

    if token_file is not None:
        add(OPERATOR, "", token_file, "--token-file")
    elif file.token_file is not None:
        add(OPERATOR, "token_file: ", Path(file.token_file))
    elif file.token_env is not None:
        add(OPERATOR, "token_env: ", file.token_env)
    elif os.environ.get(TOKEN_VARIABLE, "").strip():
        add(OPERATOR, "", TOKEN_VARIABLE, None)
    for name, caller in file.callers.items():
        if caller.token_file is not None:
            add(name, f"callers.{name}.token_file: ", Path(caller.token_file))
        if caller.token_env is not None:
            add(name, f"callers.{name}.token_env: ", caller.token_env)
    os.environ.pop(TOKEN_VARIABLE, None)
    return tokens


def _taken(variable: str, key: str = "") -> str:
    """Take a secret out of the environment.

    Args:
        variable: The variable.
        key: The key of the file that names the variable.
    """
    secret = os.environ.pop(variable, "").strip()
    if key and not secret:
        what = f"{key}the environment variable {variable} is not set, or is empty"
        raise typer.BadParameter(what, param_hint="--config")
    return secret


def _access(tokens: Mapping[str, str], file: Config) -> Access:
    try:
        return Access(
            tokens,
            hosts=[*([file.host] if _is_name(file.host) else []), *file.hosts],
            origins=file.origins,
            proxies=file.proxies,
            session_age=file.session_age,
        )
    except ValueError as exc:
        raise typer.BadParameter(str(exc), param_hint="--config") from None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_name(host: str) -> bool:
    """Return whether a host is a name for requests to the server."""
    return read_authority(host) is not None and not _is_address(host)


def is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host.lower() == "localhost"


# Storage of runs


def _journal(given: str | None, file: Config) -> tuple[Journal, str]:
    """Return the journal, and where it is in words."""
    where = str(at_home(Path(given))) if given else file.journal or str(state_folder() / "runs.db")
    variable = file.redis_env
    address = _taken(variable)
    if where == "memory":
        return MemoryJournal(), "in memory, as long as this runs"
    if where == "redis":
        from thinkwell.journal.redis import RedisJournal

        if not address:
            told = f"there is no address of Redis; put it into the environment variable {variable}"
            raise typer.BadParameter(told, param_hint="--journal")
        try:
            return RedisJournal(address), "in Redis"
        except ValueError:
            told = f"the environment variable {variable} has no address such as redis://user:password@host:6379/0"
            raise typer.BadParameter(told, param_hint="--journal") from None
    if given and "://" in given:
        raise typer.BadParameter(
            "an address may have a password in it, and other users of this machine can see how a program was "
            f"started. Put it into the environment variable {variable}, and give --journal redis",
            param_hint="--journal",
        )
    return SqliteJournal(where), f"in {where}"
