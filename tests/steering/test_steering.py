"""Telling an agent something while it works."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio
import pytest
from stream.wire_agent import Json, WireAgent, answer, end_turn, refuse, say, update, wire_agent

from thinkwell import (
    AgentExited,
    Injected,
    Queued,
    Refused,
    RunEnded,
    SteeringUnsupported,
    ThoughtCancelled,
    ThoughtStream,
)
from thinkwell import events as ev
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

STEERS = {"steering": {"supported": True}}
OPT_IN = {"steering": {"idleBehavior": "promptRequired"}}


class Told(NamedTuple):
    """A run whose agent was told something, and has not answered yet."""

    stream: ThoughtStream[str]
    wire: WireAgent
    prompt: Json
    request: Json
    over: anyio.Event
    """Set when the call of `steer` has returned."""


@asynccontextmanager
async def told(
    outcome: object, *, before: str = "", otherwise: Literal["queue"] | None = None, **options: Any
) -> AsyncGenerator[Told]:
    """Tell the agent of a run something, and check what comes of it.

    Args:
        outcome: What `steer` returns; a class: the error that it raises.
        before: What the agent says before.
        otherwise: See `ThoughtStream.steer`.
        options: Those of the run.
    """
    async with wire_agent(meta=STEERS) as (agent, wire), anyio.create_task_group() as tasks:
        stream = agent.think().text("Review").stream(include="all", **options)
        prompt = await wire.begin()
        over = anyio.Event()

        async def steer() -> None:
            if isinstance(outcome, type):
                with pytest.raises(outcome):
                    await stream.steer("Also check auth", otherwise=otherwise)
            else:
                assert await stream.steer("Also check auth", otherwise=otherwise) == outcome
            over.set()

        if before:
            await wire.write(say(before))
        tasks.start_soon(steer)
        yield Told(stream, wire, prompt, await wire.expect("_session/steering"), over)


async def steered(stream: ThoughtStream[object]) -> list[tuple[str, str, str]]:
    return [(e.text, e.outcome, e.reason) async for e in stream.events() if isinstance(e, ev.Steered)]


def roles(stream: ThoughtStream[object]) -> list[str]:
    return [item.kind for item in stream.view.timeline]


async def test_an_agent_that_can_be_steered_reads_it_in_its_turn() -> None:
    agent = ScriptedAgent(script.says("Looking. ").hears("auth").says("And auth."), steering=True)
    async with agent.open() as opened:
        stream = opened.think().text("Review").stream(include="all")
        assert await stream.steer("Also check auth") == Injected()
        assert "And auth." in await stream.result
    assert await steered(stream) == [("Also check auth", "injected", "")]
    assert stream.view.user_messages == ("Also check auth",)
    assert roles(stream) == ["turn", "message", "user", "message"]
    assert stream.view.turns == 1


async def test_the_request_opts_in_to_be_refused_by_an_idle_agent() -> None:
    async with told(Injected(), background_wait=0) as (stream, wire, prompt, request, _):
        assert request["params"] == {
            "sessionId": "s",
            "prompt": [{"type": "text", "text": "Also check auth"}],
            "_meta": OPT_IN,
        }
        await wire.write(answer(request, {"outcome": "injected"}), say("Both."), end_turn(prompt))
        assert await stream.result == "Both."


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"outcome": "promptRequired", "reason": "noRunningTurn"}, "noRunningTurn"),
        ({"outcome": "failed"}, "failed"),
        ({"outcome": "unheard of"}, "unheard of"),
    ],
)
async def test_what_the_agent_does_not_take_is_refused_in_its_words(
    reply: dict[str, object], reason: str
) -> None:
    async with told(Refused(reason)) as (stream, wire, prompt, request, over):
        await wire.write(answer(request, reply))
        await over.wait()
        await wire.write(say("Done."), end_turn(prompt))
        assert await stream.result == "Done."
        assert await steered(stream) == [("Also check auth", "refused", reason)]
        assert stream.view.user_messages == ()


async def test_an_error_of_the_agent_refuses_it_and_the_run_goes_on() -> None:
    async with told(Refused("no such idleBehavior [-32602]")) as (stream, wire, prompt, request, over):
        await wire.write(refuse(request, "no such idleBehavior", -32602))
        await over.wait()
        await wire.write(say("Done."), end_turn(prompt))
        assert await stream.result == "Done."


async def test_an_agent_that_cannot_be_steered__nothing_is_sent() -> None:
    agent = ScriptedAgent(script.says("Looking.").hangs())
    async with agent.open() as opened:
        stream = opened.think().text("Review").stream()
        with pytest.raises(SteeringUnsupported, match=r'otherwise="queue"') as raised:
            await stream.steer("Also check auth")
        assert raised.value.agent == "scripted"
        await anext(aiter(stream))
        stream.cancel()
        await stream.wait()


async def test_queued__another_run_of_the_task_follows_in_the_session() -> None:
    agent = ScriptedAgent(
        script.expects("Review").says("Looking.").returns(1).stops() + script.expects("Also").returns(2)
    )
    async with agent.open() as opened:
        stream = opened.think(int).text("Review").stream(include="all")
        queued = await stream.steer("Also check auth", otherwise="queue")
        assert isinstance(queued, Queued)
        assert await stream.result == 1
        assert await queued.stream.result == 2
        await queued.stream.wait()
        assert queued.stream.session_id == stream.session_id
    assert await steered(stream) == [("Also check auth", "queued", "")]


async def test_queued_twice__in_order_and_the_last_closes_the_session() -> None:
    agent = ScriptedAgent(
        script.says("one").stops()
        + script.expects("B").says("two").stops()
        + script.expects("C").says("three")
    )
    async with agent.open() as opened:
        stream = opened.think().text("A").stream()
        second = await stream.steer("B", otherwise="queue")
        assert isinstance(second, Queued)
        third = await second.stream.steer("C", otherwise="queue")
        assert isinstance(third, Queued)
        assert [await s.result for s in (stream, second.stream, third.stream)] == ["one", "two", "three"]
        await third.stream.wait()
    assert agent.sent.methods.count("session/close") == 1


async def test_interrupted__the_turn_ends_and_the_run_goes_on_with_it() -> None:
    agent = ScriptedAgent(
        script.says("Looking.").hangs().stops("cancelled") + script.expects("auth only").says("Auth is fine.")
    )
    async with agent.open() as opened:
        stream = opened.think().text("Review").stream(include="all")
        async for event in stream:
            if isinstance(event, ev.Message):
                break
        assert await stream.steer("auth only", otherwise="interrupt") == Injected(interrupted=True)
        assert await stream.result == "Auth is fine."
    assert await steered(stream) == [("auth only", "interrupted", "")]
    ends = [event.stop_reason async for event in stream if isinstance(event, ev.TurnEnded)]
    assert ends == ["cancelled", "end_turn"]
    begun = [event.reminder async for event in stream if isinstance(event, ev.TurnStarted)]
    assert begun == [False, False]


async def test_interrupted__the_turn_may_end_well_all_the_same() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Review").stream()
        first = await wire.begin()
        assert await stream.steer("auth only", otherwise="interrupt") == Injected(interrupted=True)
        await wire.expect("session/cancel")
        await wire.write(say("All of it."), end_turn(first))
        second = await wire.expect("session/prompt")
        assert second["params"]["prompt"] == [{"type": "text", "text": "auth only"}]
        await wire.write(say("Auth is fine."), end_turn(second))
        assert await stream.result == "Auth is fine."


@pytest.mark.parametrize(
    ("meta", "otherwise", "outcome"),
    [
        (STEERS, None, Injected()),
        (STEERS, "interrupt", Injected()),
        (None, "interrupt", Injected(interrupted=True)),
    ],
    ids=("steered", "rather than interrupted", "interrupted"),
)
async def test_while_a_command_goes_on_in_the_background__the_next_turn_begins_at_once(
    meta: Json | None, otherwise: Literal["interrupt"] | None, outcome: Injected
) -> None:
    moved: Json = {"rawOutput": "Command was moved to the background (ID: b1)", "_meta": {"claudeCode": {}}}
    async with wire_agent(meta=meta) as (agent, wire):
        stream = agent.think().text("Build").stream(include="all", background_wait=3600)
        first = await wire.begin()
        call = update("tool_call", toolCallId="t", title="make", status="completed", **moved)
        await wire.write(call, say("It builds."), end_turn(first))
        async for event in stream:
            if isinstance(event, ev.TurnEnded):
                break
        assert await stream.steer("auth only", otherwise=otherwise) == outcome
        second = await wire.expect("session/prompt")
        assert second["params"]["prompt"] == [{"type": "text", "text": "auth only"}]
        assert stream.view.user_messages == ("auth only",)
        stream.cancel()


@pytest.mark.virtual_time
async def test_while_an_agent_may_have_more_to_say__the_next_turn_begins_at_once() -> None:
    async with told(Injected()) as (stream, wire, prompt, request, over):
        await wire.write(answer(request, {"outcome": "injected"}))
        await over.wait()
        await wire.write(end_turn(prompt))
        async for event in stream:
            if isinstance(event, ev.TurnEnded):
                break
        assert await stream.steer("And quickly") == Injected()
        second = await wire.expect("session/prompt")
        assert second["params"]["prompt"] == [{"type": "text", "text": "And quickly"}]
        assert stream.elapsed < 1
        stream.cancel()


async def test_interrupted_twice__one_turn_says_both() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Review").stream()
        first = await wire.begin()
        for text in ("auth only", "and quickly"):
            assert await stream.steer(text, otherwise="interrupt") == Injected(interrupted=True)
        await wire.expect("session/cancel")
        await wire.write(end_turn(first, "cancelled"))
        second = await wire.expect("session/prompt")
        assert [block["text"] for block in second["params"]["prompt"]] == ["auth only", "and quickly"]
        await wire.write(end_turn(second))
        await stream.wait()


async def test_a_run_that_is_over_cannot_be_steered() -> None:
    agent = ScriptedAgent(script.says("Done."), steering=True)
    async with agent.open() as opened:
        stream = opened.think().text("Review").stream()
        await stream.wait()
        with pytest.raises(RunEnded, match=stream.id):
            await stream.steer("Also check auth")


async def test_a_cancelled_run_cannot_be_steered() -> None:
    agent = ScriptedAgent(script.says("Looking.").hangs(), steering=True)
    async with agent.open() as opened:
        stream = opened.think().text("Review").stream()
        await anext(aiter(stream))
        stream.cancel()
        with pytest.raises(RunEnded):
            await stream.steer("Also check auth")
        await stream.wait()


@pytest.mark.parametrize("text", ["", " \n"])
async def test_nothing_to_tell(text: str) -> None:
    agent = ScriptedAgent(script.says("Done."))
    async with agent.open() as opened:
        stream = opened.think().text("Review").stream()
        with pytest.raises(ValueError, match="the text is empty"):
            await stream.steer(text)
        await stream.wait()


async def test_an_unknown_way_is_refused_and_interrupts_nothing() -> None:
    agent = ScriptedAgent(script.says("Done."))
    async with agent.open() as opened:
        stream = opened.think().text("Review").stream()
        with pytest.raises(ValueError, match='choose "queue" or "interrupt"'):
            await stream.steer("Also check auth", otherwise="interupt")  # type: ignore[arg-type]
        assert await stream.result == "Done."


async def test_the_agent_dies_meanwhile() -> None:
    async with told(AgentExited) as (stream, wire, _, _, _):
        await wire.hang_up()
        with pytest.raises(AgentExited):
            await stream.result


async def test_the_turn_is_answered_first__the_run_waits_for_what_becomes_of_it() -> None:
    async with told(Refused("failed")) as (stream, wire, prompt, request, over):
        await wire.write(say("Done."), end_turn(prompt), answer(request, {"outcome": "failed"}))
        assert await stream.result == "Done."
        assert over.is_set()


@pytest.mark.parametrize(("otherwise", "reason"), [(None, "noRunningTurn"), ("queue", "the run has ended")])
async def test_the_run_ends_before_the_agent_refuses(otherwise: Literal["queue"] | None, reason: str) -> None:
    async with told(Refused(reason), otherwise=otherwise, background_wait=0) as (
        stream,
        wire,
        prompt,
        request,
        _,
    ):
        idle = {"outcome": "promptRequired", "reason": "noRunningTurn"}
        await wire.write(say("Done."), end_turn(prompt), answer(request, idle))
        assert await stream.result == "Done."
        assert await steered(stream) == []


@pytest.mark.virtual_time
async def test_an_agent_without_marks_is_done_when_it_is_quiet() -> None:
    async with told(Injected()) as (stream, wire, prompt, request, _):
        await wire.write(
            answer(request, {"outcome": "injected"}), say("One. ", messageId="1"), end_turn(prompt)
        )
        for number in range(3):
            await anyio.sleep(1.5)
            await wire.write(say(f"{number}", messageId="2"))
        began = anyio.current_time()
        assert await stream.result == "012"
        assert anyio.current_time() - began == pytest.approx(2, abs=0.1)


@pytest.mark.virtual_time
async def test_what_an_agent_without_marks_takes_and_does_not_answer_is_its_next_prompt() -> None:
    async with wire_agent(meta=STEERS) as (agent, wire), anyio.create_task_group() as tasks:
        stream = agent.think().text("Review").stream()
        prompt = await wire.begin()
        for text, said in (("First", say("I see. ", messageId="1")), ("Second", None), ("Third", None)):
            tasks.start_soon(stream.steer, text)
            request = await wire.expect("_session/steering")
            await wire.write(answer(request, {"outcome": "injected"}), *([said] if said else []))
        await wire.write(end_turn(prompt))
        prompt = await wire.expect("session/prompt")
        assert [block["text"] for block in prompt["params"]["prompt"]] == ["Second", "Third"]
        await wire.write(say("Both are fine.", messageId="2"), end_turn(prompt))
        assert await stream.result == "Both are fine."
        assert "session/prompt" not in wire.unread


@pytest.mark.virtual_time
async def test_it_waits_no_longer_than_it_is_told() -> None:
    async with told(Injected(), background_wait=5) as (stream, wire, prompt, request, _):
        await wire.write(answer(request, {"outcome": "injected"}), say("Yes"), end_turn(prompt))
        with anyio.move_on_after(8):
            while True:
                await anyio.sleep(1)
                await wire.write(update("usage_update", used=1, size=2))
        assert stream.elapsed < 6
        assert await stream.result == "Yes"


async def test_cancelled_while_it_stays_open() -> None:
    async with told(Injected()) as (stream, wire, prompt, request, _):
        await wire.write(answer(request, {"outcome": "injected"}), end_turn(prompt))
        async for event in stream:
            if isinstance(event, ev.TurnEnded):
                break
        stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result
        await stream.wait()
        assert "session/cancel" not in wire.unread


async def test_the_history_of_the_session_has_it_in_its_place() -> None:
    agent = ScriptedAgent(script.says("Looking. ").hears().says("And auth."), steering=True)
    async with agent.open() as opened, opened.session() as session:
        stream = session.think().text("Review").stream()
        assert await stream.steer("Also check auth") == Injected()
        await stream.wait()
        said = [(message.role, message.text) for message in session.history()]
    assert said == [
        ("user", "Review"),
        ("assistant", "Looking. "),
        ("user", "Also check auth"),
        ("assistant", "And auth."),
    ]


@pytest.mark.virtual_time
async def test_an_agent_that_never_says_whether_it_takes_it() -> None:
    unclear = Refused("the agent has not answered", unclear=True)
    async with told(unclear) as (stream, wire, prompt, _, over):
        await wire.write(say("Done."), end_turn(prompt))
        assert await stream.result == "Done."
        assert not over.is_set()


async def test_what_is_refused_in_mid_sentence_does_not_cut_the_result() -> None:
    async with told(Refused("failed"), before="All is ") as (stream, wire, prompt, request, over):
        await wire.write(answer(request, {"outcome": "failed"}))
        await over.wait()
        await wire.write(say("well."), end_turn(prompt))
        assert await stream.result == "All is well."
        assert stream.view.messages == ("All is well.",)


@pytest.mark.virtual_time
async def test_what_comes_of_the_background_beside_another_turn_is_part_of_that() -> None:
    """Nothing tells them apart, as lifetimes.md says: the other run has it, whole, and ends as ever."""
    moved: Json = {"rawOutput": "Command was moved to the background (ID: b1)", "_meta": {"claudeCode": {}}}
    async with wire_agent(meta=STEERS) as (agent, wire), anyio.create_task_group() as tasks:
        tasks.start_soon(wire.open_sessions, ["s"])
        session = await agent.session().start()
        first = session.think().text("Build").stream(include="all", background_wait=5)
        prompt = await wire.expect("session/prompt")
        call = update("tool_call", toolCallId="t", title="make", status="completed", **moved)
        mark = update("usage_update", used=1, size=2, _meta={"_claude/origin": {"kind": "human"}})
        await wire.write(call, say("It builds.", messageId="1"), mark, end_turn(prompt))
        await first.wait()
        assert first.view.background == ("make",)
        second = session.think().text("Review").stream(include="all")
        prompt = await wire.expect("session/prompt")
        cycle = update(
            "usage_update", used=1, size=2, _meta={"_claude/origin": {"kind": "task-notification"}}
        )
        await wire.write(say("It has built.", messageId="2"), cycle)
        await wire.write(say("Fine.", messageId="3"), end_turn(prompt))
        assert await second.result == "Fine."
        assert second.view.messages == ("It has built.", "Fine.")
        assert [e.origin async for e in second if isinstance(e, ev.AgentCycle)] == ["task-notification"]
        assert first.view.messages == ("It builds.",)
        assert first.late == second.late == ()
        await session.close()
