"""Stages in a row, each with its own handlers: the result of one is the start of the next.

python examples/supervision/stages.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from pydantic import BaseModel

from thinkwell import open_agent
from thinkwell.listen import AgentApproval, AgentQuestion, Handlers

WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]


class Done(BaseModel):
    """The worker's result."""

    text: str
    decisions: dict[str, str | None]
    done: list[str]


planning = Handlers()
working = Handlers()


@planning.on("question")
def decide(question: AgentQuestion) -> str | None:
    return question.options[0] if question.options else None


@planning.on("approval")
def refuse(_: object) -> bool:
    return False  # this stage changes nothing


@working.on("question")
def repeat(question: AgentQuestion) -> str:
    return decided.get(question.question) or "as you planned"


@working.on("approval")
def approve(approval: AgentApproval) -> bool:
    return approval.risk_level == "low"


decided: dict[str, str | None] = {}


async def main() -> None:
    async with open_agent(command=WORKER, protocol="ndjson") as worker:
        plan = await worker.think(Done).text("Plan the move of auth to JWT.").listen(planning)
        print(plan.text)
        decided.update(plan.decisions)
        work = await worker.think(Done).text("Do this: ").quote(plan.text).listen(working)
        print(work.text)


if __name__ == "__main__":
    anyio.run(main)
