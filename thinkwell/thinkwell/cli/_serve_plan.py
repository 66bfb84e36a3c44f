"""What ``thinkwell serve`` was asked for: which agents for whom, where, and where runs are kept."""

from __future__ import annotations

import ipaddress
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from msgspec import Struct

from thinkwell import Budget, PermissionMode, PermissionPolicy
from thinkwell._asking import QUESTION_TIMEOUT
from thinkwell.agents._folders import state_folder
from thinkwell.cli._config_files import read_secret
from thinkwell.cli._serve_config import AgentSection, Config, read_config
from thinkwell.cli._task import chosen_agent, read_permissions
from thinkwell.journal import Journal, MemoryJournal, SqliteJournal
from thinkwell.web import Access, ServedAgent, served_agent
from thinkwell.web.access import SESSION_AGE, read_authority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from thinkwell.agents import AgentProfile

TOKEN_VARIABLE: Final = "THINKWELL_SERVE_TOKEN"  # noqa: S105 - the name of a variable
"""Where the token is, where there is one caller."""

REDIS_VARIABLE: Final = "THINKWELL_SERVE_REDIS"
"""Where the address of Redis is, unless the file says something else."""

OPERATOR: Final = "operator"
"""What the caller is called where there is one."""

HOST: Final = "127.0.0.1"

PORT: Final = 8283
"""Where a server of Letta's listens that is somebody's own: their clients look there."""

RUN_TIMEOUT: Final = 3600.0
"""Seconds that a run may take, unless the file says something else."""

RUN_IDLE_TIMEOUT: Final = 600.0

IDLE_AFTER: Final = 3600.0
"""Seconds after which a conversation ends that nobody goes on with."""

NO_TOKEN: Final = (
    "{place} is not this machine alone, so whoever may use the server has to have a token. Put one into the "
    f"environment variable {TOKEN_VARIABLE}, or into a file that --token-file names; this makes a good one: "
    'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
)


