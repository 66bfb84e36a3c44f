"""Run an NDJSON agent, receive its messages, and answer its questions.

    python examples/line_agent/run.py             # agent.py
    python examples/line_agent/run.py agent.sh    # the same in a shell

The agent writes the file CONTENTS.md into the current folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from pydantic import BaseModel

from thinkwell import open_agent
from thinkwell.listen import AgentApproval, AgentProgress, AgentQuestion, Handlers

FOLDER = Path(__file__).parent


class Listing(BaseModel):
    """The agent's result: the fields of its last message."""

    text: str
    written: bool


handlers = Handlers()


@handlers.on("progress")
async def tell(progress: AgentProgress) -> None:
    print(f"{progress.percent:.0f} %: {progress.message}")


@handlers.on("question")
def choose(question: AgentQuestion) -> str:
    answer = question.options[-1] if question.options else "as you like"
    print(f"{question.question} {answer}.")
    return answer


@handlers.on("approval")
def approve(approval: AgentApproval) -> bool:
    print(f"May it {approval.description}?", "Yes." if approval.risk_level == "low" else "No.")
    return approval.risk_level == "low"


async def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else "agent.py"
    interpreter = "sh" if program.endswith(".sh") else sys.executable
    command = [interpreter, str(FOLDER / program)]
    async with open_agent(command=command, protocol="ndjson") as agent:
        listing = await agent.think(Listing).text("List the files of this folder.").listen(handlers)
    print(f"{listing.text} ({type(listing).__name__})")


if __name__ == "__main__":
    anyio.run(main)
