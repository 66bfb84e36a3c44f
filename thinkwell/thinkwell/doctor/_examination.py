"""Checks one process of an agent step by step. It sends a prompt only on request."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import msgspec
from msgspec.structs import replace

from thinkwell._core.diagnosis import LATEST, noise, shown
from thinkwell.agents import Program
from thinkwell.doctor import _words as words
from thinkwell.doctor._probing import Probing, leave_open, take_turn
from thinkwell.doctor._programs import program_of, versions_of
from thinkwell.errors import AgentNotFound, AgentStartFailed, LoginRequired, ThinkwellError
from thinkwell_acp import VersionMismatch
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent
    from thinkwell import events as ev
    from thinkwell._core.diagnosis import RunningAgent
    from thinkwell._recording._redact import Redactor
    from thinkwell.agents import AgentProfile
    from thinkwell.doctor._diagnosis import Diagnosis
    from thinkwell.doctor._report import Report
    from thinkwell.doctor._servers import Servers
    from thinkwell.errors import AuthMethod


def redacted(command: Sequence[str], redactor: Redactor) -> tuple[str, ...]:
    """Return a command without what looks like a key."""
    return msgspec.convert(redactor.redact(list(command)), tuple[str, ...])


@dataclass(kw_only=True)
class Examination:
    """Checks one agent."""

    diagnosis: Diagnosis
    """What is known of it."""
    profile: AgentProfile | None
    """Its profile; ``None`` if it runs already."""
    env: Mapping[str, str]
    cwd: str
    servers: Servers
    """The caller's MCP servers."""
    redactor: Redactor
    """Removes the secrets from its command."""
    report: Report
    """Collects the checks."""
    prompt: bool
    """Whether a prompt may be sent."""
    phases: list[ev.PhaseChanged] = field(default_factory=list)

    async def run(self, opening: AbstractAsyncContextManager[Agent]) -> Diagnosis:
        """Open the agent, check it, and close it again."""
        await self._find()
        async with AsyncExitStack() as stack:
            try:
                agent = await stack.enter_async_context(opening)
            except ThinkwellError as exc:
                self._not_started(exc)
                await self.servers.check(self.report, self.cwd)
                self.report.add("ends", "skipped", "it does not run")
            else:
                running = agent._agent
                self._started(running)
                probing = Probing(running, self.servers.wire, self.report)
                ways = await probing.run()
                if ways is not None:
                    turn = await take_turn(agent, self.report) if self.prompt else leave_open(self.report)
                    self.diagnosis = replace(self.diagnosis, ways=tuple(dict.fromkeys((*ways, *turn))))
                await self.servers.check(self.report, self.cwd)
                await probing.hand_over()
                await self._end(stack, running)
        return replace(self.diagnosis, checks=self.report.checks)

    # Before the agent runs

    async def _find(self) -> None:
        """Look for the program that starts the agent. Opening the agent explains better what is missing."""
        if self.profile is None:
            self.report.add("found", "skipped", "it runs already")
            self.report.add("installed", "skipped", "it runs already")
            return
        began = anyio.current_time()
        path = program_of(self.profile, self.env)
        if path is not None:
            versions = await versions_of(self.profile, self.env, self.cwd)
            detail = f"{path} ({versions})" if versions else path
            self.report.add("found", "ok", detail, seconds=anyio.current_time() - began)

    def phase(self, event: ev.PhaseChanged) -> None:
        """Handle a phase of the launch."""
        self.phases.append(event)
        if self.profile is None or event.phase == "launching":
            return
        if "found" not in self.report:
            self.report.add("found", "ok", "it is downloaded, and needs nothing else")
        if event.phase == "initializing":
            self._installed(self.profile, event.at)

    def _installed(self, profile: AgentProfile, now: float) -> None:
        before = self.phases[-2]
        if before.phase == "installing":
            how = "the newest one was asked for: " if profile.version == LATEST else "installed now: "
            detail = how + before.detail
        elif isinstance(profile.launch, Program):
            detail = "there is nothing to install"
        else:
            detail = f"version {profile.version} is there"
        self.report.add("installed", "ok", detail, seconds=now - before.at)

    def _not_started(self, error: ThinkwellError) -> None:
        """Report at which check an agent failed that was not opened."""
        report, name = self.report, "starts"
        match error:
            case AgentNotFound() if "found" not in report:
                name = "found"
            case AgentStartFailed(phase="installing"):
                name = "installed"
            case AgentStartFailed() if isinstance(error.__cause__, VersionMismatch):
                report.add("starts", "ok", "it answers the first request")
                name = "protocol"
            case LoginRequired():
                report.add("starts", "ok", "it answers the first request, with an error")
                report.wants_login(error, self.profile)
                return
            case _:
                pass
        report.fail(name, error)
        report.skip_rest("it does not run")

    # While the agent runs

    def _started(self, agent: RunningAgent) -> None:
        """Check what the agent reports about itself."""
        report, client = self.report, agent.client
        (phase,) = (view for view in agent.host.launch_log.views() if view.phase == "initializing")
        report.add("starts", "ok", "it answers the first request", seconds=phase.seconds)
        self._version(client.agent.agent_info)
        version = f"version {client.agent.protocol_version}"
        if agent.incoming.malformed_lines:
            odd = noise(agent.incoming.malformed_lines).removeprefix(". ")
            report.add("protocol", "warning", f"{version}. {odd}")
        else:
            report.add("protocol", "ok", version)
        flags = client.capabilities
        report.add("capabilities", "ok", words.capabilities(flags))
        self.diagnosis = replace(
            self.diagnosis,
            command=self.diagnosis.command or redacted(agent.line.command, self.redactor),
            capabilities=s.to_builtins(flags),
            auth_methods=tuple(map(self._method, agent.host.errors.methods)),
        )

    def _method(self, method: AuthMethod) -> AuthMethod:
        env = msgspec.convert(self.redactor.redact(dict(method.env)), dict[str, str])
        return replace(method, command=redacted(method.command, self.redactor), env=env)

    def _version(self, info: s.Implementation | None) -> None:
        pinned = None if self.profile is None or self.profile.version == LATEST else self.profile.version
        if info is None:
            self.report.add("version", "warning", "it does not say what it is, or in which version")
            return
        self.diagnosis = replace(self.diagnosis, version=info.version)
        said = f"{shown(info.name)} {shown(info.version)}"
        if pinned is None or info.version.removeprefix("v") == pinned:
            self.report.add("version", "ok", said)
        else:
            self.report.add(
                "version",
                "warning",
                f"{said}, while its profile starts {pinned}",
                hint="what its profile knows was seen with that version",
            )

    async def _end(self, stack: AsyncExitStack, agent: RunningAgent) -> None:
        """Close the agent, and check that it ends."""
        process = agent.line.process
        gone = process is not None and process.exit_code is not None
        began = anyio.current_time()
        await stack.aclose()
        seconds = anyio.current_time() - began
        if process is None:
            self.report.add("ends", "skipped", "it was not started here")
        elif gone:
            self.report.add("ends", "skipped", "it had ended before")
        else:
            status, detail = words.ENDINGS[process.ended_by]
            self.report.add("ends", status, detail, seconds=seconds)
