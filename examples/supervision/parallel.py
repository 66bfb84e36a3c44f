"""Two agents work in parallel under one supervisor.

python examples/supervision/parallel.py
"""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from thinkwell import Agent, JsonSchema, open_agent
from thinkwell.listen import AgentApproval, AgentQuestion, Handlers, Transcript

WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]
TASKS = ("Move auth to JWT.", "Move billing to JWT.")


def choice(question: AgentQuestion) -> JsonSchema:
    """The schema of an answer: one of the options, if there are any."""
    return JsonSchema({"type": "string", **({"enum": question.options} if question.options else {})})


async def work(worker: Agent, task: str, handlers: Handlers) -> None:
    print(await worker.think().text(task).listen(handlers))


async def main() -> None:
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)  # one for both: each run is handled separately
    async with AsyncExitStack() as stack:
        supervisor = await stack.enter_async_context(open_agent())
        workers = [
            await stack.enter_async_context(open_agent(command=WORKER, protocol="ndjson")) for _ in TASKS
        ]

        @handlers.on("question", by="supervisor")
        async def answer(question: AgentQuestion) -> str:
            task = supervisor.think(choice(question))
            return str(await task.text("Choose what is best.").quote(question.question).run())

        @handlers.on("approval", by="supervisor")
        def approve(approval: AgentApproval) -> bool:
            return approval.risk_level == "low"

        async with anyio.create_task_group() as tasks:
            for worker, task in zip(workers, TASKS, strict=True):
                tasks.start_soon(work, worker, task, handlers)
    for run_id in sorted({record.run_id for record in transcript}):
        print(f"{run_id}: {sum(record.run_id == run_id for record in transcript)} answers")


if __name__ == "__main__":
    anyio.run(main)
