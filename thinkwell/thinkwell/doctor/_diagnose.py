"""`diagnose`: its arguments and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from thinkwell import open_agent
from thinkwell._core.diagnosis import check_types, environment
from thinkwell._core.exit import OPEN_TIMEOUT, existing_folder
from thinkwell._core.schema.arguments import check_seconds
from thinkwell._recording._redact import Redactor
from thinkwell.agents import AgentProfile, choose
from thinkwell.doctor._diagnosis import Diagnosis
from thinkwell.doctor._examination import Examination, redacted
from thinkwell.doctor._limits import STARTUP_TIMEOUT, Limits
from thinkwell.doctor._report import Report
from thinkwell.doctor._servers import Servers
from thinkwell.errors import ThinkwellError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from thinkwell.doctor._check import Check
    from thinkwell.mcp_servers import McpServer
    from thinkwell_acp import Transport


async def diagnose(
    agent: str | AgentProfile | None = None,
    /,
    *,
    command: str | Sequence[str] | None = None,
    transport: Transport | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    mcp_servers: Sequence[McpServer] = (),
    startup_timeout: float = STARTUP_TIMEOUT,
    open_timeout: float = OPEN_TIMEOUT,
    prompt: bool = False,
    on_check: Callable[[Check], None] | None = None,
) -> Diagnosis:
    """Check an agent step by step, and return the diagnosis. Without `prompt`, no token is spent.

    The agent is started once, and installed before that if it is missing. Its sessions are closed
    again, and deleted if the agent supports that. Problems of the agent are in the diagnosis; they do not
    raise.

    Args:
        agent: The agent, as for `open_agent`.
        command: The command of any other agent, as for `open_agent`.
        transport: A connection to a running agent, as for `open_agent`.
        env: Variables in addition to your environment.
        cwd: The folder in which the agent works; by default the current one.
        mcp_servers: Your MCP servers, to check whether the agent accepts them. Those that are programs are
            also started once, in `cwd`, and asked for their tools.
        startup_timeout: Seconds for the agent to answer its first request, and for each of your MCP servers
            to list its tools. The agent's installation has its own limit: ``cold_start`` in its profile.
        open_timeout: Seconds for the agent to open each session.
        prompt: Send a prompt for a typed result: only this shows whether the model answers, and
            whether typed results and tools work. It costs one turn of the agent's model.
        on_check: Called with each finished check.

    Raises:
        NotADirectoryError: The folder does not exist.
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or contradicts another.
    """
    if agent is not None and not isinstance(cast("object", agent), str | AgentProfile):
        raise TypeError(f"diagnose({agent!r:.100}): give the name of an agent, or an AgentProfile")
    if on_check is not None and not callable(on_check):
        raise TypeError(f"diagnose(on_check={on_check!r:.100}): give a function")
    check_types(command=command, env=env)
    check_seconds("startup_timeout", startup_timeout)
    check_seconds("open_timeout", open_timeout)
    return await examine(
        agent,
        command=command,
        transport=transport,
        env=env,
        cwd=existing_folder(cwd or ".", "diagnose(cwd=…)"),
        mcp_servers=mcp_servers,
        limits=Limits(startup=startup_timeout, opening=open_timeout),
        prompt=prompt,
        on_check=on_check,
    )


async def examine(
    agent: str | AgentProfile | None,
    *,
    command: str | Sequence[str] | None = None,
    transport: Transport | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str,
    mcp_servers: Sequence[McpServer],
    limits: Limits,
    prompt: bool,
    on_begin: Callable[[str, str, Sequence[str]], None] | None = None,
    on_check: Callable[[Check], None] | None,
) -> Diagnosis:
    """Do the work of `diagnose`, with arguments that are partly checked already.

    `on_begin` gets the agent's name, title and command before it is checked.
    """
    name = (agent.name if isinstance(agent, AgentProfile) else agent) or "agent"
    profile: AgentProfile | None = None
    unknown: ThinkwellError | None = None
    if transport is None:
        try:
            profile = choose(agent, command)
        except ThinkwellError as exc:
            unknown = exc
    variables = environment(profile, env)
    servers = Servers(mcp_servers, variables.get("PATH"), "diagnose(mcp_servers=…)")
    redactor = Redactor(variables)
    redactor.redact(
        {"mcpServers": [s.to_builtins(server) for server in servers.wire]}
    )  # it learns their secrets
    report = Report(on_check, redactor, limits)
    known = Diagnosis(agent=name)
    if profile is not None:
        known = Diagnosis(
            agent=profile.name,
            title=profile.title,
            command=redacted(profile.command, redactor),
            quirks=profile.quirks,
        )
    if on_begin is not None:
        on_begin(known.agent, known.title, known.command)
    if unknown is not None:
        report.fail("found", unknown)
        report.skip_rest("it is not known how to start it")
        await servers.check(report, cwd)
        return replace(known, checks=report.checks)
    examination = Examination(
        diagnosis=known,
        profile=profile,
        env=variables,
        cwd=cwd,
        servers=servers,
        redactor=redactor,
        report=report,
        prompt=prompt,
    )
    opening = open_agent(
        agent if profile is None else profile,
        command=command if profile is None else None,
        transport=transport,
        env=env,
        cwd=cwd,
        startup_timeout=limits.startup,
        on_phase=examination.phase,
    )
    return await examination.run(opening)
