"""OpenTelemetry spans of an agent's work, named by its conventions for generative AI.

Only names, ids, kinds, numbers and outcomes go into spans: no prompt, text, argument or result, unless the
program asks for them (`Content`), and never a title or the message of an error.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from thinkwell._core.log.observers import Observer, RunObserver, SessionObserver
from thinkwell._core.protocol.errors import translate
from thinkwell._core.tracing.content import Transcript, tool_result
from thinkwell._core.tracing.guard import Guarded
from thinkwell._core.tracing.outcome import error_type, outcome
from thinkwell._core.tracing.span_tree import Tree, fail, finish, injected, own_tool
from thinkwell._display.changes import with_tokens
from thinkwell._version import VERSION
from thinkwell.view import TokenCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

    from thinkwell import events as ev
    from thinkwell._core.log.observers import RunFacts
    from thinkwell._core.tracing.content import Content
    from thinkwell._core.tracing.guard import Guard
    from thinkwell_acp.mcp import ToolOutput

USAGE: Final = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "thought": "gen_ai.usage.reasoning.output_tokens",
    "cached_read": "gen_ai.usage.cache_read.input_tokens",
    "cached_write": "gen_ai.usage.cache_creation.input_tokens",
}
"""Counts of `TokenCounts`, and the conventions' names for them."""


class AgentSpans(Observer):
    """The spans of one agent."""

    def __init__(self, agent: str, guard: Guard, content: Content | None) -> None:
        self.guard = guard
        self.content = content
        """Writes content, if the program asks for it."""
        self.sessions: dict[str, Span] = {}
        """The spans of open sessions."""
        self.agent = agent
        self._newest: SessionSpans | None = None
        self._tracer = trace.get_tracer("thinkwell", VERSION)
        """The tracer of the program's provider, even if that is set later."""

    def run(self, facts: RunFacts, /) -> RunSpans | None:
        """Begin a run's span under the caller's, and move the run's own session under it."""
        own: SessionSpans | None = None
        if facts.ephemeral:
            own, self._newest = self._newest, None
        tree = self.plant(
            f"invoke_agent {facts.agent}",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.output.type": "text" if facts.text else "json",
                "thinkwell.run.id": facts.id,
            },
        )
        if not tree.root.get_span_context().is_valid:
            return None  # no spans are collected
        if own is not None:
            own.belongs_to(tree)
        return RunSpans(self, tree, facts)

    def session(self, how: str, /) -> SessionSpans:
        """Prepare a session's span."""
        self._newest = SessionSpans(self, how)
        return self._newest

    def plant(
        self,
        name: str,
        attributes: Mapping[str, AttributeValue],
        around: Context | None = None,
        start_time: int | None = None,
    ) -> Tree:
        """Begin a span that will have children.

        Args:
            name: Its name.
            attributes: Its attributes.
            around: Its parent context; by default, the caller's.
            start_time: Its start time, in nanoseconds; by default, now.
        """
        around = contexts.get_current() if around is None else around
        shared: dict[str, AttributeValue] = {"gen_ai.agent.name": self.agent}
        says = {**shared, **attributes}
        root = self._tracer.start_span(name, around, attributes=says, start_time=start_time)
        tree = Tree(self._tracer, root, around, self.guard)
        tree.shared = shared
        return tree


