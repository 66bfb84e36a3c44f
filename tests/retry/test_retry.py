"""A task is tried again after some errors, as long as the agent has changed nothing."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Stopwatch
from retry.failing import BUSY, EMPTY, EXPIRED, FULL, NOW, opening, played

from thinkwell import (
    AgentClosed,
    AgentExited,
    AgentReported,
    Budget,
    BudgetExceeded,
    Buffer,
    BufferOverflow,
    ContextFull,
    Injected,
    LoginExpired,
    Overloaded,
    QuotaExhausted,
    Refused,
    Retry,
    SessionClosed,
    ThoughtCancelled,
    ThoughtStream,
    ThoughtTimeout,
    Workspace,
    replay,
    tool,
)
from thinkwell import events as ev
from thinkwell.listen import Handlers, listen
from thinkwell.testing import script

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.testing import Script

pytestmark = pytest.mark.virtual_time

ANSWER = script.says("42")
FAILED: Any = {"try_failed"}
WORST = 1.0
"""What a random number is at most."""


def look() -> str:
    """Look at something."""
    return "seen"


async def test_a_task_is_tried_again_until_it_succeeds() -> None:
    agent = played(script.says("Let me see. ").fails(-32603, "overloaded") + BUSY + ANSWER)
    async with opening(agent) as opened:
        stream = opened.think().text("Go").stream(include="all", retry=NOW)
        assert await stream.result == "42"
        await stream.wait()
        events = [event async for event in stream]
    view = stream.view
    assert (view.phase, view.text, view.error) == ("completed", "Let me see. 42", None)
    tries = [event for event in events if isinstance(event, ev.TryFailed)]
    assert [(each.agent, each.error, each.next_agent, each.then) for each in tries] == [
        ("first", "Overloaded", "first", "retry")
    ] * 2
    assert "overloaded" in tries[0].reason
    assert [notice.title for notice in view.notices] == ["first: Overloaded; it tries again in 0.0 s"] * 2
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    times = [event.at for event in events if not isinstance(event, ev.PhaseChanged)]
    assert times == sorted(times)
    phases = [event.phase for event in events if isinstance(event, ev.PhaseChanged) and event.at >= 0]
    assert (phases.count("starting"), phases.count("completed"), phases.count("failed")) == (3, 1, 0)
    assert len({prompt.session_id for prompt in agent.sent.prompts}) == 3


@pytest.mark.parametrize(
    ("failed", "after", "waits"),
    [
        (BUSY, Retry(attempts=4, random=lambda: WORST), 1 + 2 + 4),
        (BUSY, Retry(attempts=4, base_delay=3, max_delay=5, random=lambda: WORST), 3 + 5 + 5),
        (BUSY, Retry(attempts=4, random=lambda: 0.5), 3.5),
        (script.fails(-32603, "overloaded for 7.5"), Retry(attempts=4, random=lambda: WORST), 22.5 + 7),
        (script.fails(-32603, "overloaded for -5"), Retry(attempts=4, random=lambda: 0.0), 0),
    ],
)
async def test_it_waits_longer_each_time_and_as_long_as_the_agent_says(
    failed: Script, after: Retry, waits: float
) -> None:
    watch = Stopwatch()
    async with opening(played(failed + failed + failed + ANSWER)) as agent:
        assert await agent.think().text("Go").run(retry=after) == "42"
    assert watch.seconds == pytest.approx(waits, abs=0.1)


@pytest.mark.parametrize(
    ("failed", "kind"),
    [
        (script.fails(-32603, "overloaded for 61"), Overloaded),
        (EMPTY, QuotaExhausted),
        (script.fails(-32603, "quota until 99999999999"), QuotaExhausted),
        (EXPIRED, LoginExpired),
        (FULL, ContextFull),
        (script.fails(-32603, "no"), AgentReported),
    ],
)
async def test_it_is_not_tried_again_where_that_does_not_help(failed: Script, kind: type[Exception]) -> None:
    agent = played(failed + ANSWER)
    async with opening(agent) as opened:
        with pytest.raises(kind) as caught:
            await opened.think().text("Go").run(retry=NOW)
    assert type(caught.value) is kind
    assert len(agent.sent.prompts) == 1


async def test_a_quota_that_is_soon_renewed_is_waited_for() -> None:
    soon = script.fails(-32603, f"quota until {int(time.time()) + 20}")
    watch = Stopwatch()
    async with opening(played(soon + ANSWER)) as agent:
        assert await agent.think().text("Go").run(retry=NOW) == "42"
    assert 15 < watch.seconds < 21


async def test_other_errors_can_be_chosen() -> None:
    async with opening(played(FULL + ANSWER)) as agent:
        assert await agent.think().text("Go").run(retry=Retry(on=(ContextFull,), random=float)) == "42"


async def test_the_last_error_knows_those_before() -> None:
    async with opening(played(BUSY + BUSY + FULL)) as agent:
        stream = agent.think().text("Go").stream(retry=NOW)
        with pytest.raises(ContextFull) as caught:
            await stream.result
        await stream.wait()
    assert [each.error for each in caught.value.tries] == ["Overloaded", "Overloaded"]
    assert (
        caught.value.__notes__.count(
            f"Before that, agent first failed: Overloaded: {caught.value.tries[0].reason}"
        )
        == 2
    )
    assert stream.view.phase == "failed"


async def test_a_long_error_is_cut_in_the_events() -> None:
    async with opening(played(script.fails(-32603, "overloaded " * 1000) + FULL)) as agent:
        with pytest.raises(ContextFull) as caught:
            await agent.think().text("Go").run(retry=NOW)
    assert len(caught.value.tries[0].reason) == 500


async def test_it_gives_up_after_the_last_attempt() -> None:
    agent = played(BUSY, repeats=True)
    async with opening(agent) as opened:
        with pytest.raises(Overloaded) as caught:
            await opened.think().text("Go").run(retry=NOW)
    assert len(agent.sent.prompts) == 3
    assert len(caught.value.tries) == 2


# What the agent may have changed

CHANGES: dict[str, Callable[[], Script]] = {
    "edit": lambda: script.uses("Edit", kind="edit"),
    "execute": lambda: script.uses("Run", kind="execute"),
    "unknown": lambda: script.updates(
        {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "?", "kind": "dance"}
    ),
    "without a kind": lambda: script.updates(
        {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}
    ),
    "changed": lambda: script.updates(
        {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "?", "kind": "read"}
    ).updates({"sessionUpdate": "tool_call_update", "toolCallId": "1", "kind": "delete"}),
    "asked": lambda: script.asks("Run it?", kind="execute"),
    "own": lambda: script.calls("look"),
    "file": lambda: script.writes(str(Path("a.txt").resolve()), "new"),
    "command": lambda: script.runs(sys.executable, "-c", ""),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_it_is_not_tried_again_when_something_may_have_changed(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = played(CHANGES[change]().fails(-32603, "overloaded") + ANSWER)
    options: dict[str, Any] = {
        "workspace": Workspace(tmp_path, write=True, terminal=True),
        "permissions": "allow",
        "cwd": tmp_path,
    }
    async with opening(agent, **options) as opened:
        with pytest.raises(Overloaded) as caught:
            await opened.think().tool(look).text("Go").run(retry=NOW)
    assert caught.value.tries == ()
    assert len(agent.sent.prompts) == 1


HARMLESS: dict[str, Callable[[], Script]] = {
    "read": lambda: script.uses("Look", kind="read"),
    "search": lambda: script.uses("Look", kind="search"),
    "think": lambda: script.uses("Look", kind="think"),
    "fetch": lambda: script.uses("Look", kind="fetch"),
    "own": lambda: script.calls("look"),
    "result": lambda: script.returns("no number", expect_error=True),
    "file": lambda: script.reads(str(Path("a.txt").resolve())),
}


@pytest.mark.parametrize("look_at", HARMLESS)
async def test_what_only_looks_is_tried_again(
    look_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("old")
    agent = played(HARMLESS[look_at]().fails(-32603, "overloaded") + script.returns(42))
    options: dict[str, Any] = {
        "workspace": Workspace(tmp_path, write=True, terminal=True),
        "permissions": "allow",
        "cwd": tmp_path,
    }
    async with opening(agent, **options) as opened:
        builder = opened.think(int).tool(tool(look, readonly=True)).text("Go")
        assert await builder.run(retry=NOW) == 42


async def test_a_tool_of_the_builder_can_be_read_only() -> None:
    async with opening(played(script.calls("look").fails(-32603, "overloaded") + ANSWER)) as agent:
        assert await agent.think().tool(look, readonly=True).text("Go").run(retry=NOW) == "42"


async def test_an_id_that_is_used_again_for_an_own_tool_hides_no_change() -> None:
    start = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Run", "kind": "execute"}
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}
    own = {**start, "title": "return_result", "kind": "other"}
    told = script.updates(start).updates(done).updates(own).fails(-32603, "overloaded")
    async with opening(played(told + ANSWER)) as agent:
        with pytest.raises(Overloaded):
            await agent.think(int).text("Go").run(retry=NOW)


# Budgets, ends and cancellations


async def test_what_earlier_tries_have_used_counts() -> None:
    used = {"sessionUpdate": "usage_update", "used": 60, "size": 1000}
    agent = played(script.updates(used).fails(-32603, "overloaded"), repeats=True)
    budget = Budget(max_tokens=100)
    async with opening(agent) as opened:
        with pytest.raises(BudgetExceeded) as caught:
            await opened.think().text("Go").run(retry=Retry(attempts=9, random=float), budget=budget)
    assert budget.spent.tokens == 120
    assert len(agent.sent.prompts) == 2
    assert [each.error for each in caught.value.tries] == ["Overloaded"]


async def test_another_run_that_uses_the_budget_up_ends_the_wait() -> None:
    used = {"sessionUpdate": "usage_update", "used": 200, "size": 1000}
    budget = Budget(max_tokens=100)
    other = played(script.updates(used).hangs())
    watch = Stopwatch()
    async with opening(played(BUSY)) as agent, other.open() as another:
        waits = Retry(base_delay=50, random=lambda: WORST)
        stream = agent.think().text("Go").stream(include=FAILED, budget=budget, retry=waits)
        await until_failed(stream)
        with pytest.raises(BudgetExceeded):
            await another.think().text("Go").run(budget=budget)
        with pytest.raises(BudgetExceeded):
            await stream.result
        await stream.wait()
        assert watch.seconds < 20


async def until_failed(stream: ThoughtStream[Any]) -> None:
    """Wait for the first try that fails."""
    async for event in stream:
        if isinstance(event, ev.TryFailed):
            return


async def test_the_timeout_is_that_of_all_tries_and_waits() -> None:
    watch = Stopwatch()
    async with opening(played(BUSY, repeats=True)) as agent:
        with pytest.raises(ThoughtTimeout) as caught:
            await agent.think().text("Go").run(timeout=5, retry=Retry(attempts=9, random=lambda: WORST))
    assert watch.seconds == 5
    assert (caught.value.seconds, len(caught.value.tries)) == (5, 3)


async def test_a_try_that_hangs_is_cancelled_by_the_timeout() -> None:
    agent = played(BUSY + script.says("Hm").hangs())
    async with opening(agent) as opened:
        stream = opened.think().text("Go").stream(timeout=5, retry=NOW)
        with pytest.raises(ThoughtTimeout):
            await stream.result
        await stream.wait()
    assert (stream.view.phase, stream.view.text, len(agent.sent.cancelled)) == ("failed", "Hm", 1)


@pytest.mark.parametrize("how", ["cancel", "kill", "block", "call"])
async def test_it_can_be_cancelled_while_it_waits(how: str) -> None:
    watch = Stopwatch()
    waiting = Retry(base_delay=50, random=lambda: WORST)
    agent = played(BUSY + ANSWER)
    async with opening(agent) as opened:
        if how == "call":
            with anyio.move_on_after(10) as scope:
                await opened.think().text("Go").run(retry=waiting)
            assert scope.cancelled_caught
        else:
            stream = opened.think().text("Go").stream(include=FAILED, retry=waiting)
            await until_failed(stream)
            assert await stream.steer("Also this") == Refused("no agent works on it: it will be tried again")
            if how == "block":
                async with stream:
                    pass
            else:
                getattr(stream, how)()
                getattr(stream, how)()
            with pytest.raises(ThoughtCancelled):
                await stream.result
            await stream.wait()
            await stream.wait()
            assert stream.view.phase == "cancelled"
            stream.cancel()
    assert watch.seconds < 11
    assert len(agent.sent.prompts) == 1


@pytest.mark.parametrize(("end", "kind"), [("cancel", ThoughtCancelled), ("kill", AgentExited)])
async def test_a_try_that_runs_is_cancelled_and_killed_like_any_run(end: str, kind: type[Exception]) -> None:
    async with opening(played(BUSY + script.says("Hm").hangs())) as agent:
        stream = agent.think().text("Go").stream(retry=NOW)
        async for _ in stream:
            break
        getattr(stream, end)()
        with pytest.raises(kind):
            await stream.result
        await stream.wait()
    assert stream.view.phase == ("cancelled" if end == "cancel" else "failed")


async def test_leaving_the_agent_ends_the_wait() -> None:
    watch = Stopwatch()
    async with opening(played(BUSY)) as agent:
        stream = agent.think().text("Go").stream(include=FAILED, retry=Retry(random=lambda: WORST))
        await until_failed(stream)
    with pytest.raises(AgentClosed):
        await stream.result
    assert watch.seconds < 1
    with pytest.raises(AgentClosed):
        agent.think().text("Go").stream(retry=NOW)


async def test_an_answer_that_comes_first_settles_at_once_and_stays() -> None:
    ends = script.returns(42).does(wait).fails(-32603, "overloaded")
    async with opening(played(BUSY + ends)) as agent:
        stream = agent.think(int).text("Go").stream(retry=NOW)
        assert await stream.result == 42
        assert stream.view.phase == "prompted"
        await stream.wait()
    assert (stream.view.phase, stream.view.cut) == ("completed", "Overloaded")


async def wait(_turn: object) -> None:
    await anyio.sleep(5)


async def test_a_full_buffer_fails_it() -> None:
    agent = played(script.says("a").says("b").says("c").hangs())
    async with opening(agent) as opened:
        stream = opened.think().text("Go").stream(retry=NOW, buffer=Buffer(max_events=2, overflow="error"))
        with pytest.raises(BufferOverflow):
            await stream.result
        await stream.wait()


async def test_what_was_said_while_it_worked_is_said_again() -> None:
    agent = played(script.says("Hm").hears("Also").fails(-32603, "overloaded") + ANSWER, steering=True)
    async with opening(agent) as opened:
        stream = opened.think().text("Go").stream(retry=NOW)
        assert await stream.steer("Also this") == Injected()
        assert await stream.result == "42"
    assert agent.sent.prompts[1].text == "Go\nAlso this"


async def test_a_turn_of_a_session_is_prompted_again_in_it() -> None:
    agent = played(BUSY + ANSWER)
    async with opening(agent) as opened, opened.session() as session:
        stream = session.think().text("Go").stream(retry=NOW)
        assert await stream.result == "42"
        assert stream.session_id == session.id
        assert (stream.late, stream.recording) == ((), None)
    assert len({prompt.session_id for prompt in agent.sent.prompts}) == 1


async def test_leaving_the_session_ends_the_wait() -> None:
    watch = Stopwatch()
    async with opening(played(BUSY)) as agent:
        async with agent.session() as session:
            stream = session.think().text("Go").stream(include=FAILED, retry=Retry(random=lambda: WORST))
            await until_failed(stream)
        with pytest.raises(SessionClosed):
            await stream.result
        with pytest.raises(SessionClosed):
            session.think().text("Go").stream(retry=NOW)
    assert watch.seconds < 1


async def test_a_listener_that_joins_hears_the_last_try() -> None:
    heard = list[str]()
    handlers = Handlers()

    @handlers.on("partial")
    def _note(message: dict[str, str]) -> None:
        heard.append(message["text"])

    async with opening(played(BUSY + script.says("Hm").does(wait).fails(-32603, "overloaded"))) as agent:
        stream = agent.think().text("Go").stream(retry=NOW)
        async for _ in stream:
            break
        with pytest.raises(Overloaded):
            await listen(stream, handlers)
    assert heard == ["Hm"]


async def test_a_question_is_answered_by_the_stream() -> None:
    agent = played(BUSY + script.asks("Look?", kind="read").says("42"))
    async with opening(agent, permissions="ask") as opened:
        stream = opened.think().text("Go").stream(include="all", retry=NOW)
        async for event in stream:
            if isinstance(event, ev.QuestionAsked):
                stream.answer(event.id, "allow")
        assert await stream.result == "42"


async def test_it_can_be_recorded(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    async with opening(played(BUSY + ANSWER), record=file) as agent:
        stream = agent.think().text("Go").stream(include="all", retry=NOW)
        assert await stream.result == "42"
        await stream.wait()
        session = stream.session_id
    again = replay(file, speed=0)
    assert await again.result == "42"
    assert [event.type async for event in again] == [event.type async for event in stream]
    assert again.view.notices == stream.view.notices
    assert (again.id, again.session_id) == (stream.id, session)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"attempts": -1}, ValueError, "attempts=…\\)=-1 must not be negative"),
        ({"attempts": 0}, ValueError, "the first attempt counts; give 1 or more"),
        ({"attempts": 1.5}, TypeError, "must be a whole number"),
        ({"base_delay": -1}, ValueError, "must be positive"),
        ({"max_delay": "1"}, TypeError, "must be a number of seconds"),
        ({"on": Overloaded}, TypeError, "give a tuple of classes of thinkwell.errors"),
        ({"on": (KeyError,)}, TypeError, "give a tuple of classes of thinkwell.errors"),
    ],
)
def test_a_wrong_retry_is_refused(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Retry(**options)


async def test_what_is_no_retry_is_refused_before_anything_is_sent() -> None:
    agent = played(ANSWER)
    wrong: Any = 3
    async with opening(agent) as opened:
        with pytest.raises(TypeError, match="retry=3 must be a Retry"):
            opened.think().text("Go").stream(retry=wrong)
    assert not agent.sent.prompts
