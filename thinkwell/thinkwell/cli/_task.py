"""What ``thinkwell run`` does: one task, from what was typed to the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import anyio
import typer
from msgspec import Struct

from thinkwell import Budget, PermissionPolicy, PolicyError, Reply, load_mcp_servers, open_agent
from thinkwell._core.exit import image_type
from thinkwell.agents import choose
from thinkwell.cli._ending import log_held
from thinkwell.cli._launching import launching_shown
from thinkwell.cli._options import Spoken
from thinkwell.cli._output import read_output
from thinkwell.cli._prompt import Prompt, read_prompt
from thinkwell.cli._showing import finish
from thinkwell.errors import McpServerError, ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from thinkwell import Agent, McpServer, PermissionMode, Question, QuestionHandler, ThinkBuilder
    from thinkwell.agents import AgentProfile
    from thinkwell.cli._terminal import How

NOBODY: Final = "there is no terminal to ask in; --permissions says what is allowed"

MAGIC: Final = 16
"""Bytes that tell an image from other files."""


class Task(Struct, frozen=True, kw_only=True):
    """What is to be done. Everything in it can be used."""

    prompt: Prompt
    profile: AgentProfile
    protocol: Spoken
    output: object
    files: tuple[Path, ...]
    cwd: Path | None
    permissions: PermissionMode | PermissionPolicy
    on_question: QuestionHandler | None
    mcp_servers: tuple[McpServer, ...]
    record: Path | None
    timeout: float | None
    idle_timeout: float | None
    budget: Budget | None


def read_task(
    *,
    words: Sequence[str],
    agent: str | None,
    command: str | None,
    protocol: Spoken,
    schema: Path | None,
    type_: str | None,
    files: Sequence[Path],
    cwd: Path | None,
    permissions: str | None,
    mcp: Path | None,
    record: Path | None,
    limits: Mapping[str, float | None],
    budget: Mapping[str, float | None],
    how: How,
) -> Task:
    """Return what was asked for; standard input is read last, when all else can be used.

    Raises:
        typer.BadParameter: Something cannot be used.
        AgentNotFound: There is no such agent.
        ProfileError: What is known of it cannot be read.
    """
    how.check()
    check_limits(limits)
    for file in files:
        if not file.is_file():  # it would be waited for, or never end
            raise typer.BadParameter(f"{file} is no regular file", param_hint="--file")
    if protocol is Spoken.NDJSON:
        for missing, what in ((command is None, "give --command too"), (mcp is not None, "not with --mcp")):
            if missing:
                raise typer.BadParameter(f"ndjson: {what}", param_hint="--protocol")
    profile = chosen_agent(agent, command)
    policy = read_permissions(permissions, can_ask=how.can_ask)
    return Task(
        profile=profile,
        protocol=protocol,
        output=read_output(schema, type_),
        files=tuple(files),
        cwd=cwd,
        permissions=policy,
        on_question=asked_in_vain if not how.can_ask and leaves_open(policy) else None,
        mcp_servers=_mcp_servers(mcp),
        record=record,
        timeout=limits["timeout"],
        idle_timeout=limits["idle_timeout"],
        budget=_budget(budget),
        prompt=read_prompt(words),
    )


def check_limits(limits: Mapping[str, float | None]) -> None:
    """Check times that were given, by the names of their options.

    Raises:
        typer.BadParameter: One is none.
    """
    for name, seconds in limits.items():
        if seconds is not None and not seconds > 0:  # NaN is neither
            raise typer.BadParameter(f"it is {seconds:g}; give seconds above 0", param_hint=_option(name))


def chosen_agent(agent: str | None, command: str | None) -> AgentProfile:
    """Return the agent to start.

    Raises:
        typer.BadParameter: The command cannot be used.
        AgentNotFound: There is no such agent.
        ProfileError: What is known of it cannot be read.
    """
    try:
        return choose(agent, command)
    except ThinkwellError:
        raise
    except ValueError as exc:
        if command is None:  # the environment names one
            raise typer.BadParameter(str(exc)) from None
        raise typer.BadParameter(str(exc).partition(": ")[2], param_hint="--command") from None


def read_permissions(given: str | None, *, can_ask: bool) -> PermissionMode | PermissionPolicy:
    """Return what the agent may do; by default it asks, where there is someone to ask.

    Raises:
        typer.BadParameter: It is neither a word nor a file of rules.
    """
    match given:
        case None:
            return "ask" if can_ask else "deny"
        case "deny" | "ask" | "allow":
            return given
        case _:
            pass
    hint = "--permissions"
    try:
        return PermissionPolicy.load(given)
    except PolicyError as exc:
        raise typer.BadParameter(str(exc), param_hint=hint) from None
    except OSError as exc:
        words = "it is none of deny, ask, allow, and no file of rules"
        raise typer.BadParameter(f"{given}: {words} ({exc.strerror})", param_hint=hint) from None


def leaves_open(policy: PermissionMode | PermissionPolicy) -> bool:
    """Return whether a person may be asked under a policy."""
    if isinstance(policy, PermissionPolicy):
        return "ask" in (policy.otherwise, *(rule.verdict for rule in policy.rules))
    return policy == "ask"


async def asked_in_vain(_question: Question, /) -> Reply:
    """Deny at once what cannot be answered."""
    return Reply("deny", NOBODY)


def run_task(task: Task, how: How) -> int:
    """Do a task, show its progress, write its result, and return the exit code."""
    return anyio.run(_run, task, how)


async def _run(task: Task, how: How) -> int:
    with log_held(how.verbose), launching_shown(task.profile.name, how) as launching:
        opening = open_agent(
            task.profile,
            cwd=task.cwd,
            permissions=task.permissions,
            on_question=task.on_question,
            mcp_servers=task.mcp_servers,
            record=task.record,
            on_phase=launching,
            protocol=task.protocol.value,
        )
        async with opening as agent:
            launching.done()
            stream = _builder(agent, task).stream(
                include="all" if how.as_json else "default",
                timeout=task.timeout,
                idle_timeout=task.idle_timeout,
                budget=task.budget,
            )
            return await finish(stream, how, task.output)


def _builder(agent: Agent, task: Task) -> ThinkBuilder[object]:
    builder: ThinkBuilder[object] = agent.think(cast("type[object]", task.output))
    builder = builder.text(task.prompt.text)
    if task.prompt.material is not None:
        builder = builder.line().line().quote(task.prompt.material, tag="stdin")
    for file in task.files:
        is_image = agent.capabilities.prompt_capabilities.image and _looks_like_an_image(file)
        builder = builder.image(file) if is_image else builder.resource(file)
    return builder


def _looks_like_an_image(file: Path) -> bool:
    with file.open("rb") as opened:
        return image_type(opened.read(MAGIC)) is not None


def _mcp_servers(path: Path | None) -> tuple[McpServer, ...]:
    if path is None:
        return ()
    try:
        return tuple(load_mcp_servers(path))
    except McpServerError as exc:
        raise typer.BadParameter(str(exc), param_hint="--mcp") from None


def _budget(limits: Mapping[str, float | None]) -> Budget | None:
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given:
        return None
    for name, limit in given.items():
        if not limit > 0:
            raise typer.BadParameter(f"it is {limit:g}; give a number above 0", param_hint=_option(name))
    max_tokens = given.get("max_tokens")
    return Budget(max_cost=given.get("max_cost"), max_tokens=None if max_tokens is None else int(max_tokens))


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
