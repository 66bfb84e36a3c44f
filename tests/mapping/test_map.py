"""`Agent.map`: one task over many inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from scripted import Turn, scripted

import thinkwell
from thinkwell import (
    AgentClosed,
    Budget,
    BudgetExceeded,
    Outcome,
    QuestionNotOpen,
    ResultRefused,
    RunEnded,
    ThoughtCancelled,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from thinkwell import ThinkBuilder


class Gates:
    """Turns that end when they are let go, each by its input."""

    def __init__(self) -> None:
        self._gates: dict[str, anyio.Event] = {}
        self.begun: list[str] = []
        self.most = self._now = 0

    def let(self, *names: str) -> None:
        for name in names:
            self._gates.setdefault(name, anyio.Event()).set()

    async def __call__(self, turn: Turn) -> str | None:
        name = turn.text.removeprefix("Count ")
        self.begun.append(name)
        self._now += 1
        self.most = max(self.most, self._now)
        await self._gates.setdefault(name, anyio.Event()).wait()
        self._now -= 1
        turn.say(name.upper())
        return "refusal" if name == "bad" else None


async def capitals(turn: Turn) -> None:
    turn.say(turn.text.upper())


TASK = thinkwell.think().text("Count ")


async def test_outcomes_come_as_the_runs_end() -> None:
    gates = Gates()
    async with scripted(gates) as agent, agent.map(TASK, ["a", "b", "c"]) as outcomes:
        found: list[Outcome[str, str]] = []
        for name in ("c", "a", "b"):
            gates.let(name)
            found.append(await anext(outcomes))
        with pytest.raises(StopAsyncIteration):
            await anext(outcomes)
    assert [(each.index, each.input, each.result) for each in found] == [
        (2, "c", "C"),
        (0, "a", "A"),
        (1, "b", "B"),
    ]
    assert all(each.view.phase == "completed" for each in found)
    assert all(each.seconds >= 0 for each in found)


async def test_outcomes_in_the_order_of_the_inputs() -> None:
    gates = Gates()
    async with scripted(gates) as agent:
        outcomes = agent.map(TASK, ["a", "b", "c"], ordered=True)
        gates.let("c", "b")
        while "c" not in gates.begun:
            await anyio.lowlevel.checkpoint()
        gates.let("a")
        assert [outcome.result async for outcome in outcomes] == ["A", "B", "C"]


async def test_failures_are_values() -> None:
    gates = Gates()
    gates.let("a", "bad", "b")

    def task(name: str) -> ThinkBuilder[str]:
        if name == "worse":
            raise KeyError(name)
        return TASK.text(name)

    async with scripted(gates) as agent:
        found = await agent.map(task, ["a", "bad", "worse", "b"], limit=2).results()
    assert [type(each.error) for each in found] == [type(None), ResultRefused, KeyError, type(None)]
    with pytest.raises(ResultRefused):
        found[1].result  # noqa: B018
    assert found[2].view.phase == "failed"
    assert found[2].view.error is found[2].error
    assert found[3].result == "B"


async def test_so_many_runs_at_a_time_and_no_more_outcomes_than_can_be_read() -> None:
    gates = Gates()
    names = [f"n{number}" for number in range(20)]
    gates.let(*names)
    async with scripted(gates) as agent:
        outcomes = agent.map(TASK, iter(names), limit=3)
        first = await anext(outcomes)
        await anyio.wait_all_tasks_blocked()
        assert len(gates.begun) == 7  # one was read, and twice the limit go on or wait
        assert "6 waiting, 1 delivered" in repr(outcomes)
        found = [first, *await outcomes.results()]
    assert {each.input for each in found} == set(names)
    assert gates.most <= 3


async def test_tasks_with_and_without_an_agent() -> None:
    async with scripted(capitals) as agent:

        def numbered(number: int) -> ThinkBuilder[str]:
            return agent.think().text(f"a{number}")

        tasks: list[ThinkBuilder[str] | Callable[[int], ThinkBuilder[str]]] = [
            agent.think().text("a"),
            thinkwell.think().text("a").fallback("codex"),
            numbered,
        ]
        for task in tasks:
            assert [o.result for o in await agent.map(task, [1, 2]).results()] == ["A1", "A2"]


async def test_a_task_without_an_agent_does_not_run() -> None:
    task = thinkwell.think(int).text("Go").system("Briefly.")
    for call in (task.stream, task.explain):
        with pytest.raises(ValueError, match="has no agent"):
            call()


async def test_what_an_agent_does_not_take_is_the_error_of_an_input() -> None:
    async with scripted(capitals) as agent:
        for task in (TASK.image(b"\x89PNG\r\n\x1a\n"), TASK.system("Briefly.")):
            (outcome,) = await agent.map(task, ["a"]).results()
            assert isinstance(outcome.error, thinkwell.CapabilityMissing)


async def test_one_budget_over_all() -> None:
    async def calls(turn: Turn) -> None:
        await turn.call("look", {})

    def look() -> None:
        """Look."""

    budget = Budget(max_tool_calls=2)
    async with scripted(calls) as agent:
        found = await agent.map(TASK.tool(look), range(4), limit=1, budget=budget).results()
    assert [type(each.error) for each in found[2:]] == [BudgetExceeded] * 2
    assert budget.spent.tool_calls == 3


async def test_leaving_the_block_cancels_what_runs() -> None:
    gates = Gates()
    gates.let("a")
    async with scripted(gates) as agent:
        async with agent.map(TASK, ["a", "b", "c", "d"], limit=2) as outcomes:
            assert (await anext(outcomes)).result == "A"
        rest = [each async for each in outcomes]
        assert {type(each.error) for each in rest} == {ThoughtCancelled}
        assert not agent.statistics().runs
    assert "d" not in gates.begun


async def test_cancelling_the_wait_for_results_cancels_all() -> None:
    gates = Gates()
    async with scripted(gates) as agent:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.map(TASK, ["a", "b"], limit=1).results)
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        assert not agent.statistics().runs
    assert gates.begun == ["a"]


async def test_inputs_that_raise_do_so_after_the_outcomes_before() -> None:
    def inputs() -> Iterator[str]:
        yield "a"
        raise OSError("gone")

    async with scripted(capitals) as agent:
        outcomes = agent.map(thinkwell.think(), inputs())
        assert (await anext(outcomes)).result == "A"
        with pytest.raises(OSError, match="gone"):
            await anext(outcomes)
        with pytest.raises(OSError, match="gone"):
            await agent.map(thinkwell.think(), inputs()).results()


async def test_an_agent_that_is_closed_meanwhile() -> None:
    gates = Gates()
    gates.let("c", "d", "e", "f")
    async with scripted(gates) as agent:
        running = agent.map(TASK, ["a", "b", "x"], limit=2)
        unread = agent.map(TASK, ["c", "d", "e", "f", "x"], limit=2)
        await anyio.wait_all_tasks_blocked()
        late = agent.map(TASK, ["x"])
    with pytest.raises(AgentClosed):
        agent.map(TASK, ["x"])
    errors = {each.input: type(each.error) for each in [await anext(running), await anext(running)]}
    assert errors == {"a": AgentClosed, "b": AgentClosed}
    assert {(await anext(unread)).result for _ in range(4)} == {"C", "D", "E", "F"}
    for outcomes in (running, unread):
        with pytest.raises(AgentClosed):
            await outcomes.results()
    with pytest.raises(AgentClosed):  # whether or not its run had begun
        (await late.results())[0].result  # noqa: B018


@pytest.mark.parametrize(
    ("task", "inputs", "options", "error"),
    [
        (TASK, "abc", {}, "a text is one input"),
        (TASK, 3, {}, "not iterable"),
        ("Count", ["a"], {}, r"give a task, such as thinkwell\.think"),
        (TASK, ["a"], {"limit": 0}, "at least one"),
        (TASK, ["a"], {"limit": 1.5}, "whole number"),
        (TASK, ["a"], {"limits": 2}, r"map\(\) has no option 'limits'; do you mean 'limit'"),
        (TASK, ["a"], {"colour": 2}, r"map\(\) has no option 'colour'$"),
        (TASK, ["a"], {"budget": 5}, "must be a Budget"),
        (TASK, ["a"], {"include": "mesage"}, "mesage"),
    ],
)
async def test_what_cannot_be_mapped(task: Any, inputs: Any, options: Any, error: str) -> None:
    async with scripted(capitals) as agent:
        with pytest.raises((TypeError, ValueError), match=error):
            agent.map(task, inputs, **options)


@pytest.mark.parametrize("wrong", [repr, Gates()])
async def test_a_function_that_returns_no_task_ends_the_map(wrong: Any) -> None:
    async with scripted(capitals) as agent:
        with pytest.raises(TypeError, match="return a task"):
            await agent.map(wrong, ["a", "b"]).results()


async def test_a_run_that_could_not_start_is_a_run_that_failed() -> None:
    def task(name: str) -> ThinkBuilder[str]:
        return TASK.resource(name)

    streams: list[Any] = []
    async with scripted(capitals) as agent:
        outcomes = agent.map(task, ["nowhere"])
        outcomes._follow(lambda _, stream: streams.append(stream))
        (outcome,) = await outcomes.results()
    (stream,) = streams
    assert isinstance(outcome.error, FileNotFoundError)
    assert "nowhere" in repr(outcome)
    assert [event async for event in stream] == []
    assert (stream.session_id, stream.recording, stream.late) == (None, None, ())
    assert stream.view.agent == "scripted"
    stream.cancel()
    stream.kill()
    with pytest.raises(RunEnded):
        await stream.steer("Go on.")
    with pytest.raises(QuestionNotOpen):
        stream.answer("q1", "allow")
    async with stream:
        pass
