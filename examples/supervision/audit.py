"""Keep a record of questions: the answer, who gave it, why, and how long it took.

python examples/supervision/audit.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from thinkwell import open_agent
from thinkwell.listen import AgentApproval, AgentQuestion, Handlers, Transcript

WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]

transcript = Transcript()
handlers = Handlers(transcript=transcript)


@handlers.on("question", by="first-option")
def answer(question: AgentQuestion) -> str | None:
    return question.options[0] if question.options else None


@handlers.on("approval", by="low-risk-only")
def approve(approval: AgentApproval) -> bool:
    return approval.risk_level == "low"


async def main() -> None:
    async with open_agent(command=WORKER, protocol="ndjson") as worker:
        await worker.think().text("Move auth to JWT.").listen(handlers)
    for record in transcript:
        print(f"{record.kind}: {record.question} {record.answer} ({record.by}, {record.seconds:.1f} s)")
    transcript.save("audit.ndjson")  # one record a line
    assert Transcript.load("audit.ndjson") == transcript


if __name__ == "__main__":
    anyio.run(main)
