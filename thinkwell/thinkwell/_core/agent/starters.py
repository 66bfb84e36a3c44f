"""Start the runs of an agent, and those of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from thinkwell._core.agent.agent import AgentLife
from thinkwell._core.agent.run_plan import RunPlan
from thinkwell._core.agent.spares import Fallback
from thinkwell._core.agent.tries import Tries
from thinkwell._core.protocol.prompt import (
    ANY_RESULT,
    result_tool,
    tool_specs,
    wire_system_prompt,
)
from thinkwell._core.session.session import WireSession
from thinkwell._core.task.builder import Explanation, Spec
from thinkwell._core.task.prompt import ImagePart, Part
from thinkwell.errors import CapabilityMissing, SessionClosed
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell import events as ev
    from thinkwell._core.agent.agent import RunningAgent
    from thinkwell._core.agent.run_handle import RunHandle
    from thinkwell._core.log.observers import RunObserver
    from thinkwell._core.log.stream import ThoughtStream
    from thinkwell._core.schema.output import Output
    from thinkwell._core.task.builder import Options
    from thinkwell._core.task.system_prompt import SystemPrompt
    from thinkwell_acp.mcp import ToolSpec

T = TypeVar("T")


class _Starter:
    """What starts the runs of an agent.

    Args:
        agent: The agent.
    """

    def __init__(self, agent: RunningAgent) -> None:
        self.agent = agent

    def check(self, part: Part) -> None:
        """Check that the agent supports such a part of a prompt. Unsupported files become links.

        Raises:
            CapabilityMissing: The agent does not support it.
        """
        if isinstance(part, ImagePart) and not self.agent.client.capabilities.prompt_capabilities.image:
            with self.agent.host.errors.advising():
                raise CapabilityMissing("promptCapabilities.image", "an image in a prompt")

    def _explained(
        self, spec: Spec[Any], schema: dict[str, ev.JsonValue] | None, server: str | None, preface: str = ""
    ) -> Explanation:
        """Return exactly what a run would send."""
        host, system = self.agent.host, None
        if spec.system is not None:
            system = wire_system_prompt(spec.system, host.client.capabilities.session_capabilities)
            preface = spec.system.text if system is None else ""
        return Explanation(
            prompt=tuple(s.to_builtins(host.prompt(spec, schema, server, preface))),
            tools=tuple(tool.wire() for tool in tool_specs(spec, schema)),
            system=None if system is None else s.to_builtins(system),
        )


class AgentStarter(_Starter):
    """Starts the runs of an agent that have their own session."""

    def start(self, spec: Spec[T], options: Options) -> ThoughtStream[T]:
        """Start a run."""
        spares = self.agent.spares
        fallback = spares.fallback if spec.fallback is None else spares.named(*spec.fallback)
        if options.listener is not None:
            if spec.fallback is not None:
                raise ValueError(
                    "listen(): handlers hear one agent, so no other can take over: leave .fallback(…) out"
                )
            fallback = Fallback()
        if options.retry is None and not fallback.spares:
            return self.begin(spec, options).stream()
        self.agent.check_open()
        return Tries(self.agent, self, spec, options, fallback).start()

    def check_fallback(self, agents: tuple[object, ...], after_effects: bool, /) -> None:
        """Check the agents that are to take over where this one fails."""
        self.agent.spares.named(agents, after_effects)

    def begin(self, spec: Spec[T], options: Options, observer: RunObserver | None = None, /) -> RunHandle[T]:
        """Start one try of a run."""
        agent = self.agent
        agent.check_open()
        agent.host.dialect.check(spec)
        agent.host.dialect.refuse(spec.cwd not in (None, agent.setup.cwd), "cwd", "cwd()")
        folder, servers = spec.cwd or agent.setup.cwd, agent.setup.mcp_servers.wire
        wire = WireSession(agent.host, folder, servers, system=spec.system, model=agent.setup.model)
        schema = self._schema(spec)
        plan = RunPlan(spec=spec, options=options, session=wire, result_schema=schema, ephemeral=True)
        return agent.begin(plan, observer)

    def explain(self, spec: Spec[T]) -> Explanation:
        """Return what a run would send. Its session, and so the server's name, is created with the run."""
        server = "thinkwell…" if self.agent.host.routes.begun else None
        return self._explained(spec, self._schema(spec), server)

    def _schema(self, spec: Spec[Any]) -> dict[str, ev.JsonValue] | None:
        """Return the schema of ``return_result``; ``None``: the run has no such tool."""
        wanted = spec.output.schema is not None and self.agent.host.dialect.has_tools
        return spec.output.tool_schema() if wanted else None

    def check_system(self, system: SystemPrompt, /) -> None:
        """Check that the agent supports such a system prompt."""
        check_system(self.agent, system)


