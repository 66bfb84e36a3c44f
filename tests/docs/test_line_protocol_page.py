"""The conversation that the reference shows is what a program and thinkwell say to each other."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from docs.pages import DOCS

from thinkwell import AgentReported, open_agent
from thinkwell.listen import AgentApproval, AgentProgress, AgentQuestion, Handlers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

CONVERSATION = re.compile(r"^## A conversation\n.*?^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)

PLAYER = """
import sys
for line in open("conversation.txt", encoding="utf-8"):
    side, said = line[0], line[2:]
    if side == "<":
        print(said, end="", flush=True)
    elif (heard := sys.stdin.readline()) != said:
        sys.exit(f"heard {heard!r} and not {said!r}")
sys.stdin.read()
"""


async def test_the_conversation_of_the_reference_takes_place(tmp_path: Path) -> None:
    found = CONVERSATION.search((DOCS / "reference" / "lines.md").read_text("utf-8"))
    assert found is not None
    (tmp_path / "conversation.txt").write_text(found[1], "utf-8")
    handlers = Handlers()
    heard: list[object] = []

    @handlers.on("progress")
    def note(progress: AgentProgress) -> None:
        heard.append(progress)

    @handlers.on("question")
    def choose(question: AgentQuestion) -> str:
        assert question.options is not None
        return question.options[0]

    @handlers.on("approval")
    def approve(approval: AgentApproval) -> bool:
        return approval.risk_level == "medium"

    command = [sys.executable, "-c", PLAYER]
    with anyio.fail_after(30):
        async with open_agent(
            command=command, protocol="ndjson", init={"style": "short"}, cwd=tmp_path
        ) as agent:
            done = await agent.think().text("Refactor auth to JWT").listen(handlers)
            with pytest.raises(AgentReported, match="pytest is not installed"):
                await agent.think().text("Add tests for it").run()
            assert agent.info is not None
            assert agent.info.version == "1.2"
    assert done == "Done: 12 files."
    assert heard == [AgentProgress(message="Reading 12 files", percent=10, stage="read")]
