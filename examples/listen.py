"""Receive an agent's messages while it works, and answer its questions, with typed functions.

    python examples/listen.py

The architect is the built-in agent, or the one that THINKWELL_AGENT names. The agent that asks is a program
of a few lines, so that it asks the same each time; any other can take its place.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from pydantic import BaseModel

from thinkwell import open_agent
from thinkwell.listen import AgentApproval, AgentProgress, AgentQuestion, Handlers

WORKER = [sys.executable, str(Path(__file__).parent / "supervision" / "worker.py")]


class Report(BaseModel):
    """The result that we want. An NDJSON agent gives it by the fields of its last message."""

    text: str
    done: list[str]


async def main() -> None:
    async with open_agent() as architect, open_agent(command=WORKER, protocol="ndjson") as agent:
        handlers = Handlers()

        @handlers.on("progress")
        async def tell(progress: AgentProgress) -> None:
            print(f"> {progress.message}")

        @handlers.on("question")
        async def answer(question: AgentQuestion) -> str:  # the return value is the answer
            said = await architect.think(str).text(f"Answer: {question.question}").run()
            print(f"{question.question} {said.splitlines()[0][:60]}…")
            return said

        @handlers.on("approval")
        async def approve(approval: AgentApproval) -> bool | str:
            print(f"May it? {approval.description}")
            return True if approval.risk_level == "low" else "No. It is not to be undone."

        report = await agent.think(Report).text("Move auth to JWT.").listen(handlers)
        print(f"Done: {', '.join(report.done)}")


if __name__ == "__main__":
    anyio.run(main)
