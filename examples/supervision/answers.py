"""One model answers another one's questions.

    python examples/supervision/answers.py

The architect is the built-in agent, which is not a model and takes the first option. Set THINKWELL_AGENT to
``claude``, ``codex``, ``gemini`` or ``opencode`` for one that thinks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from thinkwell import JsonSchema, open_agent
from thinkwell.listen import AgentProgress, AgentQuestion, Handlers

WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]


def choice(question: AgentQuestion) -> JsonSchema:
    """The schema of an answer: one of the options, if there are any."""
    return JsonSchema({"type": "string", **({"enum": question.options} if question.options else {})})


async def main() -> None:
    async with open_agent() as architect, open_agent(command=WORKER, protocol="ndjson") as worker:
        handlers = Handlers()

        @handlers.on("progress")
        async def tell(progress: AgentProgress) -> None:
            print(f"> {progress.message}")

        @handlers.on("question", by="architect")
        async def answer(question: AgentQuestion) -> str:
            task = architect.think(choice(question))
            # The author of the question must not influence the answer: the question is quoted.
            task = task.text("Choose what is best for this project.").quote(question.question)
            chosen = str(await task.run())
            print(f"{question.question} {chosen}.")
            return chosen

        @handlers.on("approval")
        def approve(_: object) -> bool:
            return False  # it may plan, but change nothing

        print(await worker.think().text("Move auth to JWT.").listen(handlers))


if __name__ == "__main__":
    anyio.run(main)
