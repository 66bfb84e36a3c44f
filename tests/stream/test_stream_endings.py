"""How a turn ends, and what the run makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from stream.wire_agent import end_turn, say, wire_agent

from thinkwell import (
    ResultInvalid,
    ResultMissing,
    ResultRefused,
    ThinkwellError,
    ThoughtEvent,
    ThoughtStream,
)
from thinkwell import events as ev
from thinkwell.testing import Script, ScriptedAgent, ScriptedTurn, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path


class Answer(BaseModel):
    answer: int


def returns(*values: object) -> Script:
    """A turn that returns these, and says what it was told."""

    async def return_them(turn: ScriptedTurn) -> None:
        for value in values:
            reply = await turn.call("return_result", {"answer": value})
            turn.update(s.AgentMessageChunk(content=s.TextContent(text=reply.text)))

    return script.does(return_them)


async def kept(stream: ThoughtStream[Any]) -> list[ThoughtEvent]:
    return [event async for event in stream]


@pytest.mark.parametrize(
    ("stop_reason", "error"),
    [
        ("refusal", ResultRefused),
        ("max_tokens", ResultMissing),
        ("max_turn_requests", ResultMissing),
        ("_vendor", ResultMissing),
    ],
)
@pytest.mark.parametrize("output", [None, Answer])
async def test_turn_that_ends_otherwise_than_well__fails_and_is_not_asked_again(
    output: type[Answer] | None, stop_reason: str, error: type[ThinkwellError]
) -> None:
    agent = ScriptedAgent(script.says("well").stops(stop_reason))
    async with agent.open() as opened:
        stream = opened.think(output).text("Hi").stream()
        with pytest.raises(error) as caught:
            await stream.result
        assert getattr(caught.value, "text", None) == "well"
        assert getattr(caught.value, "stop_reason", stop_reason) == stop_reason
        assert (stream.view.phase, stream.view.stop_reason) == ("failed", stop_reason)
        assert len(agent.sent.prompts) == 1


@pytest.mark.parametrize("reminders", [0, 1, 2])
async def test_turn_without_a_result__is_followed_by_reminders_and_then_fails(reminders: int) -> None:
    async with ScriptedAgent(script.says("hm"), repeats=True).open() as opened:
        stream = opened.think(Answer).text("Hi").stream(include="all", reminders=reminders)
        with pytest.raises(ResultMissing) as caught:
            await stream.result
        assert caught.value.text == "hm"
        begun = [event for event in await kept(stream) if isinstance(event, ev.TurnStarted)]
        assert [(event.number, event.reminder) for event in begun] == [
            (number + 1, number > 0) for number in range(reminders + 1)
        ]
        assert stream.view.turns == reminders + 1
        assert stream.view.messages == ("hm",) * (reminders + 1)


async def test_turn_without_a_result__the_reminder_brings_it() -> None:
    async with ScriptedAgent(script.says("hm").stops() + returns(4)).open() as agent:
        stream = agent.think(Answer).text("Hi").stream(include="all")
        assert await stream.result == Answer(answer=4)
        phases = [event.phase for event in await kept(stream) if isinstance(event, ev.PhaseChanged)]
        assert phases == [
            *["initializing", "starting", "connecting_tools", "tools_ready"],
            *["prompted", "responding"] * 2,
            "completed",
        ]


async def test_invalid_results__are_told_to_the_agent_and_the_first_valid_one_wins() -> None:
    async with ScriptedAgent(returns("x", 1, 2)).open() as agent:
        stream = agent.think(Answer).text("Hi").stream(include="all")
        assert await stream.result == Answer(answer=1)
        events = await kept(stream)
        attempts = [event for event in events if isinstance(event, ev.ResultAttempt)]
        assert [(event.accepted, bool(event.errors)) for event in attempts] == [(False, True), (True, False)]
        first, second, third = stream.view.text.split("The result ")[1:]
        assert first.startswith("is invalid")
        assert second.startswith("was accepted.")
        assert third.startswith("was accepted before")


async def test_invalid_results__too_many_fail_while_the_turn_goes_on() -> None:
    async with ScriptedAgent(returns("x", "y", 1)).open() as agent:
        stream = agent.think(Answer).text("Hi").stream(retries=1)
        with pytest.raises(ResultInvalid) as caught:
            await stream.result
        assert (caught.value.raw, caught.value.attempts) == ({"answer": "y"}, 2)
        await stream.wait()
        assert "no more are accepted" in stream.view.text
        assert stream.view.text.endswith("No result is accepted any more. End your turn.")
        assert (stream.view.phase, stream.view.error) == ("failed", caught.value)


async def test_result_for_a_task_that_wants_text__is_turned_down() -> None:
    async with ScriptedAgent(returns(1)).open() as agent, agent.session() as session:
        stream = session.think().text("Hi").stream()
        assert "write it as text" in await stream.result


async def test_prompt__has_its_parts_in_order_and_files_as_the_agent_takes_them(tmp_path: Path) -> None:
    text, binary, picture = tmp_path / "a.txt", tmp_path / "b.bin", tmp_path / "c.png"
    text.write_text("notes")
    binary.write_bytes(b"\xff\xfe")
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    takes = {"promptCapabilities": {"embeddedContext": True, "image": True}}
    for capabilities in (takes, {"promptCapabilities": {"image": True}}):
        async with wire_agent(capabilities=capabilities) as (agent, wire):
            builder = agent.think().text("See").resource(text).resource(binary)
            stream = builder.resource("https://example.com/x").image(picture).meta({"k": 1}).stream()
            prompt = await wire.begin()
            blocks = prompt["params"]["prompt"]
            first = "resource" if capabilities is takes else "resource_link"
            assert [block["type"] for block in blocks] == ["text", first, *["resource_link"] * 2, "image"]
            assert prompt["params"]["_meta"] == {"k": 1}
            await wire.write(say("Seen"), end_turn(prompt))
            assert await stream.result == "Seen"
