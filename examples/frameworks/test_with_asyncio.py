"""Tests with pytest-asyncio: `pytest examples/frameworks/test_with_asyncio.py`."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from thinkwell import Agent
from thinkwell.testing import ScriptedAgent, script


async def greeting(agent: Agent, name: str) -> str:
    """What is tested."""
    return await agent.think().text(f"Greet {name}.").run()


@pytest_asyncio.fixture
async def agent() -> AsyncIterator[Agent]:
    async with ScriptedAgent(script.says("Hello, Ada.")).open() as agent:
        yield agent


@pytest.mark.asyncio
async def test_a_greeting(agent: Agent) -> None:
    assert await greeting(agent, "Ada") == "Hello, Ada."
