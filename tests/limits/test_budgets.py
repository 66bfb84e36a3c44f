"""Budgets: what counts, once, for whom, and what happens at and beyond the limit."""

from __future__ import annotations

import logging
import math
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Stopwatch
from pydantic import BaseModel
from scripted import Played, Proceed, Script, Turn, scripted
from stream.wire_agent import answer, say, update, wire_agent

from thinkwell import Budget, BudgetExceeded, Spent, ThoughtStream
from thinkwell.testing import script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable


class Answer(BaseModel):
    answer: int


def used(turn: Turn, tokens: int = 0, cost: float | None = None, currency: str = "USD") -> None:
    """Report what was used so far."""
    money = None if cost is None else s.Cost(amount=cost, currency=currency)
    turn.update(s.UsageUpdate(used=tokens, size=200_000, cost=money))


async def settled() -> None:
    """Let what was sent arrive."""
    await anyio.wait_all_tasks_blocked()


class Counting(Played):
    """Says at the end of each turn how many tokens it took."""

    def __init__(self, *scripts: Script, totals: tuple[int | None, ...] = ()) -> None:
        super().__init__(scripts, answers={"session/prompt": self.prompt})
        self.totals = list(totals)

    async def prompt(self, request: s.PromptRequest, proceed: Proceed) -> s.PromptResponse:
        response: s.PromptResponse = await proceed(request)
        total = self.totals.pop(0) if self.totals else None
        if total is None:
            return response
        return s.PromptResponse(
            stop_reason=response.stop_reason,
            usage=s.Usage(total_tokens=total, input_tokens=total, output_tokens=0),
        )


async def exceeded(stream: ThoughtStream[Any]) -> tuple[str, float, float]:
    """Wait for the end of a run that is beyond its budget."""
    with anyio.fail_after(5):
        await stream.wait()
    error = stream.result.exception()
    assert isinstance(error, BudgetExceeded)
    return error.what, error.limit, error.spent


async def hangs(_turn: Turn) -> None:
    await anyio.sleep_forever()


async def greets(turn: Turn) -> None:
    turn.say("Hello")


# Tokens


async def test_tokens_in_mid_turn() -> None:
    async def grows(turn: Turn) -> None:
        for tokens in (400, 300, 1000, 1001):
            used(turn, tokens)
            turn.say("x")
        await anyio.sleep_forever()

    budget = Budget(max_tokens=1000)
    async with scripted(grows) as agent:
        stream = agent.think().text("Go").stream(budget=budget)
        assert await exceeded(stream) == ("tokens", 1000, 1001)
        assert stream.view.phase == "failed"
        assert stream.view.text.startswith("xxx")
        assert stream.view.stop_reason == "cancelled"
    assert budget.spent.tokens == 1001


async def test_tokens_at_the_end_of_a_turn__what_was_counted_in_it_is_not_counted_twice() -> None:
    async def grows(turn: Turn) -> None:
        used(turn, 300)
        used(turn, 700)

    budget = Budget(max_tokens=10_000)
    async with scripted(agent=Counting(grows, totals=(1500, 600, None))) as agent, agent.session() as session:
        spent: list[int] = []
        for _ in range(3):
            await session.think().text("Go").run(budget=budget)
            spent.append(budget.spent.tokens)
    # Every turn has taken its context anew. The second says less of itself than it has shown.
    assert spent == [1500, 1500 + 700, 1500 + 700 + 700]


@pytest.mark.parametrize(("totals", "spent"), [((500, 500), 1300), ((None, None), 900)])
async def test_tokens_of_a_reminder_turn(totals: tuple[int | None, ...], spent: int) -> None:
    tokens = iter((100, 800))

    async def forgets(turn: Turn) -> None:
        used(turn, next(tokens))

    budget = Budget(max_tokens=10_000)
    async with scripted(agent=Counting(forgets, totals=totals)) as agent:
        stream = agent.think(Answer).text("Go").stream(budget=budget)
        await stream.wait()
        assert stream.view.turns == 2
        stream.result.exception()
    assert budget.spent.tokens == spent


