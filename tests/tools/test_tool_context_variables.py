"""A tool sees the context variables of the code that started the run: a request's id, a trace, a user."""

from __future__ import annotations

from contextvars import ContextVar

from thinkwell.testing import ScriptedAgent, ScriptedTurn, script
from thinkwell_acp import schema as s

user: ContextVar[str] = ContextVar("user", default="nobody")


def plain() -> str:
    """Say who it is."""
    return user.get()


async def coloured() -> str:
    """Say who it is."""
    return user.get()


async def ask(turn: ScriptedTurn) -> None:
    for name in ("plain", "coloured"):
        result = await turn.call(name)
        turn.update(s.AgentMessageChunk(content=s.TextContent(text=result.text + " ")))


async def test_tools_see_the_variables_of_the_run_that_offers_them() -> None:
    async with ScriptedAgent(script.does(ask), repeats=True).open() as agent:
        task = agent.think().text("Who?").tool(plain).tool(coloured)
        user.set("ada")
        ada = task.stream()
        user.set("grace")
        grace = task.stream()
        assert await ada.result == "ada ada "
        assert await grace.result == "grace grace "
        assert user.get() == "grace"
