"""Many turns in a session, one at a time; many sessions at once, each for itself."""

from __future__ import annotations

import random

import anyio
import pytest
from pydantic import BaseModel
from scripted import EVERY_SESSION_CALL, Played, Turn, scripted

from thinkwell import AgentClosed, ThoughtStream
from thinkwell_acp import schema as s


class Answer(BaseModel):
    value: int


class Words(BaseModel):
    words: list[str]


def half(x: int) -> int:
    """Halve a number."""
    return x // 2


def upper(text: str) -> str:
    """Raise the case."""
    return text.upper()


@pytest.mark.virtual_time
async def test_turns_with_other_tools_and_other_results_run_in_the_order_asked() -> None:
    async def numbers(turn: Turn) -> None:
        answered = await turn.call("half", {"x": 8})
        await turn.returns(result={"value": int(answered["content"][0]["text"])})

    async def words(turn: Turn) -> None:
        answered = await turn.call("upper", {"text": "ab"})
        await turn.returns(result={"words": [answered["content"][0]["text"]]})

    async def text(turn: Turn) -> None:
        turn.say("plain")

    handler = Played([numbers, words, text, numbers], relists=True)
    with anyio.fail_after(10):
        async with scripted(agent=handler) as agent, agent.session() as session:
            first = session.think(Answer).text("1").tool(half).stream()
            second = session.think(Words).text("2").tool(upper).stream()
            third = session.think().text("3").stream()
            fourth = session.think(Answer).text("4").tool(half).stream()
            assert (await fourth.result).value == 4
            assert first.result.done()
            assert (await first.result).value == 4
            assert (await second.result).words == ["AB"]
            assert await third.result == "plain"
            await fourth.wait()
            prompts = [message for message in session.history() if message.role == "user"]
            assert [message.turn for message in prompts] == [1, 2, 3, 4]
            assert [message.text[0] for message in prompts] == ["1", "2", "3", "4"]


async def test_twenty_sessions_interleaved_keep_to_themselves() -> None:
    turns, pieces = 3, 8
    go = anyio.Event()

    async def script(turn: Turn) -> None:
        await go.wait()
        order = random.Random(f"{turn.session_id} {turn.text}")
        for piece in range(pieces):
            turn.say(f"{turn.session_id}/{turn.text}/{piece} ")
            for _ in range(order.randrange(3)):
                await anyio.lowlevel.checkpoint()

    async def talk(number: int) -> None:
        async with agent.session() as session:
            streams = [session.think().text(str(turn)).stream() for turn in range(turns)]
            opened.append(session.id)
            if len(opened) == 20:
                go.set()
            texts = [await stream.result for stream in streams]
            for turn, text in enumerate(texts):
                assert text == "".join(f"{session.id}/{turn}/{piece} " for piece in range(pieces))
            said = [message.text for message in session.history() if message.role == "assistant"]
            assert said == texts
            assert [event async for event in streams[0]] == [event async for event in streams[0]]
            done.append(number)

    opened: list[str] = []
    done: list[int] = []
    handler = Played([script], capabilities=EVERY_SESSION_CALL)
    with anyio.fail_after(20):
        async with scripted(agent=handler) as agent, anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(talk, number)
    assert sorted(done) == list(range(20))
    assert sorted(handler.sent.closed) == sorted(opened)


async def test_a_session_that_is_left_cancels_the_turn_and_those_that_wait_for_theirs() -> None:
    prompts: list[str] = []

    async def script(turn: Turn) -> None:
        prompts.append(turn.text)
        turn.say("Started")
        await anyio.sleep_forever()

    async def rest(turn: Turn) -> None:
        turn.say("Alive")

    handler = Played([script, rest], capabilities=EVERY_SESSION_CALL)
    streams: list[ThoughtStream[str]] = []
    with anyio.fail_after(5):
        async with scripted(agent=handler) as agent:
            async with agent.session() as session:
                streams += [session.think().text(str(number)).stream() for number in range(4)]
                await anext(aiter(streams[0]))
            for stream in streams:
                with pytest.raises(AgentClosed):
                    await stream.result
                await stream.wait()
            assert [stream.view.turns for stream in streams] == [1, 0, 0, 0]
            roles = [message.role for message in session.history()]
            assert roles == ["user", "assistant"]
            assert await agent.think().text("Go").run() == "Alive"
    assert prompts == ["0"]
    assert handler.sent.closed[0] == "session-1"


async def test_options_are_sent_with_the_folders_again_when_a_session_is_opened_anew() -> None:
    """An agent that does not fetch changed tools has the session closed and resumed."""

    async def nothing(turn: Turn) -> None:
        turn.say("Nothing")

    async def numbers(turn: Turn) -> None:
        await turn.call("half", {"x": 8})

    modes = s.SessionModeState(current_mode_id="a", available_modes=(s.SessionMode(id="a", name="A"),))
    handler = Played([nothing, numbers], capabilities=EVERY_SESSION_CALL)
    with anyio.fail_after(10):
        async with scripted(agent=handler) as agent, agent.session() as session:
            await session.think().text("0").stream().wait()
            before = session.mode
            handler.modes = modes
            await session.think().text("1").tool(half).stream().wait()
            assert (before, session.mode) == (None, "a")
    assert handler.asked == ["session/new", "session/close", "session/resume", "session/close"]


async def test_a_loaded_session_has_our_tools_and_returns_results() -> None:
    async def script(turn: Turn) -> None:
        await turn.returns(result={"value": 7})

    handler = Played([script], capabilities=EVERY_SESSION_CALL)
    ways: tuple[dict[str, str], ...] = ({"load": "a"}, {"resume": "b"}, {"fork": "c"})
    with anyio.fail_after(10):
        async with scripted(agent=handler) as agent:
            for way in ways:
                async with agent.session(**way) as session:  # type: ignore[arg-type]
                    assert (await session.think(Answer).text("Go").run()).value == 7