class RunSpans(Guarded, RunObserver):
    """The spans of one run: its turns, its tool calls and its questions."""

    def __init__(self, home: AgentSpans, tree: Tree, facts: RunFacts) -> None:
        super().__init__(home.guard)
        self._home = home
        self._tree = tree
        self._ephemeral = facts.ephemeral
        self._returns_text = facts.text
        self._transcript: Transcript | None = None
        self._stop_reasons: list[str] = []
        self._tokens = TokenCounts()
        self._unnamed: set[str] = set()
        """Ids of open calls whose tool is unknown."""
        self._own: dict[str, str] = {}
        """The tool of each open call of ours that was shown and has not arrived."""
        self._takes = {
            "turn_start": self._turn_started,
            "turn_end": self._turn_ended,
            "tool_start": self._tool_started,
            "tool_update": self._tool_updated,
            "tool_done": self._tool_done,
            "question": tree.ask,
            "answer": tree.answer,
        }
        if home.content is not None:
            self._transcript = Transcript()
            self._takes |= dict.fromkeys(("message", "thought"), self._transcript.said)

    def session(self, session_id: str, /) -> None:
        """Set the session."""
        self._guard(self._session, session_id)

    def ended(self, error: Exception | None, cut: str | None, /) -> None:
        """End all spans."""
        self._takes = {}
        self._guard(self._ended, error, cut)

    @contextmanager
    def calling(
        self, name: str, arguments: Mapping[str, ev.JsonValue], /
    ) -> Generator[Callable[[ToolOutput], None]]:
        """Begin a span for a call of a user's tool, and make it current for the tool."""
        guard = self._home.guard  # the caller's context is current, and is changed here
        entered = guard(self._enter, name, arguments)
        try:
            yield lambda output: guard(self._returned, output)
        finally:
            if entered is not None:
                guard(_leave, *entered)

    def prompt(self, blocks: Sequence[object], /) -> Mapping[str, str]:
        """Begin a turn's span, and propagate it to the agent."""
        return self._guard(self._begin_turn, blocks) or {}

    def settled(self, raw: ev.JsonValue, error: Exception | None, /) -> None:
        """Add the result to the content; a text was already added."""
        if self._transcript is not None and error is None and not self._returns_text:
            self._guard(self._transcript.returned, raw)

    def _content(self, name: str, value: ev.JsonValue) -> dict[str, AttributeValue]:
        """Return content as an attribute, if requested."""
        content = self._home.content
        return {} if content is None or value is None else {name: content.attribute(value)}

    # Turns

    def _session(self, session_id: str) -> None:
        root, shared = self._tree.root, self._tree.shared
        shared["gen_ai.conversation.id"] = session_id
        root.set_attribute("gen_ai.conversation.id", session_id)
        session = self._home.sessions.get(session_id)
        if session is not None and not self._ephemeral:
            root.add_link(session.get_span_context())

    def _begin_turn(self, blocks: Sequence[object]) -> Mapping[str, str]:
        if self._transcript is not None:
            self._transcript.prompted(blocks)
        turn = self._tree.grow("turn", "turn", {}, kind=SpanKind.CLIENT)
        return injected(self._tree.context(turn))

    def _turn_started(self, event: ev.TurnStarted) -> None:
        turn = self._tree.get("turn")
        if turn is not None:
            turn.set_attributes(
                {"thinkwell.turn.number": event.number, "thinkwell.turn.reminder": event.reminder}
            )

    def _turn_ended(self, event: ev.TurnEnded) -> None:
        self._stop_reasons.append(event.stop_reason)
        if self._transcript is not None:
            self._transcript.ended(event.stop_reason)
        if event.usage is not None:
            self._tokens = with_tokens(self._tokens, event.usage)
        self._tree.end("turn", {"gen_ai.response.finish_reasons": [event.stop_reason]})

    def _ended(self, error: Exception | None, cut: str | None) -> None:
        attributes: dict[str, AttributeValue] = {
            attribute: count
            for name, attribute in USAGE.items()
            if (count := getattr(self._tokens, name)) is not None
        }
        attributes["thinkwell.outcome"] = outcome(error)
        if self._transcript is not None:
            self._transcript.ended(outcome(error))
            attributes |= self._content("gen_ai.input.messages", self._transcript.inputs)
            attributes |= self._content("gen_ai.output.messages", self._transcript.outputs)
        if cut is not None:
            attributes["thinkwell.cut"] = cut
        if self._stop_reasons:
            attributes["gen_ai.response.finish_reasons"] = self._stop_reasons
        # A turn is open here if its prompt was answered by an error, or not at all.
        self._tree.fell(attributes, error_type(error), "turn")

    # Tool calls

    def _tool_started(self, event: ev.ToolStart) -> None:
        own = own_tool(event.name, event.title)
        tool = own or event.name
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool or event.kind,
            "gen_ai.tool.call.id": event.id,
            "gen_ai.tool.type": "extension" if own is None else "function",
            "thinkwell.tool.kind": event.kind,
            **self._content("gen_ai.tool.call.arguments", event.input),
        }
        self._tree.grow(
            f"tool {event.id}", f"execute_tool {tool or event.kind}", attributes, self._tree.get("turn")
        )
        if tool is None:
            self._unnamed.add(event.id)
        if own is not None:
            self._own[event.id] = own

    def _tool_updated(self, event: ev.ToolUpdate) -> None:
        """Name a call's tool, if it was unknown."""
        own = own_tool(event.name, event.title)
        tool = own or event.name
        span = self._tree.get(f"tool {event.id}")
        if span is not None:
            span.set_attributes(self._content("gen_ai.tool.call.arguments", event.input))
        if tool is None or span is None or event.id not in self._unnamed:
            return
        self._unnamed.discard(event.id)
        span.update_name(f"execute_tool {tool}")
        span.set_attribute("gen_ai.tool.name", tool)
        if own is not None:
            span.set_attribute("gen_ai.tool.type", "function")
            self._own[event.id] = own

    def _tool_done(self, event: ev.ToolDone) -> None:
        self._unnamed.discard(event.id)
        self._own.pop(event.id, None)
        error = "tool_failed" if event.status == "failed" else None
        attributes = self._content("gen_ai.tool.call.result", tool_result(event))
        self._tree.end(f"tool {event.id}", {**attributes, "thinkwell.tool.status": event.status}, error)

    def _enter(self, name: str, arguments: Mapping[str, ev.JsonValue]) -> tuple[Span, Token[Context]]:
        shown = next((id_ for id_, tool in self._own.items() if tool == name), None)
        above = self._tree.get("turn")
        if shown is not None:
            del self._own[shown]  # the next call of the same tool is another one
            above = self._tree.get(f"tool {shown}")
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            **self._content("gen_ai.tool.call.arguments", dict(arguments)),
        }
        span = self._tree.start(f"execute_tool {name}", attributes, above)
        return span, contexts.attach(trace.set_span_in_context(span))

    def _returned(self, output: ToolOutput) -> None:
        span = trace.get_current_span()
        structured = output.structured
        result = list(output.content) if structured is None else dict(structured)
        span.set_attributes(self._content("gen_ai.tool.call.result", result))
        if output.is_error:
            fail(span, "tool_failed")


