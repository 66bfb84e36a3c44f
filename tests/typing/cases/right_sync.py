"""What type checkers make of right uses of the blocking API. Checked, never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, assert_type

from pydantic import BaseModel, TypeAdapter

from thinkwell import JsonSchema, Message, Thought, ThoughtEvent, tool
from thinkwell.sync import Agent, Opener, Session, ThinkBuilder, ThoughtStream, open_agent, replay, supervise
from thinkwell.sync.progress import Live, show


class Review(BaseModel):
    score: int


@tool
def doubled(number: int) -> int:
    return number * 2


def results(agent: Agent) -> None:
    assert_type(agent.think(Review).text("Go").stream().result(), Review)
    assert_type(agent.think(Review).text("Go").run(retries=1), Review)
    assert_type(agent.think(list[Review]).text("Go").run(), list[Review])
    assert_type(agent.think().text("Go").run(), str)
    assert_type(agent.think(JsonSchema({"type": "integer"})).text("Go").run(), Any)
    assert_type(agent.think(Literal["a", 1]).text("Go").run(), Literal["a", 1])
    assert_type(agent.think(list[int | None] | None).text("Go").run(), list[int | None] | None)
    literal: TypeAdapter[Literal["yes", "no"]] = TypeAdapter(Literal["yes", "no"])
    assert_type(agent.think(literal).text("Go").run(), Literal["yes", "no"])


def building(agent: Agent) -> None:
    builder = agent.think(Review)
    assert_type(builder, ThinkBuilder[Review])
    assert_type(builder.text("a").line().quote("q").code("c").resource("file.py"), ThinkBuilder[Review])
    assert_type(builder.image(b"").tool(doubled).cwd("/").meta({"a": 1}), ThinkBuilder[Review])


def streams(agent: Agent) -> None:
    stream = agent.think(Review).text("Go").stream()
    assert_type(stream, ThoughtStream[Review])
    assert_type(stream.exception(), Exception | None)
    assert_type(stream.done(), bool)
    with stream as same:
        assert_type(same, ThoughtStream[Review])
    for event in stream:
        assert_type(event, ThoughtEvent)
        match event:
            case Thought(text=text) | Message(text=text):
                assert_type(text, str)
            case _:
                pass
    assert_type(stream.events(include={"plan"}), Iterator[ThoughtEvent])
    anything: ThoughtStream[object] = stream
    assert_type(show(stream), Review)
    with Live(anything, stream):
        pass
    assert_type(replay("file", Review), ThoughtStream[Review])


def opening() -> None:
    assert_type(open_agent("builtin"), Opener[Agent])
    assert_type(open_agent("builtin").start(), Agent)
    with open_agent("builtin") as agent, agent.session(output=Review) as session:
        assert_type(agent, Agent)
        assert_type(session, Session)
        assert_type(session.fork().start(), Session)
        assert_type(session.think(Review).text("Go").run(), Review)
        assert_type(session.think(Review | None).text("Go").run(), Review | None)
        with open_agent(permissions="ask", on_question=supervise(by=agent, instructions="Deny.")):
            pass
