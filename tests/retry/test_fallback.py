"""Another agent takes a task over where the first one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Stopwatch
from retry.failing import BUSY, EMPTY, EXPIRED, FULL, NOW, known, opening, played

from thinkwell import (
    AgentExited,
    AgentNotFound,
    AgentReported,
    AgentStartFailed,
    AgentStatistics,
    Budget,
    BudgetExceeded,
    CapabilityMissing,
    ContextFull,
    LoginExpired,
    LoginRequired,
    Overloaded,
    QuotaExhausted,
    Retry,
    ThoughtCancelled,
    ThoughtTimeout,
    open_agent,
    replay,
)
from thinkwell import events as ev
from thinkwell.listen import Handlers
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import ConnectionClosed, RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from thinkwell.testing import Script

pytestmark = pytest.mark.virtual_time

ANSWER = script.says("42")
PNG = b"\x89PNG\r\n\x1a\n"


def second(told: Script = ANSWER, **options: Any) -> ScriptedAgent:
    return played(told, **options)


FAILURES: dict[str, tuple[Callable[[], ScriptedAgent], type[Exception]]] = {
    "quota": (lambda: played(EMPTY), QuotaExhausted),
    "overload": (lambda: played(BUSY), Overloaded),
    "login expired": (lambda: played(EXPIRED), LoginExpired),
    "login": (lambda: played(script.fails(-32000, "log in")), LoginRequired),
    "exit": (lambda: played(script.hangs_up()), AgentExited),
    "session": (lambda: played(ANSWER, fails_at={"session/new": RpcError(-32000, "log in")}), LoginRequired),
    "any error there": (
        lambda: played(ANSWER, fails_at={"session/new": RpcError(-32603, "no root")}),
        AgentReported,
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_the_next_agent_takes_over(failure: str) -> None:
    make, kind = FAILURES[failure]
    other = second()
    async with opening(make(), fallback=[opening(other, "second")]) as agent:
        stream = agent.think().text("Go").stream(include="all")
        assert await stream.result == "42"
        await stream.wait()
        (switch,) = [event async for event in stream if isinstance(event, ev.TryFailed)]
        assert (switch.agent, switch.error, switch.next_agent, switch.then, switch.delay) == (
            "first",
            kind.__name__,
            "second",
            "fallback",
            0.0,
        )
        assert switch.reason
        view = stream.view
        assert (view.agent, view.phase, view.text, view.error) == ("second", "completed", "42", None)
        assert [notice.title for notice in view.notices] == [f"first: {kind.__name__}; second takes over"]
        assert agent.name == "first"
        again = agent.think().text("Again").stream()
        await again.wait()
        again.result.exception()
    assert other.sent.prompts[0].text == "Go"


async def test_a_fallback_is_opened_when_it_is_needed_once_and_closed_with_the_block() -> None:
    other = second(repeats=True)
    async with opening(
        played(ANSWER.stops() + EMPTY, repeats=True), fallback=[opening(other, "second")]
    ) as agent:
        assert await agent.think().text("Go").run() == "42"
        assert not other.sent.messages
        streams = [agent.think().text("Go").stream() for _ in range(3)]
        for stream in streams:
            assert await stream.result == "42"
    assert other.client.connection.error is not None
    initialized = [message for message in other.sent.messages if message.method == "initialize"]
    assert (len(initialized), len(other.sent.prompts)) == (1, 3)


@pytest.mark.parametrize(
    ("failed", "kind"), [(FULL, ContextFull), (script.refuses(), Exception), (script.returns(1), Exception)]
)
async def test_other_errors_stay_with_the_agent(failed: Script, kind: type[Exception]) -> None:
    other = second()
    async with opening(played(failed), fallback=[opening(other, "second")]) as agent:
        with pytest.raises(kind):
            await agent.think().text("Go").run(reminders=0)
    assert not other.sent.messages


async def test_each_agent_tries_again_before_the_next_takes_over() -> None:
    first, other, twice = played(BUSY, repeats=True), second(BUSY + ANSWER), Retry(attempts=2, random=float)
    async with opening(first, fallback=[opening(other, "second")]) as agent:
        stream = agent.think().text("Go").stream(include={"try_failed"}, retry=twice)
        assert await stream.result == "42"
        await stream.wait()
        tries = [event async for event in stream if isinstance(event, ev.TryFailed)]
    assert [(each.agent, each.then, each.next_agent) for each in tries] == [
        ("first", "retry", "first"),
        ("first", "fallback", "second"),
        ("second", "retry", "second"),
    ]
    assert (len(first.sent.prompts), len(other.sent.prompts)) == (2, 2)


async def test_the_last_error_tells_of_all_agents() -> None:
    others = [opening(second(BUSY), "second"), opening(second(EXPIRED), "third")]
    async with opening(played(EMPTY), fallback=others) as agent:
        with pytest.raises(LoginExpired) as caught:
            await agent.think().text("Go").run()
    assert [(each.agent, each.error, each.next_agent) for each in caught.value.tries] == [
        ("first", "QuotaExhausted", "second"),
        ("second", "Overloaded", "third"),
    ]
    notes = "\n".join(caught.value.__notes__)
    assert "Before that, agent first failed: QuotaExhausted: " in notes
    assert "Before that, agent second failed: Overloaded: " in notes


# What the next agent is told


async def test_the_next_agent_is_told_what_was_done_and_said() -> None:
    told = (
        script.says("The bug is in </earlier_work> a.py. ")
        .uses("Read a.py", kind="read")
        .fails(-32603, "overloaded")
    )
    other = second()
    async with opening(played(told), fallback=[opening(other, "second")]) as agent:
        assert await agent.think().text("Go").run() == "42"
    (prompt,) = other.sent.prompts
    assert prompt.text.startswith("Go\n\nBefore you, first worked on this task and could not finish it. ")
    assert prompt.text.endswith(
        "<earlier_work_>\nTool calls:\n- Read a.py (completed)\nMessage:\n"
        "The bug is in </earlier_work> a.py.\n</earlier_work_>\n"
    )
    assert "changed" not in prompt.text


@pytest.mark.parametrize("said", ["", "It is long.\n\n"])
async def test_the_failure_itself_is_nothing_that_was_said(said: str) -> None:
    told = script.says(f"{said}API Error: quota\n\n").fails(-32603, "Internal error: API Error: quota")
    other = second()
    async with opening(played(told), fallback=[opening(other, "second")]) as agent:
        assert await agent.think().text("Go").run() == "42"
    (prompt,) = other.sent.prompts
    assert "API Error" not in prompt.text
    assert ("It is long." in prompt.text) == bool(said)
    assert (prompt.text == "Go") == (not said)


async def test_that_is_bounded() -> None:
    told = script.says("x" * 100_000)
    for number in range(50):
        told = told.uses(f"Read {number} " + "y" * 1000, kind="read")
    other = second()
    async with opening(played(told.fails(-32603, "quota")), fallback=[opening(other, "second")]) as agent:
        assert await agent.think().text("Go").run() == "42"
    text = other.sent.prompts[0].text
    assert len(text) < 10_000
    assert "- Read 49 " in text
    assert "- Read 29 " not in text


async def test_the_next_agent_gets_the_tools_and_the_result_type() -> None:
    calls = list[int]()

    def add(number: int) -> int:
        """Add a number."""
        calls.append(number)
        return number

    other = second(script.calls("add", {"number": 2}).returns(4))
    async with opening(played(EMPTY), fallback=[opening(other, "second")]) as agent:
        assert await agent.think(int).tool(add).text("Go").run() == 4
    assert calls == [2]


# What may have changed

CHANGED = script.uses("Edit a.py", kind="edit").fails(-32603, "quota")


async def test_no_agent_takes_over_when_something_may_have_changed() -> None:
    other = second()
    async with opening(played(CHANGED), fallback=[opening(other, "second")]) as agent:
        with pytest.raises(QuotaExhausted):
            await agent.think().text("Go").run(retry=NOW)
    assert not other.sent.messages


@pytest.mark.parametrize("where", ["block", "task"])
async def test_it_does_where_that_is_said(where: str) -> None:
    other = opening(agent := second(), "second")
    options: dict[str, Any] = {}
    if where == "block":
        options = {"fallback": [other], "fallback_after_effects": True}
    first = played(script.uses("Edit a.py", kind="edit").fails(-32603, "overloaded"))
    async with opening(first, **options) as opened:
        builder = opened.think().text("Go")
        if where == "task":
            builder = builder.fallback(other, after_effects=True)
        assert await builder.run(retry=NOW) == "42"
    assert len(first.sent.prompts) == 1
    assert "Something may have been changed: look before you do that again. " in agent.sent.prompts[0].text


# Launching


async def test_the_next_agent_is_opened_where_the_first_does_not_start() -> None:
    other = second()
    no_start = played(ANSWER, fails_at={"initialize": RpcError(-32603, "no")})
    async with open_agent(
        known("missing"), fallback=[opening(no_start, "broken"), opening(other, "second")]
    ) as agent:
        assert agent.name == "second"
        stream = agent.think().text("Go").stream(include="all")
        assert await stream.result == "42"
        await stream.wait()
        events = [event async for event in stream]
        tries = [event for event in events if isinstance(event, ev.TryFailed)]
        assert [(each.agent, each.error, each.next_agent) for each in tries] == [
            ("missing", "AgentNotFound", "broken"),
            ("broken", "AgentStartFailed", "second"),
        ]
        assert all(each.at <= 0 for each in tries)
        assert not [event async for event in agent.think().text("Go").stream(include={"try_failed"})]


async def test_the_rest_of_the_fallback_is_there_for_the_one_that_starts() -> None:
    others = [opening(second(EMPTY), "second"), opening(second(), "third")]
    async with open_agent(known("missing"), fallback=others) as agent:
        assert agent.name == "second"
        assert await agent.think().text("Go").run() == "42"


async def test_where_none_starts_the_last_error_tells_of_all() -> None:
    no_start = played(ANSWER, fails_at={"initialize": RpcError(-32603, "no")})
    with pytest.raises(AgentStartFailed) as caught:
        async with open_agent(known("missing"), fallback=[opening(no_start, "broken")]):
            raise AssertionError
    assert [each.agent for each in caught.value.tries] == ["missing"]
    assert "Before that, agent missing failed: AgentNotFound: " in "".join(caught.value.__notes__)


async def test_an_error_of_another_kind_at_the_start_is_raised(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        async with open_agent(known("missing"), record=tmp_path, fallback=[opening(second(), "second")]):
            raise AssertionError


async def test_a_fallback_that_does_not_start_is_passed_over() -> None:
    others = [open_agent(known("missing")), opening(second(), "third")]
    async with opening(played(EMPTY), fallback=others) as agent:
        stream = agent.think().text("Go").stream(include={"try_failed"})
        assert await stream.result == "42"
        await stream.wait()
        tries = [event async for event in stream if isinstance(event, ev.TryFailed)]
    assert [(each.agent, each.error) for each in tries] == [
        ("first", "QuotaExhausted"),
        ("missing", "AgentNotFound"),
    ]


async def test_a_fallback_that_cannot_take_the_task_is_passed_over(tmp_path: Path) -> None:
    sees = s.AgentCapabilities(
        prompt_capabilities=s.PromptCapabilities(image=True), mcp_capabilities=s.McpCapabilities(acp=True)
    )
    last = second(capabilities=sees)
    others = [opening(second(), "second"), opening(last, "third")]
    async with opening(played(EMPTY, capabilities=sees), fallback=others) as agent:
        assert await agent.think().text("Go").image(PNG).run() == "42"
    assert len(last.sent.prompts) == 1


async def test_a_system_prompt_that_no_fallback_takes_is_an_error() -> None:
    system = s.SessionCapabilities(system_prompt=s.SessionSystemPromptCapabilities())
    first = played(EMPTY, capabilities=s.AgentCapabilities(session_capabilities=system))
    async with opening(first, fallback=[opening(second(), "second")]) as agent:
        with pytest.raises(CapabilityMissing) as caught:
            await agent.think().system("Be brief").text("Go").run()
    assert [each.error for each in caught.value.tries] == ["QuotaExhausted"]


# Agents that end


async def test_one_that_cannot_be_started_again_is_not() -> None:
    async with opening(played(script.hangs_up())) as agent:
        with pytest.raises(AgentExited) as caught:
            await agent.think().text("Go").run(retry=NOW)
    assert caught.value.tries == ()


async def test_a_session_ends_with_its_agent() -> None:
    async with opening(played(script.hangs_up())) as agent, agent.session() as session:
        with pytest.raises(AgentExited):
            await session.think().text("Go").run(retry=NOW)


async def test_an_agent_that_was_killed_on_purpose_is_not_replaced() -> None:
    other = second()
    async with opening(played(script.says("Hm").hangs()), fallback=[opening(other, "second")]) as agent:
        stream = agent.think().text("Go").stream(retry=NOW)
        async for _ in stream:
            break
        stream.kill()
        with pytest.raises(AgentExited):
            await stream.result
        await stream.wait()
    assert not other.sent.messages


async def test_an_agent_that_ends_between_two_tries_is_replaced() -> None:
    first, other = played(BUSY), second()
    waiting = Retry(random=lambda: 1.0)
    async with opening(first, fallback=[opening(other, "second")]) as agent:
        stream = agent.think().text("Go").stream(include={"try_failed"}, retry=waiting)
        async for _ in stream:
            break
        first.client.connection.end(ConnectionClosed())
        assert await stream.result == "42"


# Ends


async def test_it_can_be_cancelled_while_the_next_agent_is_opened() -> None:
    async def hangs(_request: object, _proceed: object) -> None:
        await anyio.sleep_forever()

    slow = second(answers={"initialize": hangs})
    watch = Stopwatch()
    async with opening(played(EMPTY, repeats=True), fallback=[opening(slow, "second")]) as agent:
        stream = agent.think().text("Go").stream()
        await anyio.wait_all_tasks_blocked()
        assert slow.sent.messages
        stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result
        await stream.wait()
        with pytest.raises(AgentStartFailed, match="its transport was used before, and opens only once"):
            await agent.think().text("Go").run()
        other = opening(second(answers={"initialize": hangs}), "third")
        with pytest.raises(ThoughtTimeout):
            await agent.think().text("Go").fallback(other).run(timeout=5)
    assert watch.seconds < 20


async def test_leaving_the_block_cancels_what_another_agent_does() -> None:
    other = second(script.says("Hm").hangs())
    async with opening(played(EMPTY), fallback=[opening(other, "second")]) as agent:
        stream = agent.think().text("Go").stream()
        async for _ in stream:
            break
    assert len(other.sent.cancelled) == 1
    with pytest.raises(ThoughtCancelled):
        await stream.result
    assert (stream.view.phase, stream.view.agent) == ("cancelled", "second")


async def test_no_try_begins_while_the_block_is_left() -> None:
    first = played(script.says("Hm").hangs(deaf=True).stops() + EMPTY)
    other = second(BUSY + ANSWER)
    async with opening(first, fallback=[opening(other, "second")]) as agent:
        deaf = agent.think().text("Go").stream()
        async for _ in deaf:
            break
        waits = Retry(random=lambda: 1.0)
        stream = agent.think().text("Go").stream(include={"try_failed"}, retry=waits)
        async for event in stream:
            if isinstance(event, ev.TryFailed) and event.agent == "second":
                break
    assert len(other.sent.prompts) == 1
    for ended in (deaf, stream):
        with pytest.raises(ThoughtCancelled):
            await ended.result


async def test_the_budget_is_that_of_all_agents() -> None:
    used = {"sessionUpdate": "usage_update", "used": 60, "size": 1000}
    other = second(script.updates(used).hangs())
    budget = Budget(max_tokens=100)
    first = played(script.updates(used).fails(-32603, "quota"))
    async with opening(first, fallback=[opening(other, "second")]) as agent:
        with pytest.raises(BudgetExceeded):
            await agent.think().text("Go").run(budget=budget)
    assert budget.spent.tokens == 120


async def test_a_recording_of_the_first_agent_has_the_whole_run(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    other = opening(second(script.returns(42)), "second")
    async with opening(played(script.says("Hm. ") + BUSY), fallback=[other], record=file) as agent:
        stream = agent.think(int).text("Go").stream(include="all")
        assert await stream.result == 42
        await stream.wait()
    again = replay(file, int, speed=0)
    assert await again.result == 42
    assert [event.type async for event in again] == [event.type async for event in stream]
    assert [event.next_agent async for event in again if isinstance(event, ev.TryFailed)] == ["second"]


async def test_a_recording_has_the_error_of_all_agents(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    async with opening(played(BUSY), fallback=[opening(played(EMPTY), "second")], record=file) as agent:
        with pytest.raises(QuotaExhausted):
            await agent.think().text("Go").run()
    with pytest.raises(QuotaExhausted):
        await replay(file, speed=0).result


async def test_statistics_count_a_run_once_with_a_fallback_too() -> None:
    other = opening(played(script.asks("Look?", kind="read").says("42")), "second", permissions="ask")
    async with opening(played(BUSY + script.hangs()), fallback=[other]) as agent:
        stream = agent.think().text("Go").stream(include={"question"})
        async for event in stream:
            if isinstance(event, ev.QuestionAsked):
                break
        async with agent.session() as session:
            waiting = session.think().text("Wait").stream()
            told = agent.statistics()
            assert [run.id for run in told.runs] == [stream.id, waiting.id]
            assert (told.runs[0].buffered_events, told.runs[0].open_questions) == (1, 1)
            assert told.open_questions == 1
            waiting.cancel()
        stream.answer(stream.view.questions[0].id, "allow")
        assert await stream.result == "42"
        await stream.wait()
        assert agent.statistics() == AgentStatistics(runs=(), buffered_events=0, open_questions=0)


# What cannot be


@pytest.mark.parametrize(
    ("agents", "kind", "words"),
    [
        ([], ValueError, "no agent is named"),
        (["builtin"], ValueError, "builtin is the agent itself; to let it try again give run\\(retry=Retry"),
        (["codex", "codex"], ValueError, "an agent is named twice"),
        (["codx"], AgentNotFound, "codx"),
        ([7], TypeError, "7 is no agent; give a name, a profile, or an open_agent"),
        ("codex", TypeError, "give a list of agents"),
    ],
)
async def test_a_wrong_fallback_is_refused(agents: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        open_agent("builtin", fallback=agents)
    if agents != "codex":
        async with open_agent("builtin", transport=second().connect()) as agent:
            with pytest.raises(kind, match=words):
                agent.think().fallback(*agents)


async def test_scripted_agents_can_take_over_from_each_other() -> None:
    first = ScriptedAgent(script.uses("Edit", kind="edit").fails(-32000, "log in"))
    other = ScriptedAgent(ANSWER)
    async with first.open(fallback=[other.open()], fallback_after_effects=True) as agent:
        assert await agent.think().text("Go").run() == "42"
    other.check()


async def test_a_profile_can_take_over() -> None:
    profile = known("other")
    async with opening(played(EMPTY)) as agent:
        with pytest.raises(AgentNotFound):
            await agent.think().text("Go").fallback(profile).run()
        with pytest.raises(ValueError, match="first is the agent itself"):
            agent.think().fallback(known("first"))


async def test_a_session_and_a_listener_stay_with_their_agent() -> None:
    other = second()
    first = played(EMPTY, repeats=True)
    async with opening(first, fallback=[opening(other, "second")]) as agent:
        async with agent.session() as session:
            with pytest.raises(ValueError, match="a session belongs to one agent"):
                session.think().fallback("codex")
            with pytest.raises(QuotaExhausted):
                await session.think().text("Go").run()
        with pytest.raises(QuotaExhausted):
            await agent.think().text("Go").listen(Handlers())
        with pytest.raises(ValueError, match="handlers hear one agent"):
            await agent.think().text("Go").fallback(opening(other, "second")).listen(Handlers())
    assert not other.sent.messages