class SessionSpans(Guarded, SessionObserver):
    """The span of one session, from its opening to its close, with questions outside turns.

    Other events outside turns are late, or from a replay.
    """

    def __init__(self, home: AgentSpans, how: str) -> None:
        super().__init__(home.guard)
        self._home = home
        self._takes = {"question": self._ask, "answer": self._answer}
        self._how = how
        self._around = contexts.get_current()
        self._began = time.time_ns()
        self._tree: Tree | None = None
        """``None`` until it is opened: a session that never was has no span."""
        self._id: str | None = None

    def belongs_to(self, run: Tree) -> None:
        """Move the session under its run."""
        self._around = run.context(run.root)
        self._began = time.time_ns()

    def opened(self, session_id: str, /) -> None:
        """Set the session's id."""
        self._guard(self._opened, session_id)

    def closed(self, error: BaseException | None, /) -> None:
        """End all spans."""
        self._guard(self._closed, error)

    def meta(self) -> Mapping[str, str]:
        """Begin the span, and propagate it to the agent."""
        return self._guard(self._inject) or {}

    def _grown(self) -> Tree:
        if self._tree is None:
            self._tree = self._home.plant(f"session {self._how}", {}, self._around, self._began)
        return self._tree

    def _inject(self) -> Mapping[str, str]:
        tree = self._grown()
        return injected(tree.context(tree.root))

    def _ask(self, event: ev.QuestionAsked) -> None:
        self._grown().ask(event)

    def _answer(self, event: ev.QuestionAnswered) -> None:
        self._grown().answer(event)

    def _opened(self, session_id: str) -> None:
        tree = self._grown()
        self._forget()
        self._id = session_id
        self._home.sessions[session_id] = tree.root
        tree.shared["gen_ai.conversation.id"] = session_id
        tree.root.set_attribute("gen_ai.conversation.id", session_id)

    def _forget(self) -> None:
        if self._id is not None:
            self._home.sessions.pop(self._id, None)

    def _closed(self, error: BaseException | None) -> None:
        self._forget()
        if isinstance(error, Exception):
            error = translate(error, self._home.agent)
        if self._tree is not None or error is not None:
            self._grown().fell({"thinkwell.outcome": outcome(error)}, error_type(error))


def _leave(span: Span, token: Token[Context]) -> None:
    contexts.detach(token)
    finish(span, {}, None)
