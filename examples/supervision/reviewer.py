"""A strict reviewer decides what an agent may do: a typed verdict, and no unless it is sure.

python examples/supervision/reviewer.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from pydantic import BaseModel

from thinkwell import open_agent
from thinkwell.listen import AgentApproval, AgentQuestion, Handlers

WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]

RULES = """
Commands that only read may run, and so may the tests.
Nothing is deleted, published or installed. Whatever you are not sure of is not allowed.
"""


class Verdict(BaseModel):
    """The reviewer's verdict."""

    allowed: bool
    why: str


async def main() -> None:
    async with open_agent() as reviewer, open_agent(command=WORKER, protocol="ndjson") as worker:
        handlers = Handlers()

        @handlers.on("question")
        def answer(question: AgentQuestion) -> str | None:
            return question.options[0] if question.options else None

        @handlers.on("approval", by="reviewer", timeout=60)
        async def review(approval: AgentApproval) -> bool | str:
            task = (
                reviewer.think(Verdict)
                .text("May a coding agent do this?")
                .text(RULES)
                .quote(approval.description)
            )
            verdict = await task.run()
            print(f"{approval.description}: {'yes' if verdict.allowed else 'no'}")
            return True if verdict.allowed else f"No: {verdict.why}"  # the agent gets the reason

        print(await worker.think().text("Move auth to JWT.").listen(handlers))


if __name__ == "__main__":
    anyio.run(main)
