"""Invalid, missing, refused, late: what becomes of a result, and what the agent is told."""

from __future__ import annotations

import anyio
import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from thinkwell import (
    ResultInvalid,
    ResultMissing,
    ResultRefused,
    ToolsNotSeen,
    events,
)
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script


class Answer(BaseModel):
    value: int


async def test_an_invalid_value_goes_back_in_words_that_the_agent_can_act_on() -> None:
    played = ScriptedAgent(script.returns({"value": "four"}, expect_error=True).returns({"value": 4}))
    async with played.open() as agent:
        stream = agent.think(Answer).text("Go").stream(include="all")
        assert await stream.result == Answer(value=4)
        attempts = [event async for event in stream if isinstance(event, events.ResultAttempt)]
    first, second = played.sent.results
    assert first.is_error
    assert "value: Input should be a valid integer" in first.text
    assert "call return_result again" in first.text
    assert not second.is_error
    assert [(one.accepted, one.value) for one in attempts] == [
        (False, {"value": "four"}),
        (True, {"value": 4}),
    ]
    assert attempts[0].errors[0].startswith("value: ")


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_after_the_retries_the_result_is_invalid_and_nothing_more_is_accepted(retries: int) -> None:
    told = script
    for number in range(retries + 1):
        told = told.returns({"value": [number]}, expect_error=True)
    played = ScriptedAgent(told.returns({"value": 4}, expect_error=True))
    async with played.open() as agent:
        stream = agent.think(Answer).text("Go").stream(retries=retries)
        with pytest.raises(ResultInvalid) as caught:
            await stream.result
        await stream.wait()
    assert caught.value.raw == {"value": [retries]}
    assert caught.value.attempts == retries + 1
    assert caught.value.errors[0].startswith("value: ")
    assert len(played.sent.results) == retries + 2
    assert "no more are accepted" in played.sent.results[retries].text
    assert stream.view.phase == "failed"


async def test_the_first_valid_value_wins_and_later_ones_are_answered_politely() -> None:
    told = script.returns({"value": 1}).returns({"value": 2}).returns({"value": "x"})
    played = ScriptedAgent(told)
    async with played.open() as agent:
        stream = agent.think(Answer).text("Go").stream()
        assert await stream.result == Answer(value=1)
        await stream.wait()
        assert await stream.result == Answer(value=1)
    _, second, third = played.sent.results
    assert "ignored" in second.text
    assert "ignored" in third.text


async def test_the_result_is_there_before_the_turn_ends() -> None:
    over = anyio.Event()

    async def wait(_: ScriptedTurn) -> None:
        await over.wait()

    async with ScriptedAgent(script.returns({"value": 1}).does(wait).says("Bye")).open() as agent:
        stream = agent.think(Answer).text("Go").stream()
        with anyio.fail_after(30):
            await stream.result
            assert stream.view.stop_reason is None
            over.set()
            assert [event.type async for event in stream] == ["message"]


async def test_several_values_at_once_are_one_result() -> None:
    async def at_once(turn: ScriptedTurn) -> None:
        async with anyio.create_task_group() as tasks:
            for value in range(5):
                tasks.start_soon(turn.call, "return_result", {"value": value})

    played = ScriptedAgent(script.does(at_once))
    async with played.open() as agent:
        stream = agent.think(Answer).text("Go").stream()
        await stream.result
        await stream.wait()
    assert sum("accepted before" in result.text for result in played.sent.results) == 4
    assert len(played.sent.results) == 5


# Reminders


SILENT = script.says("I am done.")


@pytest.mark.parametrize("reminders", [0, 1, 3])
async def test_a_turn_without_a_result_gets_reminders_and_then_fails(reminders: int) -> None:
    played = ScriptedAgent(SILENT, repeats=True)
    async with played.open() as agent:
        with pytest.raises(ResultMissing) as caught:
            await agent.think(Answer).text("Go").run(reminders=reminders)
    assert (caught.value.stop_reason, caught.value.text) == ("end_turn", "I am done.")
    assert len(played.sent.prompts) == reminders + 1
    assert len({prompt.session_id for prompt in played.sent.prompts}) == 1
    assert all("return_result" in prompt.text for prompt in played.sent.prompts[1:])


