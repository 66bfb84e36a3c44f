"""Invalid, missing, refused, late: what becomes of a result, and what the agent is told."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from pydantic import BaseModel
from scripted import ScriptedAgent, Turn, scripted
from trio.testing import MockClock

from thinkwell import (
    ResultInvalid,
    ResultMissing,
    ResultRefused,
    ToolsNotSeen,
    events,
)
from thinkwell_acp import schema as s


class Answer(BaseModel):
    value: int


def said(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    text: str = block["text"]
    return text


async def test_an_invalid_value_goes_back_in_words_that_the_agent_can_act_on() -> None:
    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        answers.append(await turn.returns(value="four"))
        answers.append(await turn.returns(value=4))

    async with scripted(script) as agent:
        stream = agent.think(Answer).text("Go").stream(include="all")
        assert await stream.result == Answer(value=4)
        attempts = [event async for event in stream if isinstance(event, events.ResultAttempt)]
    first, second = answers
    assert first["isError"] is True
    assert "value: Input should be a valid integer" in said(first)
    assert "call return_result again" in said(first)
    assert second["isError"] is False
    assert [(one.accepted, one.value) for one in attempts] == [
        (False, {"value": "four"}),
        (True, {"value": 4}),
    ]
    assert attempts[0].errors[0].startswith("value: ")


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_after_the_retries_the_result_is_invalid_and_nothing_more_is_accepted(retries: int) -> None:
    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        for number in range(retries + 1):
            answers.append(await turn.returns(value=[number]))
        answers.append(await turn.returns(value=4))

    async with scripted(script) as agent:
        stream = agent.think(Answer).text("Go").stream(retries=retries)
        with pytest.raises(ResultInvalid) as caught:
            await stream.result
        await stream.wait()
    assert caught.value.raw == {"value": [retries]}
    assert caught.value.attempts == retries + 1
    assert caught.value.errors[0].startswith("value: ")
    assert all(answer["isError"] for answer in answers)
    assert "no more are accepted" in said(answers[retries])
    assert stream.view.phase == "failed"


async def test_the_first_valid_value_wins_and_later_ones_are_answered_politely() -> None:
    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        for value in (1, 2, "x"):
            answers.append(await turn.returns(value=value))

    async with scripted(script) as agent:
        stream = agent.think(Answer).text("Go").stream()
        assert await stream.result == Answer(value=1)
        await stream.wait()
        assert await stream.result == Answer(value=1)
    assert [answer["isError"] for answer in answers] == [False, False, False]
    assert "ignored" in said(answers[1])
    assert "ignored" in said(answers[2])


async def test_the_result_is_there_before_the_turn_ends() -> None:
    over = anyio.Event()

    async def script(turn: Turn) -> None:
        await turn.returns(value=1)
        await over.wait()
        turn.say("Bye")

    async with scripted(script) as agent:
        stream = agent.think(Answer).text("Go").stream()
        with anyio.fail_after(5):
            await stream.result
            assert stream.view.stop_reason is None
            over.set()
            assert [event.type async for event in stream] == ["message"]


async def test_several_values_at_once_are_one_result() -> None:
    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        async def one(value: int) -> None:
            answers.append(await turn.returns(value=value))

        async with anyio.create_task_group() as tasks:
            for value in range(5):
                tasks.start_soon(one, value)

    async with scripted(script) as agent:
        stream = agent.think(Answer).text("Go").stream()
        await stream.result
        await stream.wait()
    assert sorted("accepted before" in said(answer) for answer in answers) == [False, True, True, True, True]


# Reminders


async def silent(turn: Turn) -> None:
    turn.say("I am done.")


@pytest.mark.parametrize("reminders", [0, 1, 3])
async def test_a_turn_without_a_result_gets_reminders_and_then_fails(reminders: int) -> None:
    handler = ScriptedAgent([silent])
    async with scripted(agent=handler) as agent:
        with pytest.raises(ResultMissing) as caught:
            await agent.think(Answer).text("Go").run(reminders=reminders)
    assert (caught.value.stop_reason, caught.value.text) == ("end_turn", "I am done.")
    assert len(handler.prompts) == reminders + 1
    assert len({prompt.session_id for prompt in handler.prompts}) == 1
    for prompt in handler.prompts[1:]:
        (block,) = prompt.prompt
        assert isinstance(block, s.TextContent)
        assert "return_result" in block.text


async def test_a_result_after_a_reminder_counts() -> None:
    async def second(turn: Turn) -> None:
        await turn.returns(value=2)

    async with scripted(silent, second) as agent:
        stream = agent.think(Answer).text("Go").stream(include="all")
        assert await stream.result == Answer(value=2)
        turns = [event.reminder async for event in stream if isinstance(event, events.TurnStarted)]
    assert turns == [False, True]


async def test_attempts_count_over_the_reminders() -> None:
    async def wrong(turn: Turn) -> None:
        await turn.returns(value="x")

    async with scripted(wrong) as agent:
        with pytest.raises(ResultInvalid) as caught:
            await agent.think(Answer).text("Go").run(retries=1)
    assert caught.value.attempts == 2


@pytest.mark.parametrize("stop_reason", ["max_tokens", "max_turn_requests", "something_new"])
async def test_a_turn_that_was_cut_off_gets_no_reminder(stop_reason: str) -> None:
    async def script(turn: Turn) -> str:
        turn.say("So far")
        return stop_reason

    handler = ScriptedAgent([script])
    async with scripted(agent=handler) as agent:
        with pytest.raises(ResultMissing) as caught:
            await agent.think(Answer).text("Go").run()
        assert caught.value.stop_reason == stop_reason
        assert stop_reason in str(caught.value)
        with pytest.raises(ResultMissing):
            await agent.think().text("Go").run()
    assert len(handler.prompts) == 2


@pytest.mark.parametrize("output", [None, Answer])
async def test_a_refusal_is_told_apart(output: type[Answer] | None) -> None:
    async def script(turn: Turn) -> str:
        turn.say("I will not.")
        return "refusal"

    async with scripted(script) as agent:
        with pytest.raises(ResultRefused) as caught:
            await agent.think(output).text("Go").run()
    assert caught.value.text == "I will not."


@pytest.mark.parametrize("output", [None, Answer])
async def test_a_turn_that_the_agent_cancelled_itself_is_told_apart(output: type[Answer] | None) -> None:
    async def script(turn: Turn) -> str:
        turn.say("You said no.")
        return "cancelled"

    async with scripted(script) as agent:
        stream = agent.think(output).text("Go").stream()
        with pytest.raises(ResultMissing, match="it cancelled the turn itself") as caught:
            await stream.result
        await stream.wait()
        assert stream.view.phase == "failed"
    assert (caught.value.stop_reason, caught.value.text) == ("cancelled", "You said no.")


async def test_a_refusal_after_a_result_changes_nothing() -> None:
    async def script(turn: Turn) -> str:
        await turn.returns(value=1)
        return "refusal"

    async with scripted(script) as agent:
        stream = agent.think(Answer).text("Go").stream()
        assert await stream.result == Answer(value=1)
        await stream.wait()
        assert (stream.view.phase, stream.view.stop_reason) == ("completed", "refusal")


async def test_return_result_in_a_turn_that_wants_text_says_so() -> None:
    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        answers.append(await turn.returns(result="text"))
        turn.say("Text")

    async with scripted(script) as agent, agent.session() as session:
        assert await session.think().text("Go").run() == "Text"
    assert answers[0]["isError"] is True
    assert "as text" in said(answers[0])


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_an_agent_that_never_lists_the_tools() -> None:
    handler = ScriptedAgent([silent], lists_tools=False)
    async with scripted(agent=handler) as agent:
        with anyio.fail_after(5.5), pytest.raises(ToolsNotSeen) as caught:
            await agent.think(Answer).text("Go").run()
    assert caught.value.via == ("acp",)
    assert caught.value.text == "I am done."
    assert len(handler.prompts) == 1


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_a_text_whose_tools_were_never_listed_is_no_result() -> None:
    def lookup() -> str:
        """Look it up."""
        return "42"

    async with scripted(agent=ScriptedAgent([silent], lists_tools=False)) as agent:
        with pytest.raises(ToolsNotSeen):
            await agent.think().text("Go").tool(lookup).run()
        assert await agent.think().text("Go").run() == "I am done."


async def test_an_agent_that_gives_up_after_an_invalid_value_fails_with_that_value() -> None:
    prompts: list[str] = []

    async def script(turn: Turn) -> None:
        prompts.append(turn.text)
        if len(prompts) == 1:
            await turn.returns(value="four")

    async with scripted(script) as agent:
        stream = agent.think(Answer).text("Go").stream()
        with pytest.raises(ResultInvalid) as caught:
            await stream.result
    assert caught.value.raw == {"value": "four"}
    assert caught.value.errors[0].startswith("value: ")
    assert caught.value.attempts == 1
    assert "what you passed to the tool return_result was invalid:\n- value: " in prompts[1]