async def test_tokens_before_the_first_prompt_are_of_the_first_turn() -> None:
    async def grows(turn: Turn) -> None:
        used(turn, 6000)

    budget = Budget(max_tokens=10_000)
    agent = Played(
        [grows],
        before_session=script.updates({"sessionUpdate": "usage_update", "used": 5000, "size": 200_000}),
    )
    async with scripted(agent=agent) as opened:
        await opened.think().text("Go").run(budget=budget)
    assert budget.spent.tokens == 6000


async def test_exactly_reached__is_not_exceeded_but_leaves_nothing_for_another() -> None:
    budget = Budget(max_tokens=1000)
    agent = Counting(greets, totals=(1000,))
    async with scripted(agent=agent) as opened:
        assert await opened.think().text("Go").run(budget=budget) == "Hello"
        assert budget.spent.tokens == 1000
        with pytest.raises(BudgetExceeded) as caught:
            await opened.think().text("Go").run(budget=budget)
        assert (caught.value.what, caught.value.limit, caught.value.spent) == ("tokens", 1000, 1000)
        assert "1000 of 1000 tokens; give the run another Budget" in str(caught.value)
        assert len(agent.sent.sessions) == len(agent.sent.prompts) == 1, "nothing was sent"


async def test_a_result_that_is_there_stays_though_its_turn_was_too_dear() -> None:
    budget = Budget(max_tokens=1000)
    agent = Counting(greets, totals=(5000,))
    async with scripted(agent=agent) as opened:
        stream = opened.think().text("Go").stream(budget=budget)
        assert await stream.result == "Hello"
        await stream.wait()
        assert stream.view.phase == "completed"
        assert budget.spent.tokens == 5000
        assert await exceeded(opened.think().text("Go").stream(budget=budget)) == ("tokens", 1000, 5000)


async def test_a_result_that_was_returned_stays_though_the_turn_goes_on() -> None:
    async def returns(turn: Turn) -> None:
        await turn.returns(answer=1)
        used(turn, 5000)
        await anyio.sleep_forever()

    async with scripted(returns) as agent:
        stream = agent.think(Answer).text("Go").stream(budget=Budget(max_tokens=1000))
        assert await stream.result == Answer(answer=1)
        with anyio.fail_after(5):
            await stream.wait()
        assert (stream.view.phase, stream.view.cut) == ("completed", "BudgetExceeded")


async def test_no_reminder_is_sent_where_nothing_is_left_for_it() -> None:
    agent = Counting(greets, totals=(5000,))
    async with scripted(agent=agent) as opened:
        stream = opened.think(Answer).text("Go").stream(budget=Budget(max_tokens=1000))
        assert await exceeded(stream) == ("tokens", 1000, 5000)
        await settled()
        assert len(agent.sent.prompts) == 1


# Cost


async def test_cost_is_counted_from_what_the_session_has_cost_before() -> None:
    costs = iter((0.5, 0.75, 2.0))

    async def pays(turn: Turn) -> None:
        used(turn, 10, next(costs))

    budget = Budget(max_cost=10)
    async with scripted(pays) as agent, agent.session() as session:
        await session.think().text("1").run(budget=budget)
        assert budget.spent.cost == 0.5
        await session.think().text("2").run()
        assert budget.spent.cost == 0.5
        await session.think().text("3").run(budget=budget)
        assert budget.spent.cost == 1.75


async def test_cost_of_turns_that_were_started_at_once() -> None:
    costs = iter((0.5, 0.75, 2.0))

    async def pays(turn: Turn) -> None:
        used(turn, 10, next(costs))

    budget = Budget(max_cost=10)
    async with scripted(pays) as agent, agent.session() as session:
        streams = [session.think().text("Go").stream(budget=budget) for _ in range(3)]
        for stream in streams:
            await stream.result
    assert budget.spent.cost == 2.0


@pytest.mark.parametrize(
    ("costs", "spent"),
    [
        ((0.1, 0.2, 0.3), 0.3),  # adds up to what it should
        ((0.5, 0.4, 0.6), 0.6),  # a correction
        ((-5.0, 1.0, -5.0), 1.0),
        ((0.0, 0.0, 0.0), 0.0),
        ((1e308, -1e308, 1e308), 1e308),
    ],
)
async def test_cost_as_agents_may_report_it(costs: tuple[float, ...], spent: float) -> None:
    async def pays(turn: Turn) -> None:
        for cost in costs:
            used(turn, 10, cost)

    budget = Budget(max_cost=max(costs) or 1)
    async with scripted(pays) as agent:
        await agent.think().text("Go").run(budget=budget)
    assert budget.spent.cost == spent


