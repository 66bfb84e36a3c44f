"""Sessions with agents that this project did not write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import pytest

from interop.live import PLAIN, TIMEOUT
from interop.model_server import CallTool, ModelServer, Say
from thinkwell import AgentError, CapabilityMissing, Message, ModelNotOffered, SessionNotOpened, open_agent
from thinkwell.events import ConfigUpdate, ModeUpdate, ReplayEnded, ReplayStarted, ThoughtEvent, UserMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from interop.agents import Launch
    from thinkwell import Agent, Session, ThoughtStream

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", PLAIN, ids=lambda recipe: recipe.name),
]


UNKNOWN = "6f1c7dbe-0000-4000-8000-5f3a8e3d2b11"
"""The id of no session."""


@dataclass
class Review:
    """What the agent is asked for."""

    summary: str
    score: int


@pytest.mark.scenario("two turns in one session")
async def test_each_turn_has_its_own_tools_and_output_type(
    launch: Launch, models: ModelServer, project: Path
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


@pytest.mark.scenario("three sessions at once")
async def test_three_sessions_at_once_have_their_own_tools_and_results(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    called, go_on = (anyio.Event(), anyio.Event()), (anyio.Event(), anyio.Event())

    def slow_tool(number: int) -> Callable[[], Awaitable[str]]:
        async def slow() -> str:
            """Take some time."""
            called[number].set()
            await go_on[number].wait()
            return "slow"

        return slow

    def quick() -> str:
        """Take no time."""
        return "quick"

    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            # opencode offers the tools of all sessions of a folder to each: the prompt names the server.
            agent.session() as first,
            agent.session() as second,
            agent.session() as third,
        ):
            assert len({first.id, second.id, third.id}) == 3
            waiting: list[ThoughtStream[int]] = []
            for number, session in enumerate((first, second)):
                models.play(CallTool("slow"))
                think = session.think(int).text("Be slow.").tool(slow_tool(number), name="slow")
                waiting.append(think.stream())
                await called[number].wait()
            models.play(
                CallTool("quick"), CallTool("return_result", {"result": "three"}), Say("Said at once.")
            )
            overtakes = third.think(Review | str).text("Be quick.").tool(quick).stream()
            assert await overtakes.result == "three"
            await overtakes.wait()
            assert not any(stream.result.done() for stream in waiting)
            for number in (1, 0):
                models.play(CallTool("return_result", {"result": number}), Say(f"Said by {number}."))
                go_on[number].set()
                assert await waiting[number].result == number
                await waiting[number].wait()
            streams = (*waiting, overtakes)
            for said, stream in zip(("Said by 0.", "Said by 1.", "Said at once."), streams, strict=True):
                assert [said in other.view.text for other in streams] == [
                    other is stream for other in streams
                ]
    assert models.remaining == ()


async def test_a_session_that_was_left_goes_on_in_another_process(
    launch: Launch, models: ModelServer, tmp_path: Path, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            models.play(Say("Your colour is blue."))
            await session.think().text("My colour?").run()
            old = session.id
        _age(tmp_path / "home")
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            can = agent.capabilities.session_capabilities
            if can.list is None:
                with pytest.raises(CapabilityMissing):
                    await agent.list_sessions()
            else:
                assert old in [info.id for info in await agent.list_sessions()]
            await _cannot_open_unknown(agent)
            if can.resume is None:
                with pytest.raises(CapabilityMissing):
                    await _enter(agent.session(resume=old))
            else:
                await _resumed(agent, old, models)
            await _loaded(agent, old, models)
            if can.fork is None:
                with pytest.raises(CapabilityMissing):
                    await _enter(agent.session(fork=old))
            else:
                async with agent.session(fork=old) as session:
                    assert session.id != old
                    await _remembers(session, models)
            if can.delete is None:
                with pytest.raises(CapabilityMissing):
                    await agent.delete_session(old)
            else:
                await agent.delete_session(old)
                assert old not in [info.id for info in await agent.list_sessions()]
    assert models.remaining == ()


def _age(home: Path) -> None:
    """Let a session of gemini's be older: within the minute of its begin, loading it empties its file."""
    for file in home.glob(".gemini/tmp/*/chats/session-*"):
        file.rename(file.with_name(f"session-2001-01-01T00-00{file.name[-15:]}"))


async def _enter(opening: AbstractAsyncContextManager[Session]) -> None:
    async with opening:
        pass


