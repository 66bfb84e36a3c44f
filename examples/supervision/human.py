"""Programs answer what they can, and the user is asked for the rest.

    python examples/supervision/human.py

Here the user is at the terminal. In a program with a display, pass ``on_question=wait_for_answer``: the rest
then waits for ``stream.answer``, and `thinkwell.progress.show` asks with a key.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from thinkwell import Answer, Question, open_agent
from thinkwell.listen import AgentApproval, AgentQuestion, Handlers
from thinkwell.questions import FormQuestion

WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]

handlers = Handlers()


@handlers.on("question")
def answer(question: AgentQuestion) -> str | None:
    if question.options and "tests" in question.question:
        return question.options[0]
    return None  # the next handler decides


@handlers.on("approval")
def approve(approval: AgentApproval) -> bool | None:
    return True if approval.risk_level == "low" else None


def person(question: Question) -> Answer:
    """Ask the user at the terminal. It is not an ``async`` function, so it may block; it runs in a thread."""
    try:
        said = input(f"{question.title} ").strip()
    except EOFError:
        return False  # there is no one to ask
    if isinstance(question, FormQuestion):
        return {question.fields[-1].name: said} if said else "decline"  # the last field takes any text
    return said.lower() in ("y", "yes")


async def main() -> None:
    async with open_agent(command=WORKER, protocol="ndjson", on_question=person) as worker:
        print(await worker.think().text("Move auth to JWT.").listen(handlers))


if __name__ == "__main__":
    anyio.run(main)
