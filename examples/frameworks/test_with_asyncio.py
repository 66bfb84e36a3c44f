"""Tests with pytest-asyncio: `pytest examples/frameworks/test_with_asyncio.py`."""

import pytest

from thinkwell import Agent
from thinkwell.testing import ScriptedAgent, script


async def greeting(agent: Agent, name: str) -> str:
    """What is tested."""
    return await agent.think().text(f"Greet {name}.").run()


@pytest.fixture
def played() -> ScriptedAgent:
    return ScriptedAgent(script.says("Hello, Ada."))


@pytest.mark.asyncio
async def test_a_greeting(played: ScriptedAgent) -> None:
    async with played.open() as agent:  # here: pytest-asyncio ends a fixture in another task than it began in
        assert await greeting(agent, "Ada") == "Hello, Ada."
    assert "Greet Ada." in played.sent.prompts[0].text
