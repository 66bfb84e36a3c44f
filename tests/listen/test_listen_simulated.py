"""Handlers of agents that stall, lie and die: nothing hangs, and nothing but what may be raised is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from suite.tiers import few

from thinkwell import ThinkwellError
from thinkwell.listen import AgentApproval, AgentQuestion, Handlers, Transcript
from thinkwell.testing import ScriptedAgent, script, simulate

if TYPE_CHECKING:
    from thinkwell.testing import Simulation

ALG = {"type": "object", "properties": {"alg": {"type": "string", "enum": ["RS256", "HS256"]}}}
TOLD = (
    script.plans("Look", "Write", done=1)
    .uses("Read")
    .asks_form("Which?", ALG)
    .pauses(30)
    .asks("Write a.py", kind="edit")
    .says("Half. ")
    .asks("Write b.py", kind="edit")
    .says("Done")
)


async def supervised(simulation: Simulation) -> None:
    """Listen to two runs at once, with handlers that take their time, and sometimes too much."""
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)
    handled: list[str] = []

    @handlers.on("progress", concurrency=2)
    async def note(fields: dict[str, Any]) -> None:
        await anyio.sleep(fields.get("percent", 3))
        handled.append(fields["message"])

    @handlers.on("question")
    async def answer(question: AgentQuestion) -> str:
        await anyio.sleep(20)
        return "RS256"

    @handlers.on("approval", timeout=10)
    async def approve(approval: AgentApproval) -> bool:
        await anyio.sleep(5 if "a.py" in approval.description else 50)
        return True

    @handlers.on("partial")
    async def read(fields: dict[str, Any]) -> None:
        if simulation.seed % 5 == 4:
            raise KeyError("partial")

    async def run(limit: float | None) -> None:
        began = anyio.current_time()
        try:
            async with simulation.open(ScriptedAgent(TOLD), permissions="ask") as agent:
                await agent.think().text("Go").listen(handlers, timeout=limit)
            outcome = "a result"
        except (ThinkwellError, KeyError) as exc:
            outcome = type(exc).__name__
        simulation.note(outcome)
        simulation.count(outcome)
        took = anyio.current_time() - began
        simulation.check("a listen ends", took < 600, f"it took {took} s")

    async with anyio.create_task_group() as group:
        group.start_soon(run, None)
        group.start_soon(run, 100)
    ids = [(record.run_id, record.question_id) for record in transcript]
    simulation.check("each question ends once", len(ids) == len(set(ids)), f"{ids}")


@pytest.mark.draws
def test_handlers_of_agents_that_stall_lie_and_die() -> None:
    report = simulate(supervised, seeds=few(20))
    assert report.runs == 2 * few(20)
    assert report.noted["a result"]
    assert report.noted["KeyError"]
