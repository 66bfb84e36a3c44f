"""The first request to an agent: `initialize`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import anyio

from thinkwell._core.protocol.errors import noise, start_failure
from thinkwell._version import VERSION
from thinkwell.errors import AgentStartFailed, ThinkwellError
from thinkwell_acp import AcpError, DecodeError
from thinkwell_acp import schema as s
from thinkwell_acp.client import PROTOCOL_VERSION

if TYPE_CHECKING:
    from thinkwell._core.agent.agent import RunningAgent


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
    )
