"""Questions go to the agent for their topic: security, tests, and one for the rest.

python examples/supervision/specialists.py
"""

from __future__ import annotations

import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from thinkwell import Agent, JsonSchema, Reply, open_agent
from thinkwell.listen import AgentQuestion, Handlers

WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]

TOPICS = {
    "security": re.compile(r"\b(security|secret|token|password|auth)", re.IGNORECASE),
    "tests": re.compile(r"\btest", re.IGNORECASE),
}
"""A question belongs to the first topic with one of its words."""

ROLES = {
    "security": "You answer for security. Choose what leaves an attacker the least.",
    "tests": "You answer for tests. Choose what finds the most mistakes.",
    "architect": "You answer for the design. Choose what is simplest to change later.",
}


def topic_of(question: str) -> str:
    return next((topic for topic, words in TOPICS.items() if words.search(question)), "architect")


def choice(question: AgentQuestion) -> JsonSchema:
    """The schema of an answer: one of the options, if there are any."""
    return JsonSchema({"type": "string", **({"enum": question.options} if question.options else {})})


async def main() -> None:
    async with AsyncExitStack() as stack:
        specialists: dict[str, Agent] = {}
        for name in ROLES:  # any agent for each: open_agent("claude"), open_agent("codex")
            specialists[name] = await stack.enter_async_context(open_agent())
        worker = await stack.enter_async_context(open_agent(command=WORKER, protocol="ndjson"))

        handlers = Handlers()

        @handlers.on("question")
        async def answer(question: AgentQuestion) -> Reply:
            who = topic_of(question.question)
            task = specialists[who].think(choice(question))
            chosen = str(await task.text(ROLES[who]).quote(question.question).run())
            print(f"{who}: {question.question} {chosen}.")
            return Reply(chosen, f"{who} was asked, because of its topic", by=who)

        print(await worker.think().text("Move auth to JWT.").listen(handlers))


if __name__ == "__main__":
    anyio.run(main)