async def test_cost_of_an_agent_that_counts_anew_in_each_turn() -> None:
    costs = iter((0.5, 0.25))

    async def pays(turn: Turn) -> None:
        used(turn, 10, next(costs))

    budget = Budget(max_cost=10)
    async with scripted(pays) as agent, agent.session() as session:
        await session.think().text("1").run(budget=budget)
        await session.think().text("2").run(budget=budget)
    assert budget.spent.cost == 0.75


async def test_cost_of_a_loaded_session_is_not_known_at_first() -> None:
    costs = iter(((40.0, 40.5), (41.0,)))

    async def pays(turn: Turn) -> None:
        for cost in next(costs):
            used(turn, 10, cost)

    budget = Budget(max_cost=5)
    capabilities = s.AgentCapabilities(load_session=True, mcp_capabilities=s.McpCapabilities(acp=True))
    handler = Played([pays], capabilities=capabilities)
    async with scripted(agent=handler) as agent, agent.session(load="old") as session:
        await session.think().text("1").run(budget=budget)
        assert budget.spent.cost == 0.5
        await session.think().text("2").run(budget=budget)
        assert budget.spent.cost == 1.0


async def test_cost_beyond_the_limit() -> None:
    async def pays(turn: Turn) -> None:
        used(turn, 10, 1.0)
        used(turn, 10, 1.01)
        await anyio.sleep_forever()

    async with scripted(pays) as agent:
        stream = agent.think().text("Go").stream(budget=Budget(max_cost=1, currency="usd"))
        assert await exceeded(stream) == ("cost", 1, 1.01)


async def test_cost_in_another_currency_does_not_count__and_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def pays(turn: Turn) -> None:
        for cost in range(5):
            used(turn, 10, cost, "EUR")

    budget = Budget(max_cost=1)
    async with scripted(pays) as agent:
        for _ in range(2):
            await agent.think().text("Go").run(budget=budget)
    assert budget.spent.cost == 0
    (record,) = [record for record in caplog.records if record.name == "thinkwell"]
    assert (record.levelno, "in 'EUR'" in record.getMessage()) == (logging.WARNING, True)


# What agents should not send


@pytest.mark.parametrize("tokens", [-1, 1.5, "many", None, 2**64, 10**400])
async def test_numbers_that_make_no_sense_never_crash(tokens: Any) -> None:
    budget = Budget(max_tokens=10**6)
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Go").stream(include="all", budget=budget)
        prompt = await wire.begin()
        await wire.write(
            update("usage_update", used=tokens, size=1, cost={"amount": tokens, "currency": "USD"}),
            say("Hello"),
        )
        if isinstance(tokens, int) and tokens > 0:
            assert (await wire.expect("session/cancel"))["params"] == {"sessionId": "s"}
        await wire.write(
            answer(
                prompt,
                {
                    "stopReason": "end_turn",
                    "usage": {"totalTokens": tokens, "inputTokens": tokens, "outputTokens": tokens},
                },
            )
        )
        with anyio.fail_after(5):
            await stream.wait()
        error = stream.result.exception()
        assert str(error) != ""
        assert str(budget) != ""
        assert stream.view.text == "Hello"
        if isinstance(tokens, int) and tokens > 0:
            assert isinstance(error, BudgetExceeded)
            assert error.spent <= 2**63


# Tool calls


def show(
    turn: Turn, tool_id: str, status: Any = "pending", title: str = "Read", **fields: Any
) -> s.ToolCallStart:
    call = s.ToolCallStart(tool_call_id=tool_id, title=title, status=status, **fields)
    turn.update(call)
    return call


def news(turn: Turn, tool_id: str, status: Any = "completed", **fields: Any) -> None:
    turn.update(s.ToolCallProgress(tool_call_id=tool_id, status=status, **fields))