async def _cannot_open_unknown(agent: Agent) -> None:
    """Check that an unknown session is an error, and no session is there that was not before."""
    can_list = agent.capabilities.session_capabilities.list is not None
    before = [info.id for info in await agent.list_sessions()] if can_list else []
    with pytest.raises(AgentError):
        await _enter(agent.session(resume=UNKNOWN))
    with pytest.raises(SessionNotOpened):
        await _enter(agent.session(load=UNKNOWN))
    assert before == ([info.id for info in await agent.list_sessions()] if can_list else [])


async def _resumed(agent: Agent, old: str, models: ModelServer) -> None:
    """Take a turn with a tool in a session that was left."""
    calls: list[str] = []

    def paint(colour: str) -> str:
        """Paint something."""
        calls.append(colour)
        return "painted"

    models.play(
        CallTool("paint", {"colour": "blue"}), CallTool("return_result", {"result": "blue"}), Say("Done.")
    )
    async with agent.session(resume=old) as session:
        assert session.id == old
        assert not any(message.replayed for message in session.history())
        stream = session.think(Review | str).text("Which one was it?").tool(paint).stream()
        assert await stream.result == "blue"
        await stream.wait()
        assert calls == ["blue"]


async def _loaded(agent: Agent, old: str, models: ModelServer) -> None:
    async with agent.session(load=old) as session:
        await _said_again(session, "Your colour is blue.")
        history = session.history()
        assert "My colour?" in "".join(message.text for message in history if message.role == "user")
        assert all(message.replayed for message in history)
        await _remembers(session, models)
        assert session.history()[: len(history)] == history
        asked = [message.text for message in session.history() if message.turn == 1]
        assert asked[0] == "Which one?"
    _check_marks([event async for event in session.events()])


async def _remembers(session: Session, models: ModelServer) -> None:
    """Take a turn, for which the agent must tell its model what was said before."""
    models.play(Say("That one."))
    assert await session.think().text("Which one?").run() == "That one."
    asked = [request.body for request in models.requests if request.tools]
    assert b"Your colour is blue." in asked[-1]


async def _said_again(session: Session, text: str) -> None:
    """Wait for a text in a replay. gemini answers the request to load before it has repeated everything."""
    said = ""
    async for event in session.events(include={"message"}):
        assert isinstance(event, Message)
        said += event.text
        if text in said:
            return
    raise AssertionError(f"{text!r} was not repeated, but {said!r}")


def _check_marks(events: Sequence[ThoughtEvent]) -> None:
    """Check that everything said stands between the marks of a replay."""
    within = False
    for event in events:
        if isinstance(event, ReplayStarted | ReplayEnded):
            assert within == isinstance(event, ReplayEnded)
            within = not within
        elif isinstance(event, Message | UserMessage):
            assert within
    assert not within


async def test_modes_and_options_can_be_set(launch: Launch, models: ModelServer, project: Path) -> None:
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            other = next(mode.id for mode in session.modes if mode.id != session.mode)
            await session.set_mode(other)
            assert session.mode == other
            assert [option.value for option in session.options if option.category == "mode"] in ([other], [])
            for option in session.options:
                value = next(
                    (choice.value for choice in option.choices if choice.value != option.value), None
                )
                if option.category == "mode" and value is not None:
                    await session.set_option(option.id, value)
                    assert session.mode == value
            models.play(Say("All set."))
            assert await session.think().text("Ready?").run() == "All set."
            # codex tells of the new mode as of an option, before it answers.
            told = await anext(session.events(include={"mode", "config"}))
            assert isinstance(told, ModeUpdate | ConfigUpdate)


async def test_a_model_is_chosen(launch: Launch, models: ModelServer, project: Path) -> None:
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            async with agent.session() as session:
                offered = [model for model in session.models if model.name != session.model]
            if not offered:
                pytest.skip("it offers no choice")
            async with agent.session(model=offered[0].value) as session:
                assert session.model == offered[0].name
            with pytest.raises(ModelNotOffered):
                await agent.session(model="no-such-model").start()


async def test_runs_one_after_the_other_do_not_meet_the_tools_of_those_before(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            for number in range(3):
                models.play(CallTool("return_result", {"result": number}), Say("Done."))
                stream = agent.think(int).text("Go.").stream(reminders=0)
                assert await stream.result == number
                await stream.wait()


async def test_tools_for_the_first_turn_of_a_session_may_come_late(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    def lookup(word: str) -> str:
        """Look up what a word means."""
        return f"{word}!"

    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            with anyio.move_on_after(3):  # until every agent has fetched the tools that the session has
                await anyio.sleep_forever()
            models.play(
                CallTool("lookup", {"word": "late"}), CallTool("return_result", {"result": 5}), Say("Done.")
            )
            stream = session.think(int).text("Go.").tool(lookup).stream()
            assert await stream.result == 5
            await stream.wait()
    assert models.remaining == ()
