"""A host that drives an agent through the middleware, with typed handlers.

    python examples/middleware/host.py            # an agent that plays cleaner.json
    python examples/middleware/host.py claude     # or any other

It does not use ACP: to it, the middleware is a program that writes one JSON object a line.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import anyio

from thinkwell import open_agent
from thinkwell.listen import AgentApproval, AgentProgress, AgentQuestion, Handlers

CLEANER = shlex.join(
    [sys.executable, "-m", "thinkwell.testing", str(Path(__file__).with_name("cleaner.json"))]
)
"""An agent that speaks ACP and plays a script."""

handlers = Handlers()


@handlers.on("progress")
async def tell(progress: AgentProgress) -> None:
    print(f"[{progress.stage}] {progress.message}")


@handlers.on("question")
async def choose(question: AgentQuestion) -> str:
    answer = question.options[0] if question.options else "as you like"
    print(f"{question.question} {answer}.")
    return answer


@handlers.on("approval")
async def approve(approval: AgentApproval) -> bool:
    harmless = approval.command == "rm -rf build"  # not the description: the model wrote it
    print(f"May I run {approval.command}?", "Yes." if harmless else "No.")
    return harmless


async def main() -> None:
    agent = sys.argv[1:] or ["--command", CLEANER]
    command = [sys.executable, "-m", "thinkwell", "middleware", *agent]
    async with open_agent(command=command, protocol="ndjson", init={"timeout": 600}) as middleware:
        print(await middleware.think().text("Clean up this project.").listen(handlers))


if __name__ == "__main__":
    anyio.run(main)