async def test_calls_of_the_agents_own_tools__each_once_however_they_are_shown() -> None:
    async def works(turn: Turn) -> None:
        show(turn, "a")
        news(turn, "a", "in_progress")
        news(turn, "a")
        news(turn, "a", None)
        show(turn, "b", "completed")
        news(turn, "c")  # never announced
        show(turn, "a")  # once more
        turn.say("x")

    budget = Budget(max_tool_calls=3)
    async with scripted(works) as agent:
        await agent.think().text("Go").run(budget=budget)
    assert budget.spent.tool_calls == 3


def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


ARGUMENTS: dict[str, object] = {"x": 1, "y": 2}


def as_claude(turn: Turn, name: str) -> None:
    show(turn, "t", title=f"mcp__{name}__add", kind="other", raw_input={})
    news(turn, "t", None, raw_input=ARGUMENTS)


def as_codex(turn: Turn, name: str) -> None:
    raw = {"server": name, "tool": "add", "arguments": ARGUMENTS}
    show(turn, "t", "in_progress", f"mcp.{name}.add", kind="execute", raw_input=raw)


def as_opencode(turn: Turn, name: str) -> None:
    show(turn, "t", title=f"{name}_add", raw_input={})
    news(turn, "t", "in_progress", raw_input=ARGUMENTS)


def known_later(turn: Turn, name: str) -> None:
    show(turn, "t", title="")
    news(turn, "t", "in_progress", title=f"{name}_add")


def not_at_all(turn: Turn, name: str) -> None:
    pass


@pytest.mark.parametrize("shows", [as_claude, as_codex, as_opencode, known_later, not_at_all])
@pytest.mark.parametrize("finished", [False, True])
async def test_calls_of_our_tools__each_once_however_they_are_shown(
    shows: Callable[[Turn, str], None], finished: bool
) -> None:
    async def calls(turn: Turn) -> None:
        name = turn.server
        shows(turn, name)
        await turn.call("add", ARGUMENTS)
        if finished and shows is not not_at_all:
            news(turn, "t", raw_output="3")
            news(turn, "t", None, meta={"late": True})
        await turn.returns(answer=3)

    budget = Budget(max_tool_calls=10)
    async with scripted(calls) as agent:
        stream = agent.think(Answer).text("Go").tool(add).stream(budget=budget)
        assert await stream.result == Answer(answer=3)
        await stream.wait()
    assert budget.spent.tool_calls == 1


async def test_a_call_of_ours_that_shows_only_in_a_question_and_at_its_end() -> None:
    async def calls(turn: Turn) -> None:  # as gemini-cli does
        name = turn.server
        call = s.ToolCallUpdate(tool_call_id="t", title=f"add ({name} MCP Server)")
        options = (s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),)
        await turn.client.request_permission(
            s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=options)
        )
        await turn.call("add", ARGUMENTS)
        news(turn, "t")

    budget = Budget(max_tool_calls=10)
    async with scripted(calls) as agent:
        await agent.think().text("Go").tool(add).run(budget=budget)
    assert budget.spent.tool_calls == 1


async def test_an_id_of_ours_that_the_agent_uses_again_for_a_tool_of_its_own() -> None:
    async def calls(turn: Turn) -> None:
        as_claude(turn, turn.server)
        await turn.call("add", ARGUMENTS)
        news(turn, "t")
        show(turn, "t", title="Delete everything")

    budget = Budget(max_tool_calls=10)
    async with scripted(calls) as agent:
        await agent.think().text("Go").tool(add).run(budget=budget)
    assert budget.spent.tool_calls == 2


async def test_return_result_is_free() -> None:
    async def tries(turn: Turn) -> None:
        name = turn.server
        show(turn, "r", title=f"mcp__{name}__return_result")
        await turn.returns(answer="no number")
        news(turn, "r", "failed")
        await turn.returns(answer=1)

    budget = Budget(max_tool_calls=0)
    async with scripted(tries) as agent:
        assert await agent.think(Answer).text("Go").run(budget=budget) == Answer(answer=1)
    assert budget.spent.tool_calls == 0


async def test_calls_of_our_tools_beyond_the_limit__are_not_run() -> None:
    ran: list[int] = []
    told: list[Any] = []

    async def work(x: int) -> str:
        """Work."""
        ran.append(x)
        return "done"

    async def calls(turn: Turn) -> None:
        with anyio.CancelScope(shield=True):
            for number in range(5):
                told.append((await turn.call("work", {"x": number}))["isError"])

    async with scripted(calls) as agent:
        stream = agent.think().text("Go").tool(work).stream(budget=Budget(max_tool_calls=2))
        assert await exceeded(stream) == ("tool_calls", 2, 3)
    assert ran == [0, 1]
    assert told == [False, False, True, True, True]


