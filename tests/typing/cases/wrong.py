"""Wrong uses, which type checkers have to find: an ignore that is not needed is an error. Never run."""

from __future__ import annotations

from pydantic import BaseModel

from thinkwell import Agent, Message, open_agent, tool


@tool
async def doubled(number: int) -> int:
    return number * 2


@tool(name="half")
def halved(number: int) -> float:
    return number / 2


class Review(BaseModel):
    score: int


class Other(BaseModel):
    text: str


async def results(agent: Agent) -> None:
    wrong: Other = await agent.think(Review).text("Go").run()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    text: int = await agent.think().text("Go").stream().result  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    union: Review = await agent.think(Review | Other).text("Go").run()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    agent.think(5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    agent.think("a prompt")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    agent.think({"type": "integer"})  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    del wrong, text, union


async def building(agent: Agent) -> None:
    agent.think(Review).text(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    agent.think(Review).text("Go").stream(timeout="soon")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    agent.think(Review).text("Go").stream(tries=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    agent.think(Review).tool("add")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def streams(agent: Agent) -> None:
    stream = agent.think(Review).text("Go").stream()
    list(stream)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    await stream  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    stream.result = 5  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]


async def opening() -> None:
    async with open_agent("claude", permissions="yes"):  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        pass
    async with open_agent(agent="claude"):  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        pass


def frozen(message: Message) -> None:
    message.text = "new"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    tool(5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


async def tools() -> None:
    await doubled("3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await doubled()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    text: str = await doubled(3)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    halved("3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    halved(3, 4)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    del text
