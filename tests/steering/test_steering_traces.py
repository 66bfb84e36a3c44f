"""What claude-agent-acp 0.101 and codex-acp 2.6 were seen to do when they were steered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from stream.wire_agent import answer, say, update, wire_agent

from thinkwell import Injected
from thinkwell import events as ev

if TYPE_CHECKING:
    from stream.wire_agent import Json, WireAgent

    from thinkwell import ThoughtStream

TRACES = Path(__file__).with_name("traces")
STEERS = {"steering": {"supported": True}}

pytestmark = pytest.mark.virtual_time


def trace(name: str) -> list[Json]:
    """Read the lines of a recorded session from its prompt on."""
    return [json.loads(line) for line in (TRACES / f"{name}.ndjson").read_text("utf-8").splitlines()]


async def play(lines: list[Json], wire: WireAgent, stream: ThoughtStream[Any], until: int) -> None:
    """Send what the agent sent, at its times, and steer when the client did."""
    ids: dict[object, Json] = {}
    now = lines[0]["ms"]
    async with anyio.create_task_group() as tasks:
        for line in lines[:until]:
            await anyio.sleep((line["ms"] - now) / 1000)
            now = line["ms"]
            message: Json = line["message"]
            if line["from"] == "client":
                if message["method"] == "session/prompt":
                    opened = "session/prompt" in wire.unread
                    session_id = message["params"]["sessionId"]
                    prompted = wire.expect("session/prompt") if opened else wire.begin(session_id)
                    ids[message["id"]] = await prompted
                else:
                    tasks.start_soon(stream.steer, message["params"]["prompt"][0]["text"])
                    ids[message["id"]] = await wire.expect("_session/steering")
            elif "id" in message:
                await wire.write(answer(ids[message["id"]], message["result"]))
            else:
                await wire.write(message)


def words(count: int) -> str:
    return "".join(f"word {number}. " for number in range(count))


@pytest.mark.parametrize(
    ("name", "messages", "open_for"),
    [
        # The answer counts as the end where the agent marks its work.
        ("claude-steering", (words(3), words(12)), 0),
        ("claude-steering-end", (words(12), words(12)), 0),
        # A command was moved to the background, and the agent works again when it has ended.
        ("claude-steering-tool", ("First, another tool.", words(6), words(6)), 1.892),
        # It marks nothing. The title of the session comes 1.3 s after the answer, then 2 s of silence.
        ("codex-steering", (words(2), words(12)), 3.28),
        ("codex-steering-tool", ("First, another tool.", words(6)), 3.28),
    ],
)
async def test_all_of_it_is_in_the_run(name: str, messages: tuple[str, ...], open_for: float) -> None:
    lines = trace(name)
    async with wire_agent(meta=STEERS) as (agent, wire):
        stream = agent.think().text("Count, please.").stream(include="all")
        await play(lines, wire, stream, len(lines))
        result = await stream.result
    assert result == messages[-1]
    assert tuple(text for text in stream.view.messages if "Warning" not in text) == messages
    assert not stream.view.background
    assert stream.view.user_messages == ("STEER-0: also check auth.",)
    at = {type(event): event.at async for event in stream}
    assert at[ev.PhaseChanged] - at[ev.TurnEnded] == pytest.approx(open_for, abs=0.1)
    assert stream.late == ()


async def test_what_goes_on_too_long_is_named_and_comes_in_no_turn() -> None:
    lines = trace("claude-steering-tool")
    answered = next(i for i, line in enumerate(lines) if "stopReason" in str(line["message"].get("result")))
    async with wire_agent(meta=STEERS) as (agent, wire), anyio.create_task_group() as tasks:
        tasks.start_soon(wire.open_sessions, [lines[0]["message"]["params"]["sessionId"]])
        session = await agent.session().start()
        stream = session.think().text("Count, please.").stream(include="all")
        await anyio.sleep(1)
        await play(lines, wire, stream, answered + 1)
        began = anyio.current_time()
        assert await stream.result == words(6)
        assert anyio.current_time() - began == pytest.approx(30, abs=0.1)
        assert stream.view.background == ("sleep 4; echo slept",)
        for line in lines[answered + 1 :]:
            await wire.write(line["message"])
        told: list[ev.ThoughtEvent] = []
        async for event in session.events():
            told.append(event)
            if isinstance(event, ev.AgentCycle):
                assert event.origin == "task-notification"
                break
        assert "".join(event.text for event in told if isinstance(event, ev.Message)) == words(6)
        assert isinstance(told[-1], ev.AgentCycle)
        assert stream.late == tuple(told)
        await session.close()


async def test_a_command_in_the_background_without_steering_is_waited_for_too() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Go").stream(include="all")
        prompt = await wire.begin()
        moved: Json = {
            "toolCallId": "t",
            "title": "make",
            "status": "completed",
            "rawOutput": "Command was moved to the background (ID: b1)",
            "_meta": {"claudeCode": {"toolName": "Bash"}},
        }
        await wire.write(update("tool_call", **moved), answer(prompt, {"stopReason": "end_turn"}))
        await anyio.sleep(10)
        assert not stream.result.done()
        assert stream.view.background == ("make",)
        end: Json = {"used": 1, "size": 2, "_meta": {"_claude/origin": {"kind": "task-notification"}}}
        await wire.write(update("usage_update", **end))
        await stream.wait()
        assert not stream.view.background


async def test_another_agent_that_says_so_has_moved_nothing() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Go").stream()
        prompt = await wire.begin()
        output = "Command was moved to the background (ID: b1)"
        done: Json = {"toolCallId": "t", "title": "make", "status": "completed", "rawOutput": output}
        await wire.write(update("tool_call", **done), answer(prompt, {"stopReason": "end_turn"}))
        await stream.wait()
        assert stream.elapsed < 1


async def test_steered_twice__injected_each_time() -> None:
    async with wire_agent(meta=STEERS) as (agent, wire), anyio.create_task_group() as tasks:
        stream = agent.think().text("Go").stream()
        prompt = await wire.begin()
        came_to: list[object] = []

        async def steer(text: str) -> None:
            came_to.append(await stream.steer(text))

        for text in ("a", "b"):
            tasks.start_soon(steer, text)
            await wire.write(answer(await wire.expect("_session/steering"), {"outcome": "injected"}))
        await wire.write(say("Both."), answer(prompt, {"stopReason": "end_turn"}))
        await stream.wait()
        assert came_to == [Injected(), Injected()]
