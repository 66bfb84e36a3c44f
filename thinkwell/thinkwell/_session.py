"""`Session`: many turns in one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from thinkwell import events as ev
from thinkwell._builder import Explanation, Spec, ThinkBuilder, output_type
from thinkwell._prompt import ImagePart, Part
from thinkwell._run import Run
from thinkwell._wire_prompt import ANY_RESULT, prompt_blocks, result_tool, tool_specs
from thinkwell.errors import AgentClosed, CapabilityMissing
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import UnionType

    from pydantic import TypeAdapter

    from thinkwell._builder import Options
    from thinkwell._link import Link
    from thinkwell._output import JsonSchema, Output
    from thinkwell._stream import ThoughtStream
    from thinkwell._wire_session import WireSession
    from thinkwell_acp.mcp import ToolSpec

T = TypeVar("T")


class SessionStarter:
    """Starts the turns of a session."""

    def __init__(self, link: Link, wire: WireSession, result: Output[Any] | None) -> None:
        self.link = link
        self.wire = wire
        self.result = result
        self._result_schema = ANY_RESULT if result is None else result.tool_schema()
        self._left = False

    @property
    def first_tools(self) -> list[ToolSpec]:
        """What is offered when the session is opened: the tool that returns results, which stays the same."""
        return [result_tool(self._result_schema)]

    def start(self, spec: Spec[T], options: Options) -> ThoughtStream[T]:
        """Start a turn."""
        if self._left:
            raise AgentClosed
        if spec.cwd is not None:
            raise ValueError(
                "a session keeps the folder that it was opened in: agent.session(cwd=…), not .cwd(…)"
            )
        self.wire.tools.reserve(tool_specs(spec, self._result_schema))
        run = Run(self.link, spec, options, self.wire, result_schema=self._result_schema, ephemeral=False)
        return self.link.launch(run)

    def explain(self, spec: Spec[T]) -> Explanation:
        """Return what a turn would send."""
        return explain(self.link, spec, self._result_schema)

    def check(self, part: Part) -> None:
        """Check that the agent takes such a part of a prompt."""
        check_part(self.link, part)

    def leave(self) -> None:
        """Cancel what runs and start nothing more."""
        self._left = True
        for run in tuple(self.link.runs):
            # Without an id the session was never opened, and the run is another's that waits for one.
            if self.wire.id is not None and run.session_id == self.wire.id:
                run.stop(AgentClosed())


class Session:
    """A conversation with an agent. Made by `Agent.session`.

    Turns run one at a time, in the order in which they were started. Each may have tools and an output type
    of its own.
    """

    def __init__(self, starter: SessionStarter) -> None:
        self._starter = starter

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self._starter.link.name}>"

    @property
    def id(self) -> str:
        """The agent's name for the session."""
        assert self._starter.wire.id is not None
        return self._starter.wire.id

    @overload
    def think(self, output: None = None, /) -> ThinkBuilder[str]: ...
    @overload
    def think(self, output: type[T], /) -> ThinkBuilder[T]: ...
    @overload
    def think(self, output: TypeAdapter[T], /) -> ThinkBuilder[T]: ...
    @overload
    def think(self, output: JsonSchema, /) -> ThinkBuilder[ev.JsonValue]: ...
    @overload
    def think(self, output: UnionType, /) -> ThinkBuilder[object]: ...

    def think(self, output: object = None, /) -> ThinkBuilder[Any]:
        """Begin a turn; see `Agent.think`.

        Raises:
            TypeError: The output type cannot be used, or is not the one that the session was opened with.
        """
        prepared = output_type(output, "think({})")
        result = self._starter.result
        if result is not None and prepared.schema not in (None, result.schema):
            raise TypeError(
                f"this session was opened with output={result.name}; every typed turn returns that"
            )
        return ThinkBuilder(self._starter, Spec(output=prepared))

    def events(self, *, include: ev.Include = "all", after: int = 0) -> AsyncIterator[ev.ThoughtEvent]:
        """Return a reader of what the agent sends between the turns. It ends with the session."""
        return self._starter.wire.between.reader(ev.included(include), after)


def explain(link: Link, spec: Spec[Any], result_schema: dict[str, ev.JsonValue] | None) -> Explanation:
    """Return exactly what a run would send."""
    return Explanation(
        prompt=tuple(s.to_builtins(prompt_blocks(spec, link, result_schema))),
        tools=tuple(tool.wire() for tool in tool_specs(spec, result_schema)),
    )


def check_part(link: Link, part: Part) -> None:
    """Check that the agent takes such a part of a prompt. Files become links where it takes no more.

    Raises:
        CapabilityMissing: It does not.
    """
    if isinstance(part, ImagePart) and not link.client.capabilities.prompt_capabilities.image:
        raise CapabilityMissing("promptCapabilities.image", "an image in a prompt")
