"""Receive an agent's messages while it works, and answer its questions, with typed functions.

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

A message has a type: ``progress``, ``question``, ``approval``, ``partial``, ``log``, finally ``result`` or
``error``, and any type that an NDJSON agent invents. Each type has at most one handler, which handles one
message after another, while reading from the agent continues. With ACP, messages are converted from the
agent's updates. A handler's return value is the answer; ``None`` leaves a question to the next handler.

A listener ends with the turn, when all earlier messages are handled. A handler that raises ends both.
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
