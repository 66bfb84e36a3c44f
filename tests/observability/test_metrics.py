"""Runs, tokens, tool calls and questions as metrics: the real SDK reads them, as a program sets it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from asking import permission
from msgspec.structs import replace
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from scripted import Played, Proceed, Turn, scripted

from thinkwell import AgentError
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.virtual_time

DURATION: Final = "gen_ai.client.operation.duration"
TOKENS: Final = "gen_ai.client.token.usage"
TOOLS: Final = "gen_ai.execute_tool.duration"
QUESTIONS: Final = "thinkwell.question.duration"
RUNS: Final = "thinkwell.active_runs"

_reader = InMemoryMetricReader()
_installed: list[MeterProvider] = []


class Measured:
    """What was measured since this was made, point by point."""

    def __init__(self) -> None:
        self._before = {key: self._numbers(point) for key, point in self._points().items()}

    def _points(self) -> Mapping[tuple[str, frozenset[tuple[str, Any]]], Any]:
        data = _reader.get_metrics_data()
        return {
            (metric.name, frozenset((point.attributes or {}).items())): point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        }

    @staticmethod
    def _numbers(point: HistogramDataPoint | NumberDataPoint) -> tuple[float, float]:
        if isinstance(point, NumberDataPoint):
            return point.value, 0
        return point.count, point.sum

    def of(self, name: str) -> dict[str, tuple[float, float]]:
        """How often something was measured, and the sum; by its attributes but the agent."""
        found: dict[str, tuple[float, float]] = {}
        for key, point in self._points().items():
            metric, attributes = key
            if metric == name:
                assert ("gen_ai.agent.name", "scripted") in attributes
                count, total = self._numbers(point)
                count_before, total_before = self._before.get(key, (0, 0))
                said = {k: v for k, v in attributes if k != "gen_ai.agent.name"}
                if count != count_before:
                    words = " ".join(f"{k.rpartition('.')[2]}={said[k]}" for k in sorted(said))
                    found[words] = (count - count_before, round(total - total_before, 3))
        return found

    def active(self) -> float:
        """How many runs are under way."""
        points = (point for (name, _), point in self._points().items() if name == RUNS)
        return sum((self._numbers(point)[0] for point in points), 0.0)


@pytest.fixture
def measured() -> Measured:
    if not _installed:  # a provider can be set once
        _installed.append(MeterProvider([_reader]))
        metrics.set_meter_provider(_installed[0])
    return Measured()


def note(text: str) -> str:
    """Take a note."""
    if not text:
        raise ValueError("nothing to note")
    return text


async def busy(turn: Turn) -> None:
    await anyio.sleep(3)
    turn.update(s.ToolCallStart(tool_call_id="t1", title="cat secret.txt", kind="read"))
    await anyio.sleep(2)
    turn.update(s.ToolCallProgress(tool_call_id="t1", status="failed"))
    await turn.call("note", {"text": "x"})
    await turn.call("note", {"text": ""})
    await turn.client.request_permission(permission(turn.session_id))
    turn.say("Done")


def used(input_tokens: int, output_tokens: int) -> Any:
    """Answer prompts with what they have used."""

    async def prompt(request: s.PromptRequest, proceed: Proceed) -> s.PromptResponse:
        response: s.PromptResponse = await proceed(request)
        usage = s.Usage(
            total_tokens=input_tokens + output_tokens, input_tokens=input_tokens, output_tokens=output_tokens
        )
        return replace(response, usage=usage)

    return {"session/prompt": prompt}


async def test_a_run_is_measured(measured: Measured) -> None:
    async with scripted(agent=Played([busy], answers=used(100, 20))) as agent:
        before = measured.active()
        stream = agent.think().text("Go").tool(note).stream()
        assert measured.active() == before + 1
        await stream.wait()
        assert measured.active() == before
    assert measured.of(DURATION) == {"name=invoke_agent name=scripted outcome=completed": (1, 5.0)}
    tokens = "name=invoke_agent name=scripted"
    assert measured.of(TOKENS) == {f"{tokens} type=input": (1, 100), f"{tokens} type=output": (1, 20)}
    assert measured.of(TOOLS) == {
        "type=tool_failed name=read type=extension": (1, 2.0),
        "name=note type=function": (1, 0.0),
        "type=tool_failed name=note type=function": (1, 0.0),
    }
    assert measured.of(QUESTIONS) == {"asks=permission choice=reject_once": (1, 0.0)}


async def test_what_the_agent_shows_of_a_tool_of_ours_is_no_call_beside_it(measured: Measured) -> None:
    async def shows(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="t1", title=f"mcp__{turn.server}__note"))
        await turn.call("note", {"text": "x"})
        turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed"))

    async with scripted(shows) as agent:
        await agent.think().text("Go").tool(note).run()
    assert measured.of(TOOLS) == {"name=note type=function": (1, 0.0)}


async def test_an_agent_that_makes_up_names_makes_no_metric_of_each(measured: Measured) -> None:
    async def calls(turn: Turn) -> None:
        for number in range(300):
            name = f"tool {number}"
            turn.update(s.ToolCallStart(tool_call_id=name, title=name, name=name))
            turn.update(s.ToolCallProgress(tool_call_id=name, status="completed"))

    async with scripted(calls) as agent:
        await agent.think().text("Go").run()
    counts = {said: count for said, (count, _) in measured.of(TOOLS).items()}
    assert len(counts) == 201
    assert counts["name=_OTHER type=extension"] == 100


async def test_runs_that_fail_and_that_are_cancelled(measured: Measured) -> None:
    async def fail(turn: Turn) -> None:
        raise RpcError(-32603, "broken")

    async def wait(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="t1", title="sleep"))
        await turn.client.request_permission(permission(turn.session_id))

    before = measured.active()
    async with scripted(fail) as agent:
        with pytest.raises(AgentError):
            await agent.think().text("Go").run()
    async with scripted(wait, permissions="ask") as agent:
        stream = agent.think().text("Go").stream(include={"question"})
        await anext(aiter(stream))
        await anyio.sleep(4)
        stream.cancel()
        await stream.wait()
    invoked = "name=invoke_agent name=scripted"
    assert measured.of(DURATION) == {
        f"type=AgentReported {invoked} outcome=failed": (1, 0.0),
        f"{invoked} outcome=cancelled": (1, 4.0),
    }
    assert measured.of(TOKENS) == {}
    assert measured.of(TOOLS) == {"name=other type=extension": (1, 4.0)}
    assert measured.of(QUESTIONS) == {"asks=permission choice=cancelled": (1, 4.0)}
    assert measured.active() == before


async def test_the_model_is_said_where_the_session_tells_it(measured: Measured) -> None:
    choices = tuple(s.SessionConfigSelectOption(value=name.lower(), name=name) for name in ("Large", "Small"))
    large = s.SessionConfigSelect(
        id="model", name="Model", category="model", current_value="large", options=choices
    )

    async def changes(turn: Turn) -> None:
        turn.update(s.ConfigOptionUpdate(config_options=(replace(large, current_value="small"),)))

    async def stays(turn: Turn) -> None:
        turn.say("Done")

    for script, model in ((stays, "Large"), (changes, "Small")):
        handler = Played([script], answers=used(5, 0))
        handler.options = [large]
        async with scripted(agent=handler) as agent:
            await agent.think().text("Go").run()
        invoked = f"name=invoke_agent name=scripted model={model}"
        assert measured.of(DURATION)[f"{invoked} outcome=completed"] == (1, 0.0)
        assert measured.of(TOKENS)[f"{invoked} type=input"] == (1, 5)


async def test_a_question_between_turns(measured: Measured) -> None:
    handler = Played([busy])
    async with scripted(agent=handler) as agent, agent.session() as session:
        await handler.client.request_permission(permission(session.id))
    assert measured.of(QUESTIONS) == {"asks=permission choice=reject_once": (1, 0.0)}


async def test_the_instruments_are_those_of_the_conventions(measured: Measured) -> None:
    async with scripted(agent=Played([busy], answers=used(1, 1))) as agent:
        await agent.think().text("Go").tool(note).run()
    data = _reader.get_metrics_data()
    assert data is not None
    known = {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {name: known[name].unit for name in (DURATION, TOKENS, TOOLS, QUESTIONS, RUNS)} == {
        DURATION: "s",
        TOKENS: "{token}",
        TOOLS: "s",
        QUESTIONS: "s",
        RUNS: "{run}",
    }
    seconds = tuple(0.01 * 2**power for power in range(14))
    points = {name: known[name].data.data_points[0] for name in (DURATION, TOKENS, TOOLS)}
    assert {
        name: point.explicit_bounds for name, point in points.items() if isinstance(point, HistogramDataPoint)
    } == {
        DURATION: pytest.approx(seconds),
        TOKENS: tuple(4**power for power in range(14)),
        TOOLS: pytest.approx(seconds),
    }
