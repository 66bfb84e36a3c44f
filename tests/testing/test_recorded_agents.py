"""An agent that does again what it did in a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from thinkwell import open_agent
from thinkwell.testing import RecordedAgent, ScriptedAgent, script

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def recording(tmp_path: Path) -> Path:
    """A recording of one turn."""
    played = ScriptedAgent(script.thinks("hm").says("Hello"))
    async with played.open(record=tmp_path / "run.ndjson", cwd=tmp_path) as agent:
        assert await agent.think().text("Hi").run() == "Hello"
    return tmp_path / "run.ndjson"


async def test_it_does_the_same_again_on_every_connection(recording: Path) -> None:
    recorded = RecordedAgent(recording)
    for _ in range(2):
        async with recorded.open() as agent:
            assert agent.name == "recorded"
            assert await agent.think().text("Hi").run() == "Hello"
    assert [prompt.text for prompt in recorded.sent.prompts] == ["Hi", "Hi"]


async def test_a_process_does_so_too(recording: Path) -> None:
    async with open_agent(command=RecordedAgent(recording).program()) as agent:
        assert await agent.think().text("Hi").run() == "Hello"


async def test_a_file_that_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RecordedAgent(tmp_path / "none")