class SessionStarter(_Starter):
    """Starts the turns of a session."""

    def __init__(self, agent: RunningAgent, wire: WireSession, result: Output[Any] | None) -> None:
        super().__init__(agent)
        self.wire = wire
        self.result = result
        self._result_schema = None
        if agent.host.dialect.has_tools:
            self._result_schema = ANY_RESULT if result is None else result.tool_schema()

    @property
    def first_tools(self) -> list[ToolSpec]:
        """Return the tools offered when the session is opened: the tool for the result, always the same."""
        return [] if self._result_schema is None else [result_tool(self._result_schema)]

    def start(self, spec: Spec[T], options: Options) -> ThoughtStream[T]:
        """Start a turn."""
        if options.retry is None:
            return self.begin(spec, options).stream()
        self.check_open()
        return Tries(self.agent, self, spec, options, Fallback(), self.wire).start()

    def check_fallback(self, _agents: tuple[object, ...], _after_effects: bool, /) -> None:
        """Refuse other agents: they do not know the session.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            "a session belongs to one agent, so no other can take a turn of it over: leave .fallback(…) out, "
            "or use agent.think(…), which has a session of its own"
        )

    def begin(self, spec: Spec[T], options: Options, observer: RunObserver | None = None, /) -> RunHandle[T]:
        """Start one try of a turn."""
        self.check_open()
        if spec.cwd is not None:
            raise ValueError(
                "a session keeps the folder that it was opened in: agent.session(cwd=…), not .cwd(…)"
            )
        self.agent.host.dialect.check(spec)
        self.wire.tools.reserve(tool_specs(spec, self._result_schema))
        schema = self._result_schema
        plan = RunPlan(spec=spec, options=options, session=self.wire, result_schema=schema, ephemeral=False)
        return self.agent.begin(plan, observer)

    def explain(self, spec: Spec[T]) -> Explanation:
        """Return what a turn would send."""
        wire = self.wire
        return self._explained(spec, self._result_schema, wire.server_name, wire.preface)

    def check_system(self, _system: SystemPrompt, /) -> None:
        """Refuse a system prompt: there is one for the whole session.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            "a session keeps its system prompt: give it to agent.session(system=…), not to .system(…)"
        )

    def check_open(self) -> None:
        """Check that neither the session's block has been left, nor the agent's.

        Raises:
            AgentClosed: The agent's was left.
            SessionClosed: The session's was left.
            WrongEventLoop: The caller is not in the agent's event loop.
        """
        if self.wire.life.left and self.agent.life is AgentLife.OPEN:
            raise SessionClosed
        self.agent.check_open()


def check_system(agent: RunningAgent, system: SystemPrompt, *, old: bool = False) -> None:
    """Check that the agent supports a system prompt, or that there is a fallback.

    Args:
        agent: The agent.
        system: The system prompt.
        old: Whether it is for a session that exists.

    Raises:
        CapabilityMissing: It does not, and there is no fallback.
    """
    with agent.host.errors.advising():
        kept = old and agent.host.keeps_system
        wire_system_prompt(system, agent.client.capabilities.session_capabilities, kept=kept)
