"""The plan of ``thinkwell serve``: the agents for callers, their folders, and the storage of runs."""

from __future__ import annotations

import ipaddress
import os
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from msgspec import Struct
from msgspec.structs import replace

from thinkwell import Budget, PermissionMode, PermissionPolicy
from thinkwell._core.exit import QUESTION_TIMEOUT, find_starter
from thinkwell.agents import state_folder
from thinkwell.cli._config_files import at_home, read_secret
from thinkwell.cli._errors import words
from thinkwell.cli._launch import chosen_agent, read_permissions, retrying
from thinkwell.cli.serve._config import AgentSection, Config, read_config
from thinkwell.errors import ThinkwellError
from thinkwell.journal import Journal, MemoryJournal, SqliteJournal
from thinkwell.web import Access, ServedAgent, served_agent
from thinkwell.web.access import SESSION_AGE, read_authority, token_flaw

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from thinkwell.agents import AgentProfile

TOKEN_VARIABLE: Final = "THINKWELL_SERVE_TOKEN"  # noqa: S105 - the name of a variable
"""The variable with the token, if there is one caller."""

REDIS_VARIABLE: Final = "THINKWELL_SERVE_REDIS"
"""The variable with the address of Redis, unless the file names another."""

OPERATOR: Final = "operator"
"""The name of the caller, if there is one."""

HOST: Final = "127.0.0.1"

PORT: Final = 8283
"""The port of a self-hosted Letta server: their clients look there."""

RUN_TIMEOUT: Final = 3600.0
"""Default seconds for a run."""

RUN_IDLE_TIMEOUT: Final = 600.0

IDLE_AFTER: Final = 3600.0
"""Default seconds until an unused conversation ends."""

GOOD_TOKEN: Final = 'this makes a good one: python3 -c "import secrets; print(secrets.token_urlsafe(32))"'  # noqa: S105

NO_TOKEN: Final = (
    "{place} is not this machine alone, so callers have to have a token. Put one into the "
    f"environment variable {TOKEN_VARIABLE}, or into a file that --token-file names; {GOOD_TOKEN}"
)


