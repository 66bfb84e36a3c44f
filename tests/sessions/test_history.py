"""A session's conversation as messages: complete, in order, and each event looked at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import pytest
from scripted import EVERY_SESSION_CALL, Played, Turn, scripted
from stream.counting import counted_calls

from thinkwell import HistoryMessage, HistoryTool, Session, history_to_json
from thinkwell import events as ev
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Sequence


def text(words: str) -> s.TextContent:
    return s.TextContent(text=words)


def call(id_: str, **fields: object) -> s.ToolCallStart:
    return s.ToolCallStart(tool_call_id=id_, title=f"Call {id_}", **fields)  # type: ignore[arg-type]


def progress(id_: str, **fields: object) -> s.ToolCallProgress:
    return s.ToolCallProgress(tool_call_id=id_, **fields)  # type: ignore[arg-type]


def told(history: Sequence[HistoryMessage]) -> list[tuple[str, int, str]]:
    return [(message.role, message.turn, message.text) for message in history]


async def a_turn(turn: Turn) -> None:
    """Thought, text, tool, text, as agents mix them."""
    turn.update(s.UserMessageChunk(content=text(turn.text)))  # an echo
    turn.think("Let me ")
    turn.think("see.")
    turn.say("I look.")
    turn.update(call("t1", kind="read", raw_input={"path": "a"}))
    turn.say("Meanwhile.")
    turn.update(
        progress(
            "t1",
            status="completed",
            raw_output={"lines": 3},
            content=(s.Content(content=text("three")), s.Content(content=text("lines"))),
        )
    )
    turn.say("It is ")
    turn.say("so.")


A_TURN = [
    ("thought", 1, "Let me see."),
    ("assistant", 1, "I look."),
    ("tool", 1, "three\nlines"),
    ("assistant", 1, "Meanwhile."),
    ("assistant", 1, "It is so."),
]


@pytest.mark.parametrize("include", [{"plan"}, {"message"}, "default", "all"])
async def test_a_history_is_whole_and_in_order_whatever_is_kept(include: ev.Include) -> None:
    async with scripted(a_turn) as agent, agent.session() as session:
        assert session.history() == ()
        await session.think().text("How is it?").stream(include=include).wait()
        history = session.history()
        assert told(history) == [("user", 1, "How is it?"), *A_TURN]
        assert history[3].tool == HistoryTool(
            id="t1",
            title="Call t1",
            kind="read",
            status="completed",
            input={"path": "a"},
            output={"lines": 3},
        )
        assert not any(message.replayed for message in history)
        await session.think().text("Again").stream(include=include).wait()
        assert session.history()[: len(history)] == history
        assert told(session.history())[len(history) :] == [
            ("user", 2, "Again"),
            *((role, 2, words) for role, _, words in A_TURN),
        ]


async def test_a_history_grows_while_a_turn_runs() -> None:
    go = anyio.Event()

    async def script(turn: Turn) -> None:
        turn.say("So ")
        await go.wait()
        turn.say("far.")

    async with scripted(script) as agent, agent.session() as session:
        stream = session.think().text("Go").stream()
        with anyio.fail_after(30):
            await anext(aiter(stream))
            assert told(session.history()) == [("user", 1, "Go"), ("assistant", 1, "So ")]
            go.set()
            await stream.wait()
        assert told(session.history()) == [("user", 1, "Go"), ("assistant", 1, "So far.")]


async def test_a_reminder_is_a_turn_and_what_comes_late_belongs_to_the_last() -> None:
    async def forgets(turn: Turn) -> None:
        turn.say("Well")

    async def remembers(turn: Turn) -> None:
        await turn.returns(result=3)

    handler = Played([forgets, remembers, forgets])
    async with scripted(agent=handler) as agent, agent.session() as session:
        stream = session.think(int).text("Count").stream()
        assert await stream.result == 3
        await stream.wait()
        handler.client.update(session.id, s.UserMessageChunk(content=text("an echo")))
        handler.client.update(session.id, s.AgentMessageChunk(content=text("late")))
        await anext(session.events(include={"message"}))
        await session.think().text("More").run()
        turns = [(message.role, message.turn) for message in session.history()]
        assert turns == [
            *(("user", 1), ("assistant", 1), ("user", 2)),
            ("assistant", 2),
            *(("user", 3), ("assistant", 3)),
        ]
        assert session.history()[3].text == "late"
        assert "return_result" in session.history()[2].text


async def test_late_news_of_a_call_correct_it() -> None:
    async def script(turn: Turn) -> None:
        turn.update(call("t1", kind="execute", content=(s.Content(content=text("so far")),)))
        turn.update(call("t2"))
        turn.say("Done")

    handler = Played([script])
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.think().text("Go").run()
        handler.client.update(session.id, progress("t1", status="completed", raw_output=7))
        handler.client.update(
            session.id, progress("t2", status="failed", content=(s.Content(content=text("no")),))
        )
        handler.client.update(session.id, progress("t3", title="new"))
        await anext(session.events(include={"tool_start"}, after=4))
        tools = [message for message in session.history() if message.tool is not None]
        assert told(tools) == [("tool", 1, "so far"), ("tool", 1, "no"), ("tool", 1, "")]
        assert [tool.tool for tool in tools] == [
            HistoryTool(id="t1", title="Call t1", kind="execute", status="completed", output=7),
            HistoryTool(id="t2", title="Call t2", status="failed"),
            HistoryTool(id="t3", title="new"),
        ]


async def test_a_replay_is_marked_and_the_users_words_are_in_it() -> None:
    handler = Played([a_turn], capabilities=EVERY_SESSION_CALL)
    handler.replay = [
        s.UserMessageChunk(content=text("What ")),
        s.UserMessageChunk(content=text("is?")),
        s.AgentThoughtChunk(content=text("Hm"), message_id="m"),
        s.AgentMessageChunk(content=text("This "), message_id="m"),
        call("t1", status="completed"),
        s.AgentMessageChunk(content=text("is."), message_id="m"),
        s.UserMessageChunk(content=text("A"), message_id="u1"),
        s.UserMessageChunk(content=text("B"), message_id="u2"),
        s.UserMessageChunk(content=text("C"), message_id="u1"),
        s.UserMessageChunk(content=text("")),
    ]
    before = [
        ("user", 0, "What is?"),
        ("thought", 0, "Hm"),
        ("assistant", 0, "This is."),
        ("tool", 0, ""),
        *(("user", 0, "AC"), ("user", 0, "B")),
    ]
    async with scripted(agent=handler) as agent, agent.session(load="old") as session:
        assert told(session.history()) == before
        await session.think().text("Go on").stream().wait()
        history = session.history()
        assert told(history) == [*before, ("user", 1, "Go on"), *A_TURN]
        assert [message.replayed for message in history] == [True] * 6 + [False] * 6


async def test_content_of_every_kind_has_words() -> None:
    contents: tuple[s.ToolCallContent, ...] = (
        s.Content(content=s.ImageContent(data="", mime_type="image/png")),
        s.Content(content=s.AudioContent(data="", mime_type="audio/wav")),
        s.Content(content=s.ResourceLink(uri="file:///a", name="a")),
        s.Content(content=s.EmbeddedResource(resource=s.TextResourceContents(uri="file:///b", text="bee"))),
        s.Content(content=s.EmbeddedResource(resource=s.BlobResourceContents(uri="file:///c", blob=""))),
        s.Diff(path="/d", old_text="x", new_text="y"),
        s.Diff(path="/e", new_text="y"),
        s.Terminal(terminal_id="t9"),
        s.Content(content=text("")),
    )

    async def script(turn: Turn) -> None:
        turn.update(call("t1", content=contents))

    async with scripted(script) as agent, agent.session() as session:
        await session.think().text("Look at").resource("https://example.org/x").stream().wait()
        user, tool = session.history()
        assert user.text == "Look at\nhttps://example.org/x"
        assert tool.text.split("\n") == [
            *("[image/png]", "[audio/wav]", "file:///a", "bee", "file:///c"),
            *("edited: /d", "new file: /e", "terminal t9"),
        ]


async def test_a_history_goes_through_json() -> None:
    async with scripted(a_turn) as agent, agent.session() as session:
        await session.think().text("Go").stream().wait()
        first, *_, last = json.loads(history_to_json(session.history()))
        assert first == {"role": "user", "turn": 1, "text": "Go", "replayed": False, "tool": None}
        assert last["role"] == "assistant"


@pytest.mark.long
async def test_the_cost_of_a_history_grows_with_what_is_told_and_not_faster() -> None:
    async def script(turn: Turn) -> None:
        turn.update(call("t", status="completed"))
        for number in range(20):
            turn.say("word", str(number))

    async def talk(turns: int) -> int:
        async with scripted(script) as agent, agent.session() as session:
            with counted_calls() as calls:
                for _ in range(turns):
                    await session.think().text("go").stream().wait()
                assert len(session.history()) == 22 * turns
        return calls.count

    assert await talk(50) < 10.5 * await talk(5)


def last_turn(session: Session) -> int:
    return session.history()[-1].turn


async def test_a_turn_that_never_began_is_not_in_it() -> None:
    go = anyio.Event()

    async def script(turn: Turn) -> None:
        turn.say("Done")
        await go.wait()

    async with scripted(script) as agent, agent.session() as session:
        first, second = (session.think().text("Go").stream() for _ in range(2))
        with anyio.fail_after(30):
            await anext(aiter(first))
            second.cancel()
            await second.wait()
            go.set()
            await first.wait()
            assert await session.think().text("Go").run() == "Done"
        assert last_turn(session) == 2