async def test_calls_of_the_agents_tools_beyond_the_limit() -> None:
    async def works(turn: Turn) -> None:
        for number in range(3):
            show(turn, str(number))
        await anyio.sleep_forever()

    budget = Budget(max_tool_calls=2)
    async with scripted(works) as agent:
        stream = agent.think().text("Go").stream(budget=budget)
        assert await exceeded(stream) == ("tool_calls", 2, 3)
        assert {tool.status for tool in stream.view.tools.values()} == {"cancelled"}
        # What needs no tools would be let in at the limit, but not beyond it.
        assert await exceeded(agent.think().text("Go").stream(budget=budget)) == ("tool_calls", 2, 3)
        assert "2 of 2 tool calls" in str(stream.result.exception())  # the third one was stopped


async def test_at_its_limit_of_calls_a_budget_lets_in_what_needs_none() -> None:
    budget = Budget(max_tool_calls=0)
    async with scripted(greets) as agent:
        assert await agent.think().text("Go").run(budget=budget) == "Hello"


# Time


@pytest.mark.virtual_time
class TestSeconds:
    async def test_seconds(self) -> None:
        async with scripted(hangs) as agent:
            watch = Stopwatch()
            stream = agent.think().text("Go").stream(budget=Budget(max_seconds=3600))
            with pytest.raises(BudgetExceeded) as caught:
                await stream.result
            assert watch.seconds == pytest.approx(3600, abs=0.1)
            assert (caught.value.what, caught.value.limit) == ("seconds", 3600)

    async def test_seconds_do_not_begin_while_a_run_waits_for_its_turn(self) -> None:
        async def works(turn: Turn) -> None:
            await anyio.sleep(1000)

        async with scripted(works) as agent, agent.session() as session:
            watch = Stopwatch()
            session.think().text("1").stream()
            stream = session.think().text("2").stream(budget=Budget(max_seconds=500))
            with pytest.raises(BudgetExceeded):
                await stream.result
            assert watch.seconds == pytest.approx(1500, abs=0.5)


async def test_seconds_are_shared() -> None:
    budget = Budget(max_seconds=0.1)
    agent = Played([hangs])
    async with scripted(agent=agent) as opened:
        first = opened.think().text("1").stream(budget=budget)
        second = opened.think().text("2").stream(budget=budget)
        assert {(await exceeded(stream))[0] for stream in (first, second)} == {"seconds"}
        assert budget.spent.seconds >= 0.1
        third = opened.think().text("3").stream(budget=budget)
        assert (await exceeded(third))[0] == "seconds"
        assert len(agent.sent.prompts) == 2


async def test_no_seconds_at_all() -> None:
    agent = Played([hangs])
    async with scripted(agent=agent) as opened:
        stream = opened.think().text("1").stream(budget=Budget(max_seconds=0))
        assert (await exceeded(stream))[:2] == ("seconds", 0)
    assert not agent.sent.sessions


# Sharing


async def test_runs_of_one_agent_and_of_others_end_together() -> None:
    go = anyio.Event()

    async def spends(turn: Turn) -> None:
        if turn.text == "spend":
            await go.wait()
            used(turn, 1001)
        await anyio.sleep_forever()

    budget = Budget(max_tokens=1000)
    async with scripted(spends) as one, scripted(spends) as other, one.session() as session:
        streams = [
            one.think().text("wait").stream(budget=budget),
            session.think().text("wait").stream(budget=budget),
            session.think().text("in the queue").stream(budget=budget),
            other.think().text("wait").stream(budget=budget),
            other.think().text("spend").stream(budget=budget),
        ]
        free = other.think().text("wait").stream()
        await settled()
        go.set()
        for stream in streams:
            assert await exceeded(stream) == ("tokens", 1000, 1001)
        errors = [stream.result.exception() for stream in streams]
        assert len(set(map(id, errors))) == len(errors), "each has an error of its own"
        assert not free.result.done()


