"""Tests with pytest-trio: `pytest examples/frameworks/test_with_trio.py`."""

from collections.abc import AsyncIterator

import pytest

from thinkwell import Agent
from thinkwell.testing import ScriptedAgent, script


async def greeting(agent: Agent, name: str) -> str:
    """What is tested."""
    return await agent.think().text(f"Greet {name}.").run()


@pytest.fixture
async def agent() -> AsyncIterator[Agent]:
    async with ScriptedAgent(script.says("Hello, Ada.")).open() as agent:
        yield agent


@pytest.mark.trio
async def test_a_greeting(agent: Agent) -> None:
    assert await greeting(agent, "Ada") == "Hello, Ada."
