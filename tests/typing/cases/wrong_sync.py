"""Wrong uses of the blocking API: an ignore that is not needed is an error. Never run."""

from __future__ import annotations

from pydantic import BaseModel

from thinkwell import supervise
from thinkwell.sync import Agent, open_agent


class Review(BaseModel):
    score: int


class Other(BaseModel):
    text: str


def results(agent: Agent) -> None:
    wrong: Other = agent.think(Review).text("Go").run()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    agent.think(5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    agent.think(Review).text("Go").stream(tries=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    supervise(by=agent, instructions="Deny.")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    del wrong


async def awaiting(agent: Agent) -> None:
    stream = agent.think(Review).text("Go").stream()
    await stream.result()  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    stream.__aiter__()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def opening() -> None:
    with open_agent("claude", permissions="yes"):  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        pass
    open_agent("claude").think()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
