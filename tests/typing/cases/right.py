"""What type checkers make of right uses. Checked, never run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypeAlias,
    TypeVar,
    Union,
    assert_type,
)

from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict, TypeForm

from thinkwell import (
    Agent,
    Draft,
    JsonSchema,
    Message,
    Session,
    ThinkBuilder,
    Thought,
    ThoughtEvent,
    ThoughtResult,
    ThoughtStream,
    Tool,
    ToolContext,
    ToolDone,
    open_agent,
    tool,
)


class Review(BaseModel):
    score: int


@dataclass
class Person:
    name: str


class Movie(TypedDict):
    title: str


class Point(NamedTuple):
    x: int


class Colour(Enum):
    RED = "red"


UserId = NewType("UserId", int)
Answer: TypeAlias = Literal["yes", "no"]
Anything = TypeVar("Anything")


async def drafts(agent: Agent, stream: ThoughtStream[Review]) -> None:
    async for draft in stream.drafts():
        assert_type(draft, Draft[Mapping[str, object]])
    async for movie in agent.think(Movie).text("Go").stream().drafts():
        assert_type(movie.value, Movie)
    async for reviews in agent.think(list[Review]).text("Go").stream().drafts():
        assert_type(reviews.value, list[Review])
    async for text in agent.think().text("Go").stream().drafts():
        assert_type(text.value, str)


async def results(agent: Agent) -> None:
    assert_type(await agent.think(Review).text("Go").stream().result, Review)
    assert_type(await agent.think(Person).text("Go").stream().result, Person)
    assert_type(await agent.think(Movie).text("Go").stream().result, Movie)
    assert_type(await agent.think(list[Review]).text("Go").stream().result, list[Review])
    assert_type(await agent.think(dict[str, int]).text("Go").stream().result, dict[str, int])
    assert_type(await agent.think(int).text("Go").stream().result, int)
    assert_type(await agent.think().text("Go").stream().result, str)
    assert_type(await agent.think(None).text("Go").stream().result, str)
    assert_type(await agent.think(str).text("Go").stream().result, str)
    assert_type(await agent.think(JsonSchema({"type": "integer"})).text("Go").stream().result, Any)


async def forms(agent: Agent) -> None:
    """Whatever can be written as a type."""
    assert_type(await agent.think(Literal["yes", "no"]).text("Go").run(), Literal["yes", "no"])
    assert_type(await agent.think(Answer).text("Go").stream().result, Literal["yes", "no"])
    assert_type(await agent.think(int | None).text("Go").run(), int | None)
    assert_type(await agent.think(Optional[int]).text("Go").run(), int | None)  # noqa: UP045 - as people write it
    assert_type(await agent.think(Review | Person | None).text("Go").run(), Review | Person | None)
    assert_type(await agent.think(Union[Review, str]).text("Go").run(), Review | str)  # noqa: UP007 - the same
    assert_type(await agent.think(list[int | None]).text("Go").run(), list[int | None])
    assert_type(await agent.think(dict[str, list[Movie]]).text("Go").run(), dict[str, list[Movie]])
    assert_type(await agent.think(tuple[int, str]).text("Go").run(), tuple[int, str])
    assert_type(await agent.think(tuple[int, ...]).text("Go").run(), tuple[int, ...])
    assert_type(await agent.think(Annotated[int, Field(gt=0)]).text("Go").run(), int)
    assert_type(await agent.think(Point).text("Go").run(), Point)
    assert_type(await agent.think(Colour).text("Go").run(), Colour)
    assert_type(await agent.think(UserId).text("Go").run(), UserId)
    assert_type(await agent.think(date).text("Go").run(), date)
    assert_type(await agent.think(bool).text("Go").run(), bool)


async def generic(agent: Agent, kind: type[Anything], form: TypeForm[Anything]) -> Anything:
    assert_type(await agent.think(form).text("Go").run(), Anything)
    return await agent.think(kind).text("Go").run()


async def adapters(agent: Agent) -> None:
    union: TypeAdapter[Review | Person] = TypeAdapter(Review | Person)
    assert_type(await agent.think(union).text("Go").stream().result, Review | Person)
    literal: TypeAdapter[Literal["yes", "no"]] = TypeAdapter(Literal["yes", "no"])
    assert_type(await agent.think(literal).text("Go").run(), Literal["yes", "no"])
    assert_type(await agent.think(TypeAdapter(list[Movie])).text("Go").run(), list[Movie])


async def running(agent: Agent) -> None:
    assert_type(await agent.think(Review).text("Go").run(retries=1), Review)
    assert_type(await agent.think().text("Go").run(), str)


async def building(agent: Agent) -> None:
    builder = agent.think(Review)
    assert_type(builder, ThinkBuilder[Review])
    assert_type(builder.text("a").line().quote("q").code("c").resource("file.py"), ThinkBuilder[Review])
    assert_type(builder.image(b"").tool(add).cwd("/").meta({"a": 1}), ThinkBuilder[Review])


async def streams(agent: Agent) -> None:
    stream = agent.think(Review).text("Go").stream()
    assert_type(stream, ThoughtStream[Review])
    assert_type(stream.result, ThoughtResult[Review])
    assert_type(stream.result.exception(), Exception | None)
    async with stream as same:
        assert_type(same, ThoughtStream[Review])
    async for event in stream:
        assert_type(event, ThoughtEvent)
        match event:
            case Thought(text=text) | Message(text=text):
                assert_type(text, str)
            case ToolDone():
                assert_type(event.status, Literal["completed", "failed", "cancelled"])
            case _:
                pass


async def sessions() -> None:
    async with open_agent("builtin") as agent, agent.session(output=Review) as session:
        assert_type(agent, Agent)
        assert_type(session, Session)
        assert_type(await session.think(Review).text("Go").run(), Review)
        assert_type(await session.think().text("Go").run(), str)
        assert_type(await session.think(Literal[1, 2] | None).text("Go").run(), Literal[1, 2] | None)
        union: TypeAdapter[int | None] = TypeAdapter(int | None)
        assert_type(await session.think(union).text("Go").stream().result, int | None)


def add(a: int, b: int = 0) -> int:
    return a + b


@tool
async def decorated(context: ToolContext, text: str) -> str:
    context.progress(1, 2, "half")
    return text


@tool(name="other", mention=False)
def with_options(text: str) -> str:
    return text


@tool
def doubled(number: int) -> int:
    return number * 2


async def tools(agent: Agent, any_tool: Tool) -> None:
    assert_type(tool(add)(1, b=2), int)
    assert_type(doubled(3), int)
    assert_type(with_options(text="t"), str)
    assert_type(with_options.function("t"), str)
    assert_type(tool(doubled, name="twice")(3), int)
    assert_type(any_tool, Tool[..., object])
    assert_type(any_tool(1, two=2), object)
    bare: list[Tool] = [tool(add), decorated, with_options, doubled]
    for one in bare:
        agent.think().tool(one).tool(one, name="other")
    agent.think().tool(add).tool(decorated).tool(lambda: 1, name="one")


async def awaited(context: ToolContext) -> None:
    assert_type(await decorated(context, "text"), str)