async def test_a_run_that_has_ended_is_left_alone() -> None:
    async def spends(turn: Turn) -> None:
        turn.say("Hello")
        if turn.text == "spend":
            used(turn, 1001)
            await anyio.sleep_forever()

    budget = Budget(max_tokens=1000)
    async with scripted(spends) as agent:
        first = agent.think().text("greet").stream(budget=budget)
        assert await first.result == "Hello"
        assert (await exceeded(agent.think().text("spend").stream(budget=budget)))[0] == "tokens"
        assert first.view.phase == "completed"


@pytest.mark.parametrize("other", ["asyncio", "trio"])
async def test_runs_in_other_threads_end_too(other: str) -> None:
    budget = Budget(max_tokens=1000)
    ready = threading.Event()
    outcomes: list[tuple[str, float, float]] = []

    async def elsewhere() -> None:
        async def waits(turn: Turn) -> None:
            ready.set()
            await anyio.sleep_forever()

        async with scripted(waits) as agent:
            outcomes.append(await exceeded(agent.think().text("wait").stream(budget=budget)))

    async def spends(turn: Turn) -> None:
        await anyio.to_thread.run_sync(ready.wait, 5)
        used(turn, 1001)
        await anyio.sleep_forever()

    thread = threading.Thread(target=anyio.run, args=(elsewhere,), kwargs={"backend": other})
    thread.start()
    async with scripted(spends) as agent:
        here = await exceeded(agent.think().text("spend").stream(budget=budget))
    await anyio.to_thread.run_sync(thread.join)
    assert outcomes == [here] == [("tokens", 1000, 1001)]


async def test_the_event_loop_of_a_run_elsewhere_may_have_gone() -> None:
    budget = Budget(max_tokens=1000)

    async def abandons() -> None:
        async with scripted(hangs) as agent:
            agent.think().text("wait").stream(budget=budget)
            await settled()

    await anyio.to_thread.run_sync(anyio.run, abandons)

    async def spends(turn: Turn) -> None:
        used(turn, 1001)
        await anyio.sleep_forever()

    async with scripted(spends) as agent:
        assert await exceeded(agent.think().text("spend").stream(budget=budget)) == ("tokens", 1000, 1001)


async def test_two_runs_that_begin_at_once_and_spend_all_of_it() -> None:
    async def spends(turn: Turn) -> None:
        used(turn, 501)
        await anyio.sleep_forever()

    budget = Budget(max_tokens=1000)
    async with scripted(spends) as agent:
        streams = [agent.think().text("Go").stream(budget=budget) for _ in range(2)]
        for stream in streams:
            assert (await exceeded(stream))[0] == "tokens"


# The object


def test_what_is_spent_and_how_it_looks() -> None:
    budget = Budget(max_tokens=1000, max_cost=2.5)
    assert budget.spent == Spent()
    assert repr(budget) == "<Budget 0/1000 tokens, 0/2.5 cost>"
    budget.charge(tokens=10, cost=0.25, tool_calls=3)
    assert budget.spent == Spent(tokens=10, cost=0.25, tool_calls=3)
    assert repr(budget) == "<Budget 10/1000 tokens, 0.25/2.5 cost>"
    assert repr(Budget(max_tool_calls=5, max_seconds=60)) == "<Budget 0/5 tool_calls, 0/60 seconds>"


@pytest.mark.parametrize(
    ("limits", "error", "match"),
    [
        ({}, ValueError, "set a limit"),
        ({"max_tokens": -1}, ValueError, r"max_tokens=-1.*negative"),
        ({"max_cost": math.nan}, ValueError, "max_cost=nan"),
        ({"max_seconds": "60"}, TypeError, "max_seconds='60'.*number"),
        ({"max_tool_calls": True}, TypeError, "max_tool_calls=True"),
    ],
)
def test_a_budget_that_makes_no_sense(limits: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        Budget(**limits)


async def test_something_else_than_a_budget() -> None:
    async with scripted(greets) as agent:
        with pytest.raises(TypeError, match="must be a Budget"):
            agent.think().text("Go").stream(budget=1000)  # type: ignore[arg-type]


async def test_a_limit_that_is_none() -> None:
    budget = Budget(max_seconds=math.inf, max_tokens=10)
    async with scripted(greets) as agent:
        assert await agent.think().text("Go").run(budget=budget) == "Hello"
