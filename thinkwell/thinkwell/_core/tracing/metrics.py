"""OpenTelemetry metrics of an agent's work, named by its conventions for generative AI."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from opentelemetry import metrics

from thinkwell._core.log.observers import Observer, RunObserver, SessionObserver
from thinkwell._core.log.run_log import running_clock
from thinkwell._core.tracing.guard import Guarded
from thinkwell._core.tracing.outcome import error_type, outcome
from thinkwell._core.tracing.run_logging import shown
from thinkwell._core.tracing.span_tree import own_tool
from thinkwell._values.session_options import chosen_model
from thinkwell._version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from opentelemetry.util.types import AttributeValue

    from thinkwell import events as ev
    from thinkwell._core.log.observers import RunFacts
    from thinkwell._core.tracing.guard import Guard
    from thinkwell_acp.mcp import ToolOutput

SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bounds of the buckets of durations that the conventions recommend."""

TOKENS: Final = tuple(4**power for power in range(14))
"""Those of token counts."""

NAMES: Final = 200
"""Most names of tools and models that are distinguished. An agent can invent any number of them, and a metric
keeps values for each; further ones are `OTHER`."""

OTHER: Final = "_OTHER"
"""OpenTelemetry's name for a value that is not distinguished."""

UNUSED: Final = ("_ProxyMeterProvider", "NoOpMeterProvider")
"""The provider if the program collects no metrics."""


class AgentMetrics(Observer):
    """The metrics of one agent."""

    def __init__(self, agent: str, guard: Guard) -> None:
        self.guard = guard
        self._names: set[str] = set()
        self.agent: dict[str, AttributeValue] = {"gen_ai.agent.name": agent}
        """The attributes of all measurements."""
        self.operation: dict[str, AttributeValue] = {
            **self.agent,
            "gen_ai.operation.name": "invoke_agent",
            # Agents do not report the provider behind them; the conventions require a name.
            "gen_ai.provider.name": agent,
        }
        meter = metrics.get_meter("thinkwell", VERSION)

        def histogram(name: str, unit: str, about: str, bounds: Sequence[float]) -> metrics.Histogram:
            return meter.create_histogram(name, unit, about, explicit_bucket_boundaries_advisory=bounds)

        self.runs = histogram("gen_ai.client.operation.duration", "s", "How long runs take.", SECONDS)
        used = "Tokens of turns, as reported by agents."
        self.tokens = histogram("gen_ai.client.token.usage", "{token}", used, TOKENS)
        self.tools = histogram("gen_ai.execute_tool.duration", "s", "How long tool calls take.", SECONDS)
        waits = "How long agents wait for answers to questions."
        self.questions = histogram("thinkwell.question.duration", "s", waits, SECONDS)
        self.active = meter.create_up_down_counter(
            "thinkwell.active_runs", "{run}", "Runs that have not ended."
        )

    def name(self, name: str) -> str:
        """Return the name for a tool or a model that the agent has named."""
        if len(self._names) < NAMES:
            self._names.add(shown(name))
        return shown(name) if shown(name) in self._names else OTHER

    def run(self, facts: RunFacts, /) -> RunMetrics | None:
        """Measure a run, if the program collects metrics."""
        return RunMetrics(self) if _collected() else None

    def session(self, how: str, /) -> SessionMetrics | None:
        """Measure questions outside turns."""
        return SessionMetrics(self) if _collected() else None


def _collected() -> bool:
    return type(metrics.get_meter_provider()).__name__ not in UNUSED


class _Call(Struct):
    """A tool call that the agent shows."""

    began: float
    kind: str
    name: str | None
    own: bool
    """Whether it is of a tool of ours, which is measured where it runs."""


class _Questions:
    """Measures how long questions wait."""

    def __init__(self, home: AgentMetrics) -> None:
        self._home = home
        self._asked: dict[str, ev.QuestionAsked] = {}
        self.takes: dict[str, Callable[..., None]] = {"question": self._ask, "answer": self._answer}
        """The handlers of its events."""

    def _ask(self, event: ev.QuestionAsked) -> None:
        self._asked[event.id] = event

    def _answer(self, event: ev.QuestionAnswered) -> None:
        asked = self._asked.pop(event.id)
        said = {
            "thinkwell.question.asks": asked.asks,
            "thinkwell.question.choice": event.choice or "cancelled",
        }
        self._home.questions.record(event.at - asked.at, {**self._home.agent, **said})


