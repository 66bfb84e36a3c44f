"""The first request to an agent: `initialize`."""

from __future__ import annotations

import logging
import shlex
from typing import TYPE_CHECKING

import anyio

from thinkwell._core.log.log_lines import log_fields
from thinkwell._core.protocol.errors import noise, start_failure
from thinkwell._core.protocol.subagents import TRANSCRIPT
from thinkwell._core.tracing.run_logging import shown
from thinkwell._version import VERSION
from thinkwell.errors import AgentStartFailed, LoginRequired, ThinkwellError
from thinkwell_acp import AcpError, DecodeError
from thinkwell_acp import schema as s
from thinkwell_acp.client import PROTOCOL_VERSION

if TYPE_CHECKING:
    from thinkwell._core.agent.agent import RunningAgent

logger = logging.getLogger("thinkwell")


async def initialize(agent: RunningAgent, seconds: float) -> None:
    """Initialize the agent, and translate all failures into one error.

    Raises:
        AgentStartFailed: It does not answer as an agent should.
        LoginRequired: It requires a login even before that.
    """
    name, line, malformed = agent.host.name, agent.line, agent.incoming.malformed_lines
    request = s.InitializeRequest(
        protocol_version=PROTOCOL_VERSION,
        client_capabilities=_offers(agent),
        client_info=s.Implementation(name="thinkwell", title="thinkwell", version=VERSION),
    )
    try:
        with anyio.fail_after(seconds):
            await agent.client.initialize(request)
    except TimeoutError as exc:
        hint = noise(malformed) or ". Raise startup_timeout= if it needs longer"
        if agent.setup.profile is not None and agent.setup.profile.npx is not None:
            hint += ". Or npx waits for the registry of npm: can it be reached?"
        said = agent.host.dialect.first_request
        reason = f"it did not answer `{said}` within {seconds:g} seconds{hint}"
        stderr = "" if line.process is None else line.process.stderr_tail
        failure: ThinkwellError = AgentStartFailed(name, reason, stderr_tail=stderr, command=line.command)
        raise _complete(failure, agent) from exc
    except (AcpError, DecodeError) as exc:
        raise _complete(start_failure(exc, name, malformed, line.command), agent) from exc


def _complete(failure: ThinkwellError, agent: RunningAgent) -> ThinkwellError:
    """Add the known details of the agent."""
    if isinstance(failure, AgentStartFailed):
        failure.version = None if agent.setup.profile is None else agent.setup.profile.version
        failure.next_command = shlex.join(agent.line.command)
    return failure


def _offers(agent: RunningAgent) -> s.ClientCapabilities:
    """Return the capabilities that we offer the agent: nothing that would not be served."""
    forms = s.ElicitationCapabilities(
        form=s.ElicitationFormCapabilities(), url=s.ElicitationUrlCapabilities()
    )
    workspace = agent.setup.workspace
    return s.ClientCapabilities(
        fs=s.FileSystemCapabilities() if workspace is None else workspace.file_system,
        terminal=workspace is not None and workspace.terminal,
        # We cannot start a second process of an agent that we did not start.
        auth=s.AuthCapabilities(terminal=bool(agent.line.command)),
        elicitation=forms if agent.questions.asker.can_answer or agent.host.dialect.may_always_ask else None,
        session=s.ClientSessionCapabilities(
            config_options=s.SessionConfigOptionsCapabilities(boolean=s.BooleanConfigOptionCapabilities())
        ),
        meta={TRANSCRIPT: True},
    )


def check_login(agent: RunningAgent) -> None:
    """Refuse a login that the agent does not offer: now, not in the middle of the work.

    Raises:
        LoginRequired: It does not; with those that it offers.
    """
    wanted, methods = agent.host.login.method, agent.host.errors.methods
    if wanted is None or any(method.id == wanted and method.type == "agent" for method in methods):
        return
    terminal = any(method.id == wanted for method in methods)
    why = "is for a person in a terminal" if terminal else "is not among those that it offers"
    raise LoginRequired(agent.host.name, methods, f"open_agent(login={wanted!r}): that {why}")


def log_start(agent: RunningAgent) -> None:
    """Log what runs. Of the command its program only: the arguments may hold keys."""
    info = agent.client.agent.agent_info
    version = "no version" if info is None else shown(f"{info.name} {info.version}")
    program = agent.line.command[0] if agent.line.command else "a connection"
    name, about = agent.host.name, "Agent %s is ready: %s, by way of %s"
    logger.info(about, name, version, program, extra=log_fields(agent=name))
