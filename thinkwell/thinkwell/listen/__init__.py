"""Hear what an agent says while it works, and answer what it asks: by typed functions.

::

    handlers = Handlers()

    @handlers.on("progress")
    async def show(progress: AgentProgress) -> None:
        print(progress.message)

    @handlers.on("question")
    async def decide(question: AgentQuestion) -> str:
        return await architect.think().text("Answer this question.").quote(question.question).run()

    @handlers.on("approval")
    async def approve(approval: AgentApproval) -> bool | str:
        return True if approval.command == "make test" else "nothing but the tests may be run"

    report = await agent.think(Report).text("Move auth to JWT").listen(handlers)

A message has a type: ``progress``, ``question``, ``approval``, ``partial``, ``log``, at last ``result`` or
``error``, and whatever agents that speak lines invent. Each type has one handler at most, which handles one
message after another, while the agent is read on. Over ACP, messages are made of what the agent sends in
other forms. What a handler returns is the answer; ``None`` leaves a question to those who are asked next.

A listen ends with the turn, when everything before that is handled. A handler that raises ends both.
"""

from __future__ import annotations

from thinkwell.listen._handlers import Handlers, listen
from thinkwell.listen._messages import (
    AgentApproval,
    AgentFailure,
    AgentLog,
    AgentPartial,
    AgentProgress,
    AgentQuestion,
    AgentResult,
)
from thinkwell.listen._middleware import InitRefused, serve_lines
from thinkwell.listen._transcript import Record, Transcript

__all__ = (
    "AgentApproval",
    "AgentFailure",
    "AgentLog",
    "AgentPartial",
    "AgentProgress",
    "AgentQuestion",
    "AgentResult",
    "Handlers",
    "InitRefused",
    "Record",
    "Transcript",
    "listen",
    "serve_lines",
)
