"""Sessions with agents that this project did not write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import pytest

from interop.live import PLAIN, TIMEOUT, nothing_runs
from interop.model_server import CallTool, ModelServer, Say
from thinkwell import AgentError, CapabilityMissing, Message, open_agent
from thinkwell.events import ModeUpdate, ReplayEnded, ReplayStarted, ThoughtEvent, UserMessage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from interop.agents import Launch, NpmAgent
    from thinkwell import Agent, Session

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", PLAIN, ids=lambda recipe: recipe.name),
]


@dataclass
class Review:
    """What the agent is asked for."""

    summary: str
    score: int


async def test_each_turn_has_its_own_tools_and_output_type(
    launch: Launch, models: ModelServer, tmp_path: Path, project: Path
) -> None:
    calls: list[str] = []

    def lookup(word: str) -> str:
        """Look up what a word means."""
        calls.append(f"lookup {word}")
        return "without input or output"

    def count_letters(word: str) -> int:
        """Count the letters of a word."""
        calls.append(f"count {word}")
        return len(word)

    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            models.play(
                CallTool("lookup", {"word": "sans-io"}),
                CallTool("return_result", {"result": {"summary": "A clean core.", "score": 7}}),
                Say("The review is in."),
            )
            review = session.think(Review).text("Review the core.").tool(lookup).stream()
            assert await review.result == Review(summary="A clean core.", score=7)
            await review.wait()
            models.play(Say("It is a clean one."))
            assert await session.think().text("In short?").run() == "It is a clean one."
            models.play(
                CallTool("count_letters", {"word": "core"}),
                CallTool("return_result", {"result": [4]}),
                Say("All are counted."),
            )
            counts = session.think(list[int]).text("Count the letters.").tool(count_letters).stream()
            assert await counts.result == [4]
            await counts.wait()
            history = session.history()
    assert calls == ["lookup sans-io", "count core"]
    assert models.remaining == ()
    said = [(message.turn, message.text) for message in history if message.role == "assistant"]
    # codex begins every turn with a warning about the unknown model.
    assert [(turn, text) for turn, text in said if not text.startswith("Warning: ")] == [
        (1, "The review is in."),
        (2, "It is a clean one."),
        (3, "All are counted."),
    ]
    asked = [(message.turn, message.text.partition("\n")[0]) for message in history if message.role == "user"]
    assert asked == [(1, "Review the core."), (2, "In short?"), (3, "Count the letters.")]
    assert [message.turn for message in history] == sorted(message.turn for message in history)
    called = [message.turn for message in history if message.role == "tool"]
    assert called.count(1) >= 2
    assert called.count(3) >= 2
    await nothing_runs(tmp_path / "home")


async def test_two_sessions_at_once_have_their_own_tools_and_results(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    called, go_on = anyio.Event(), anyio.Event()

    async def slow() -> str:
        """Take some time."""
        called.set()
        await go_on.wait()
        return "slow"

    def quick() -> str:
        """Take no time."""
        return "quick"

    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as first,
            agent.session() as second,
        ):
            assert first.id != second.id
            models.play(CallTool("slow"))
            waits = first.think(int).text("Be slow.").tool(slow).stream()
            await called.wait()
            models.play(CallTool("quick"), CallTool("return_result", {"result": "two"}), Say("Second."))
            overtakes = second.think(Review | str).text("Be quick.").tool(quick).stream()
            assert await overtakes.result == "two"
            await overtakes.wait()
            assert not waits.result.done()
            models.play(CallTool("return_result", {"result": 1}), Say("First."))
            go_on.set()
            assert await waits.result == 1
            await waits.wait()
            assert "First." in waits.view.text
            assert "Second." not in waits.view.text
            assert "Second." in overtakes.view.text
            assert "First." not in overtakes.view.text
    assert models.remaining == ()


async def test_a_session_that_was_left_goes_on_in_another_process(
    recipe: NpmAgent, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            async with agent.session() as session:
                models.play(Say("Your colour is blue."))
                await session.think().text("My colour?").run()
                old = session.id
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            can = agent.capabilities.session_capabilities
            await _is_listed(agent, old)
            if can.resume is None:
                with pytest.raises(CapabilityMissing):
                    async with agent.session(resume=old):
                        pass
            else:
                async with agent.session(resume=old) as session:
                    assert session.id == old
                    await _goes_on(session, models)
            async with agent.session(load=old) as session:
                replay = await _replay(session)
                said = "".join(event.text for event in replay if isinstance(event, Message))
                assert "Your colour is blue." in said
                asked = "".join(event.text for event in replay if isinstance(event, UserMessage))
                assert "My colour?" in asked
                history = session.history()
                assert all(message.replayed for message in history)
                assert "My colour?" in history[0].text
                await _goes_on(session, models)
                assert session.history()[: len(history)] == history


async def _is_listed(agent: Agent, session_id: str) -> None:
    if agent.capabilities.session_capabilities.list is None:
        with pytest.raises(CapabilityMissing):
            await agent.list_sessions()
    else:
        assert session_id in {info.id for info in await agent.list_sessions()}


async def _goes_on(session: Session, models: ModelServer) -> None:
    """Take a turn that calls a tool; the model must be told what was said before."""
    calls: list[str] = []

    def paint(colour: str) -> str:
        """Paint something."""
        calls.append(colour)
        return "painted"

    models.play(
        CallTool("paint", {"colour": "blue"}), CallTool("return_result", {"result": "blue"}), Say("Done.")
    )
    stream = session.think(Review | str).text("Which one was it?").tool(paint).stream()
    assert await stream.result == "blue"
    await stream.wait()
    assert calls == ["blue"]
    assert b"Your colour is blue." in next(
        request.body for request in reversed(models.requests) if request.tools
    )


async def _replay(session: Session) -> Sequence[ThoughtEvent]:
    """Return what came between the marks of a replay."""
    events: list[ThoughtEvent] = []
    begun = False
    async for event in session.events():
        begun = begun or isinstance(event, ReplayStarted)
        if isinstance(event, ReplayEnded):
            return events
        if begun:
            events.append(event)
    raise AssertionError("the session ended within its replay")
