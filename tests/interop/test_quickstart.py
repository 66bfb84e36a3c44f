"""The quickstart against agents that this project did not write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
import pytest

from interop.agents import AGENTS, VENDOR_PREFIXES, Launch, NpmAgent
from interop.model_server import CallTool, ModelServer, Say, Think
from thinkwell import Message, Thought, ToolDone, open_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.interop

TIMEOUT = 120
"""Seconds for a whole run; the slowest agent seen needed seven."""


@dataclass
class Review:
    """What the agent is asked for."""

    summary: str
    score: int


@pytest.fixture
def models() -> Iterator[ModelServer]:
    """The model that every agent talks to: looks a word up, then returns the result."""
    steps = (
        Think("I should look the word up first."),
        Say("Looking it up."),
        CallTool("lookup", {"word": "sans-io"}),
        Think("Now I know what it means."),
        CallTool("return_result", {"summary": "A clean core.", "score": 7}),
        Say("The review is in."),
    )
    with ModelServer(*steps) as server:
        yield server


@pytest.fixture(params=AGENTS, ids=lambda agent: agent.name)
def launch(
    request: pytest.FixtureRequest, models: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Launch:
    """An installed agent, tied to the stand-in."""
    for name in [name for name in os.environ if name.startswith(VENDOR_PREFIXES)]:
        monkeypatch.delenv(name)
    agent = request.param
    assert isinstance(agent, NpmAgent)
    return agent.launch(home=tmp_path / "home", model_url=models.url)


@pytest.mark.parametrize("way", [None, "stdio"], ids=["as-advertised", "stdio"])
async def test_an_agent_calls_the_users_tool_and_returns_a_typed_result(
    launch: Launch, models: ModelServer, tmp_path: Path, way: Literal["stdio"] | None
) -> None:
    words: list[str] = []

    def lookup(word: str) -> str:
        """Look up what a word means."""
        words.append(word)
        return "without input or output"

    project = tmp_path / "project"
    project.mkdir()
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project, tools_via=way) as agent:
            stream = agent.think(Review).text("Review the core of this project.").tool(lookup).stream()
            events = [event async for event in stream]
            review = await stream.result
    assert review == Review(summary="A clean core.", score=7)
    assert words == ["sans-io"]
    thoughts = "".join(event.text for event in events if isinstance(event, Thought))
    assert "I should look the word up first." in thoughts
    assert "Now I know what it means." in thoughts
    text = "".join(event.text for event in events if isinstance(event, Message))
    assert "Looking it up." in text
    assert "The review is in." in text
    finished = [event for event in events if isinstance(event, ToolDone) and event.status == "completed"]
    assert len(finished) >= len(["lookup", "return_result"])
    assert models.remaining == ()
    with anyio.move_on_after(5):
        # What was killed may take a moment to be gone.
        while processes_of(tmp_path / "home"):  # noqa: ASYNC110 - no event tells of a grandchild
            await anyio.sleep(0.05)
    assert processes_of(tmp_path / "home") == []


def processes_of(home: Path) -> list[str]:
    """List what still runs with this home; empty where there is no /proc to look into."""
    mark = f"HOME={home}\0".encode()
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found