class Plan(Struct, frozen=True, kw_only=True):
    """What is to be served, and how. Everything in it can be used."""

    agents: Mapping[str, ServedAgent]
    access: Access
    secret: str | None
    """The token that was made, and has to be told."""
    journal: Journal
    kept: str
    """Where runs are kept, in words."""
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
    """Return what was asked for. No secret of it is in the environment any more, which agents inherit.

    Raises:
        typer.BadParameter: Something cannot be used.
        AgentNotFound: There is no such agent.
        ProfileError: What is known of one cannot be read.
        ImportError: What keeps runs in Redis is not installed.
    """
    file = read_config(config)
    if agents or commands or not file.agents:
        served = _agents_of_options(agents, commands, cwd, permissions)
    else:
        for option, given in (("--cwd", cwd), ("--permissions", permissions)):
            if given is not None:
                words = "the agents of the file have their own; name them there, or give --agent as well"
                raise typer.BadParameter(words, param_hint=option)
        served = {name: _agent_of_file(name, agent, file) for name, agent in file.agents.items()}
    place = host or file.host or HOST
    tokens = _tokens(file, token_file)
    secret = None
    if not tokens:
        if not is_loopback(place):
            raise typer.BadParameter(NO_TOKEN.format(place=place), param_hint="--host")
        secret = secrets.token_urlsafe(32)
        tokens[secret] = OPERATOR
    kept, where = _journal(journal, file)
    return Plan(
        agents=served,
        access=_access(tokens, place, file),
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


# Agents


def _agents_of_options(
    agents: Sequence[str], commands: Sequence[str], cwd: Path | None, permissions: str | None
) -> dict[str, ServedAgent]:
    rules = read_permissions(permissions, can_ask=True)
    policies: dict[str, PermissionMode | PermissionPolicy] = {
        rules if isinstance(rules, str) else Path(permissions or "").stem: rules
    }
    profiles = [
        *(chosen_agent(name, None) for name in agents),
        *(chosen_agent(None, line) for line in commands),
    ] or [chosen_agent(None, None)]
    served: dict[str, ServedAgent] = {}
    for profile in profiles:
        if profile.name in served:
            words = f"two agents are called {profile.name}; call them something else in a file, by --config"
            raise typer.BadParameter(words, param_hint="--agent")
        served[profile.name] = served_agent(
            profile, title=_title(profile), folders={"default": cwd or Path.cwd()}, permissions=policies
        )
    return served


def _agent_of_file(name: str, agent: AgentSection, file: Config) -> ServedAgent:
    where = f"agents.{name}"
    try:
        if agent.command is not None:
            profile = chosen_agent(None, agent.command)
        else:
            profile = chosen_agent(agent.agent or name, None)
        return served_agent(
            profile,
            title=agent.title or _title(profile),
            folders=agent.folders or {"default": Path.cwd()},
            permissions={each: _policy(each, file) for each in agent.permissions or ("ask",)},
            question_timeout=agent.question_timeout or QUESTION_TIMEOUT,
            timeout=_seconds(agent.timeout, RUN_TIMEOUT),
            idle_timeout=_seconds(agent.idle_timeout, RUN_IDLE_TIMEOUT),
            budget=_budget(agent),
        )
    except NotADirectoryError as exc:
        folder = str(exc).partition("there is ")[2]
        raise typer.BadParameter(f"{where}.folders: there is {folder}", param_hint="--config") from None
    except typer.BadParameter as exc:
        raise typer.BadParameter(f"{where}: {exc.message}", param_hint="--config") from None


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


# Who may


def _tokens(file: Config, token_file: Path | None) -> dict[str, str]:
    """Return the names of the callers by their tokens."""
    tokens: dict[str, str] = {}

    def add(token: str, caller: str) -> None:
        if tokens.setdefault(token, caller) != caller:
            words = f"{tokens[token]} and {caller} have the same token; give each one of his own"
            raise typer.BadParameter(words, param_hint="--config")

    named = file.token_env or TOKEN_VARIABLE
    if token_file is not None:
        add(read_secret(token_file, "", "--token-file"), OPERATOR)
    elif file.token_file is not None:
        add(read_secret(Path(file.token_file), "token_file: ", "--config"), OPERATOR)
    elif token := _taken(named, needed=file.token_env is not None, what="token_env"):
        add(token, OPERATOR)
    for name, caller in file.callers.items():
        what = f"callers.{name}."
        if caller.token_file is not None:
            add(read_secret(Path(caller.token_file), f"{what}token_file: ", "--config"), name)
        if caller.token_env is not None:
            add(_taken(caller.token_env, needed=True, what=f"{what}token_env"), name)
    os.environ.pop(TOKEN_VARIABLE, None)
    return tokens


def _taken(variable: str, *, needed: bool, what: str) -> str:
    """Take a secret out of the environment."""
    secret = os.environ.pop(variable, "").strip()
    if needed and not secret:
        words = f"{what}: the environment variable {variable} is not set, or is empty"
        raise typer.BadParameter(words, param_hint="--config")
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
        raise typer.BadParameter(str(exc)) from None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_name(host: str) -> bool:
    """Return whether a host is a name by which the server can be asked."""
    return read_authority(host) is not None and not _is_address(host)


def is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host.lower() == "localhost"


# Where runs are kept


def _journal(given: str | None, file: Config) -> tuple[Journal, str]:
    """Return where runs are kept, also in words."""
    where = given or file.journal or str(state_folder() / "runs.db")
    variable = file.redis_env or REDIS_VARIABLE
    address = _taken(variable, needed=False, what="redis_env")
    if where == "memory":
        return MemoryJournal(), "in memory, as long as this runs"
    if where == "redis":
        from thinkwell.journal.redis import RedisJournal

        if not address:
            words = f"there is no address of Redis; put it into the environment variable {variable}"
            raise typer.BadParameter(words, param_hint="--journal")
        try:
            return RedisJournal(address), "in Redis"
        except ValueError:
            words = f"the environment variable {variable} has no address such as redis://user:password@host:6379/0"
            raise typer.BadParameter(words, param_hint="--journal") from None
    if "://" in where:
        raise typer.BadParameter(
            "an address may have a password in it, and whoever is on this machine can see how a program was "
            f"started. Put it into the environment variable {variable}, and give --journal redis",
            param_hint="--journal",
        )
    return SqliteJournal(where), f"in {where}"