class RunMetrics(Guarded, RunObserver):
    """Measures one run: how long it takes, its tokens, its tool calls and its questions."""

    def __init__(self, home: AgentMetrics) -> None:
        super().__init__(home.guard)
        self._home = home
        self._clock = running_clock()
        self._began = self._clock()
        self._model: dict[str, AttributeValue] = {}
        self._calls: dict[str, _Call] = {}
        questions = _Questions(home)
        self._takes = {
            "session": self._opened,
            "config": self._configured,
            "turn_end": self._turn_ended,
            "tool_start": self._tool_started,
            "tool_update": self._tool_updated,
            "tool_done": self._tool_done,
            **questions.takes,
        }
        home.active.add(1, home.agent)

    def ended(self, error: Exception | None, _cut: str | None, /) -> None:
        """Measure the run."""
        self._takes = {}
        self._guard(self._ended, error)

    @contextmanager
    def calling(
        self, name: str, arguments: Mapping[str, ev.JsonValue], /
    ) -> Generator[Callable[[ToolOutput], None]]:
        """Measure a call of a user's tool."""
        began = self._clock()
        failed: list[bool] = []
        try:
            yield lambda result: failed.append(result.is_error)
        finally:
            seconds = self._clock() - began
            self._home.guard(self._measure_call, seconds, name, "function", any(failed))

    def _ended(self, error: Exception | None) -> None:
        home = self._home
        home.active.add(-1, home.agent)
        said: dict[str, AttributeValue] = {
            **home.operation,
            **self._model,
            "thinkwell.outcome": outcome(error),
        }
        failure = error_type(error)
        if failure is not None:
            said["error.type"] = failure
        home.runs.record(self._clock() - self._began, said)

    def _opened(self, event: ev.SessionOpened) -> None:
        self._choose(event.model)

    def _configured(self, event: ev.ConfigUpdate) -> None:
        self._choose(chosen_model(event.options))

    def _choose(self, model: str | None) -> None:
        if model is not None:
            self._model = {"gen_ai.request.model": self._home.name(model)}

    def _turn_ended(self, event: ev.TurnEnded) -> None:
        usage = event.usage
        if usage is None:
            return
        said = {**self._home.operation, **self._model}
        counts = {"input": usage.input, "output": usage.output}
        for kind, count in {kind: count for kind, count in counts.items() if count is not None}.items():
            self._home.tokens.record(count, {**said, "gen_ai.token.type": kind})

    # Tool calls

    def _tool_started(self, event: ev.ToolStart) -> None:
        own = own_tool(event.name, event.title) is not None
        self._calls[event.id] = _Call(event.at, event.kind, event.name, own)

    def _tool_updated(self, event: ev.ToolUpdate) -> None:
        """Add details to a call that was announced without them."""
        call = self._calls.get(event.id)
        if call is not None and call.name is None:
            call.name = event.name
            call.own = call.own or own_tool(event.name, event.title) is not None

    def _tool_done(self, event: ev.ToolDone) -> None:
        call = self._calls.pop(event.id, None)
        if call is not None and not call.own:
            name = self._home.name(call.name or call.kind)
            self._measure_call(event.at - call.began, name, "extension", event.status == "failed")

    def _measure_call(self, seconds: float, name: str, kind: str, failed: bool) -> None:
        said = {**self._home.agent, "gen_ai.tool.name": name, "gen_ai.tool.type": kind}
        if failed:
            said["error.type"] = "tool_failed"
        self._home.tools.record(seconds, said)


class SessionMetrics(Guarded, SessionObserver):
    """Measures questions outside turns."""

    def __init__(self, home: AgentMetrics) -> None:
        super().__init__(home.guard)
        self._takes = _Questions(home).takes