async def test_a_result_after_a_reminder_counts() -> None:
    async with ScriptedAgent(SILENT.stops().returns({"value": 2})).open() as agent:
        stream = agent.think(Answer).text("Go").stream(include="all")
        assert await stream.result == Answer(value=2)
        turns = [event.reminder async for event in stream if isinstance(event, events.TurnStarted)]
    assert turns == [False, True]


async def test_attempts_count_over_the_reminders() -> None:
    wrong = script.returns({"value": "x"}, expect_error=True)
    async with ScriptedAgent(wrong, repeats=True).open() as agent:
        with pytest.raises(ResultInvalid) as caught:
            await agent.think(Answer).text("Go").run(retries=1)
    assert caught.value.attempts == 2


@pytest.mark.parametrize("stop_reason", ["max_tokens", "max_turn_requests", "something_new"])
async def test_a_turn_that_was_cut_off_gets_no_reminder(stop_reason: str) -> None:
    played = ScriptedAgent(script.says("So far").stops(stop_reason), repeats=True)
    async with played.open() as agent:
        with pytest.raises(ResultMissing) as caught:
            await agent.think(Answer).text("Go").run()
        assert caught.value.stop_reason == stop_reason
        assert stop_reason in str(caught.value)
        with pytest.raises(ResultMissing):
            await agent.think().text("Go").run()
    assert len(played.sent.prompts) == 2


@pytest.mark.parametrize("output", [None, Answer])
async def test_a_refusal_is_told_apart(output: type[Answer] | None) -> None:
    async with ScriptedAgent(script.says("I will not.").refuses()).open() as agent:
        with pytest.raises(ResultRefused) as caught:
            await agent.think(output).text("Go").run()
    assert caught.value.text == "I will not."


@pytest.mark.parametrize("output", [None, Answer])
async def test_a_turn_that_the_agent_cancelled_itself_is_told_apart(output: type[Answer] | None) -> None:
    async with ScriptedAgent(script.says("You said no.").stops("cancelled")).open() as agent:
        stream = agent.think(output).text("Go").stream()
        with pytest.raises(ResultMissing, match="it cancelled the turn itself") as caught:
            await stream.result
        await stream.wait()
        assert stream.view.phase == "failed"
    assert (caught.value.stop_reason, caught.value.text) == ("cancelled", "You said no.")


async def test_a_refusal_after_a_result_changes_nothing() -> None:
    async with ScriptedAgent(script.returns({"value": 1}).refuses()).open() as agent:
        stream = agent.think(Answer).text("Go").stream()
        assert await stream.result == Answer(value=1)
        await stream.wait()
        assert (stream.view.phase, stream.view.stop_reason) == ("completed", "refusal")


async def test_return_result_in_a_turn_that_wants_text_says_so() -> None:
    played = ScriptedAgent(script.returns("text", expect_error="as text").says("Text"))
    async with played.open() as agent, agent.session() as session:
        assert await session.think().text("Go").run() == "Text"


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_an_agent_that_never_lists_the_tools() -> None:
    played = ScriptedAgent(SILENT, lists_tools=False)
    async with played.open() as agent:
        with anyio.fail_after(5.5), pytest.raises(ToolsNotSeen) as caught:
            await agent.think(Answer).text("Go").run()
    assert caught.value.via == ("acp",)
    assert caught.value.text == "I am done."
    assert len(played.sent.prompts) == 1


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_a_text_whose_tools_were_never_listed_is_no_result() -> None:
    def lookup() -> str:
        """Look it up."""
        return "42"

    async with ScriptedAgent(SILENT, lists_tools=False, repeats=True).open() as agent:
        with pytest.raises(ToolsNotSeen):
            await agent.think().text("Go").tool(lookup).run()
        assert await agent.think().text("Go").run() == "I am done."


async def test_an_agent_that_gives_up_after_an_invalid_value_fails_with_that_value() -> None:
    gives_up = script.returns({"value": "four"}, expect_error=True).stops().stops()
    played = ScriptedAgent(gives_up, repeats=True)
    async with played.open() as agent:
        stream = agent.think(Answer).text("Go").stream()
        with pytest.raises(ResultInvalid) as caught:
            await stream.result
    assert caught.value.raw == {"value": "four"}
    assert caught.value.errors[0].startswith("value: ")
    assert caught.value.attempts == 1
    assert "what you passed to the tool return_result was invalid:\n- value: " in played.sent.prompts[1].text