class Plan(Struct, frozen=True, kw_only=True):
    """What to serve, and how. Everything in it is valid."""

    agents: Mapping[str, ServedAgent]
    missing: tuple[str, ...]
    """Why some of them cannot be started, such as a missing program."""
    access: Access
    secret: str | None
    """The generated token, which must be printed."""
    journal: Journal
    kept: str
    """Where runs are stored, in words."""
    host: str
    port: int
    page: bool
    letta: bool
    config: Config
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
    place = host or file.host or HOST
    with _told_of(config):
        if agents or commands or not file.agents:
            served = _agents_of_options(
                agents, commands, cwd, permissions, model=model, retry=retry, fallback=fallback
            )
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
            served = [_agent_of_file(name, agent, file) for name, agent in file.agents.items()]
        tokens = _tokens(file, None if token_file is None else at_home(token_file))
        secret = None
        if not tokens:
            if not is_loopback(place):
                raise typer.BadParameter(NO_TOKEN.format(place=place), param_hint="--host")
            secret = secrets.token_urlsafe(32)
            tokens[secret] = OPERATOR
        access = _access(tokens, place, file)
        kept, where = _journal(journal, file)
    return Plan(
        # If it generates the only secret itself, the reader is the operator.
        agents={each.name: replace(each.agent, show_stderr=secret is not None) for each in served},
        missing=tuple(each.missing for each in served if each.missing is not None),
        access=access,
        secret=secret,
        journal=kept,
        kept=where,
        host=place,
        port=port if port is not None else PORT if file.port is None else file.port,
        page=file.page and not no_page,
        letta=file.letta and not no_letta,
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


class _Served(Struct, frozen=True):
    """An agent for callers."""

    name: str
    agent: ServedAgent
    missing: str | None
    """Why it cannot be started now."""


def _agents_of_options(
    agents: Sequence[str],
    commands: Sequence[str],
    cwd: Path | None,
    permissions: str | None,
    *,
    model: str | None,
    retry: int,
    fallback: Sequence[str] | None,
) -> list[_Served]:
    permissions = None if permissions is None else str(at_home(Path(permissions)))
    rules = read_permissions(permissions, can_ask=True)
    policies: dict[str, PermissionMode | PermissionPolicy] = {
        rules if isinstance(rules, str) else Path(permissions or "").stem: rules
    }
    profiles = [
        *(chosen_agent(name, None) for name in agents),
        *(chosen_agent(None, line) for line in commands),
    ] or [chosen_agent(None, None)]
    for option, given in (("--model", model), ("--fallback", fallback)):
        if given is not None and len(profiles) > 1:
            told = "it is that of one agent; name those of several in a file, by --config"
            raise typer.BadParameter(told, param_hint=option)
    served: dict[str, _Served] = {}
    for profile in profiles:
        if profile.name in served:
            told = f"two agents are called {profile.name}; call them something else in a file, by --config"
            raise typer.BadParameter(told, param_hint="--agent")
        try:
            agent = served_agent(
                profile,
                title=_title(profile),
                folders={"default": cwd or Path.cwd()},
                permissions=policies,
                models=() if model is None else (model,),
                retry=retrying(retry),
                fallback=fallback,
            )
        except ValueError as exc:
            raise typer.BadParameter(str(exc), param_hint="--fallback") from None
        served[profile.name] = _Served(profile.name, agent, _missing(profile, cwd or Path.cwd()))
    return list(served.values())


def _agent_of_file(name: str, agent: AgentSection, file: Config) -> _Served:
    where = f"agents.{name}"
    try:
        named = agent.agent if agent.command is not None else agent.agent or name
        profile = chosen_agent(named, agent.command)
        folders = agent.folders or {"default": str(Path.cwd())}
        served = served_agent(
            profile,
            title=agent.title or _title(profile),
            folders=folders,
            permissions={each: _policy(each, file) for each in agent.permissions or ("ask",)},
            question_timeout=agent.question_timeout or QUESTION_TIMEOUT,
            timeout=_seconds(agent.timeout, RUN_TIMEOUT),
            idle_timeout=_seconds(agent.idle_timeout, RUN_IDLE_TIMEOUT),
            budget=_budget(agent),
            models=agent.models,
            retry=retrying(agent.retry),
            fallback=agent.fallback or None,
        )
        return _Served(name, served, _missing(profile, Path(next(iter(folders.values())))))
    except NotADirectoryError as exc:
        folder = str(exc).partition("there is ")[2]
        raise typer.BadParameter(f"{where}.folders: there is {folder}", param_hint="--config") from None
    except ValueError as exc:
        raise typer.BadParameter(f"{where}.{exc}", param_hint="--config") from None
    except typer.BadParameter as exc:
        raise typer.BadParameter(f"{where}: {exc.message}", param_hint="--config") from None


def _missing(profile: AgentProfile, folder: Path) -> str | None:
    """Return why an agent cannot be started now, as far as this can be seen without starting it."""
    try:
        find_starter(profile, folder)
    except ThinkwellError as exc:
        what, next_ = words(exc)
        return " ".join(f"{what}. Until then its runs fail. {next_}".split())  # in one line
    return None


def _title(profile: AgentProfile) -> str:
    return profile.title or profile.name


def _policy(name: str, file: Config) -> PermissionMode | PermissionPolicy:
    try:
        return read_permissions(file.permissions.get(name, name), can_ask=True)
    except typer.BadParameter as exc:
        raise typer.BadParameter(f"permissions: {name}: {exc.message}", param_hint="--config") from None


def _seconds(given: float | None, default: float) -> float | None:
    return default if given is None else given or None


def _budget(agent: AgentSection) -> Callable[[], Budget] | None:
    if agent.max_tokens is None and agent.max_cost is None:
        return None
    return lambda: Budget(max_tokens=agent.max_tokens, max_cost=agent.max_cost)


# Callers


def _tokens(file: Config, token_file: Path | None) -> dict[str, str]:
    """Return the names of the callers, by token."""
    tokens: dict[str, str] = {}

    def add(caller: str, token: str, source: str, key: str = "", hint: str | None = "--config") -> None:
        flaw = token_flaw(token)
        if flaw is not None:
            what = f"{key}the token in {source} {flaw}; {GOOD_TOKEN}"
            raise typer.BadParameter(what, param_hint=hint)
        if tokens.setdefault(token, caller) != caller:
            what = f"{tokens[token]} and {caller} have the same token; give each its own"
            raise typer.BadParameter(what, param_hint="--config")

    def add_of_file(caller: str, path: Path, key: str = "", hint: str = "--config") -> None:
        add(caller, read_secret(path, key, hint), str(path), key, hint)

    if token_file is not None:
        add_of_file(OPERATOR, token_file, hint="--token-file")
    elif file.token_file is not None:
        add_of_file(OPERATOR, Path(file.token_file), "token_file: ")
    elif file.token_env is not None:
        add(OPERATOR, _taken(file.token_env, "token_env: "), file.token_env, "token_env: ")
    elif token := _taken(TOKEN_VARIABLE):
        add(OPERATOR, token, TOKEN_VARIABLE, hint=None)
    for name, caller in file.callers.items():
        key = f"callers.{name}."
        if caller.token_file is not None:
            add_of_file(name, Path(caller.token_file), f"{key}token_file: ")
        if caller.token_env is not None:
            variable = caller.token_env
            add(name, _taken(variable, f"{key}token_env: "), variable, f"{key}token_env: ")
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


def _access(tokens: Mapping[str, str], host: str, file: Config) -> Access:
    try:
        return Access(
            tokens,
            hosts=[*([host] if _is_name(host) else []), *file.hosts],
            origins=file.origins,
            proxies=file.proxies,
            session_age=file.session_age or SESSION_AGE,
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
    variable = file.redis_env or REDIS_VARIABLE
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
    if "://" in (given or where):
        raise typer.BadParameter(
            "an address may have a password in it, and other users of this machine can see how a program was "
            f"started. Put it into the environment variable {variable}, and give --journal redis",
            param_hint="--journal",
        )
    return SqliteJournal(where), f"in {where}"
