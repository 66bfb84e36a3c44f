"""The quickstart against agents that this project did not write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import anyio
import pytest

from interop.live import TIMEOUT
from interop.model_server import CallTool, Hold, ModelServer, Say, Think
from thinkwell import Message, Thought, ThoughtCancelled, ToolDone, open_agent
from thinkwell.events import ToolsSeen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from interop.agents import Launch

pytestmark = pytest.mark.interop


@dataclass
class Review:
    """What the agent is asked for."""

    summary: str
    score: int


@pytest.mark.scenario("typed result", "our tool called first")
@pytest.mark.parametrize("way", [None, "stdio"], ids=["as-advertised", "stdio"])
async def test_an_agent_calls_the_users_tool_and_returns_a_typed_result(
    launch: Launch,
    models: ModelServer,
    project: Path,
    way: Literal["stdio"] | None,
    tell: Callable[[str, str], None],
) -> None:
    models.play(
        Think("I should look the word up first."),
        Say("Looking it up."),
        CallTool("lookup", {"word": "sans-io"}),
        Think("Now I know what it means."),
        CallTool("return_result", {"summary": "A clean core.", "score": 7}),
        Say("The review is in."),
    )
    words: list[str] = []

    def lookup(word: str) -> str:
        """Look up what a word means."""
        words.append(word)
        return "without input or output"

    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project, tools_via=way) as agent:
            think = agent.think(Review).text("Review the core of this project.").tool(lookup)
            stream = think.stream(include="all")
            events = [event async for event in stream]
            review = await stream.result
            if agent.info is not None:
                tell("agent", f"{agent.info.name} {agent.info.version}")
    assert review == Review(summary="A clean core.", score=7)
    assert words == ["sans-io"]
    assert [event.via for event in events if isinstance(event, ToolsSeen)] == [way or "http"]
    thoughts = "".join(event.text for event in events if isinstance(event, Thought))
    assert "I should look the word up first." in thoughts
    assert "Now I know what it means." in thoughts
    text = "".join(event.text for event in events if isinstance(event, Message))
    assert "Looking it up." in text
    assert "The review is in." in text
    finished = [event for event in events if isinstance(event, ToolDone) and event.status == "completed"]
    assert len(finished) >= len(["lookup", "return_result"])
    assert models.remaining == ()


@pytest.mark.scenario("cancel in mid text")
async def test_cancel_ends_a_turn_in_the_middle_of_an_answer(
    launch: Launch, models: ModelServer, tmp_path: Path
) -> None:
    models.play(Say("This takes long."), Hold(), Say("Never said."))
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=tmp_path) as agent:
            stream = agent.think(Review).text("Review the core of this project.").stream()
            async for event in stream:
                if isinstance(event, Message) and "long." in event.text:
                    stream.cancel()
            with pytest.raises(ThoughtCancelled):
                await stream.result
    assert stream.view.stop_reason == "cancelled"
    assert "Never said." not in stream.view.text
