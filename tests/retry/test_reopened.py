"""An agent that has ended is started again for the next try."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from retry.failing import EMPTY, NOW, known, opening, played

from thinkwell import AgentExited, open_agent
from thinkwell import events as ev
from thinkwell.testing import script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("warm_python")

ANSWER = script.says("42")


async def test_a_fallback_that_exits_is_started_again_too(tmp_path: Path) -> None:
    other = open_agent(known("second", played(script.crashes() + ANSWER.stops() + ANSWER).program(tmp_path)))
    async with opening(played(EMPTY, repeats=True), fallback=[other]) as agent:
        for retry in (NOW, None):
            stream = agent.think().text("Go").stream(retry=retry)
            assert await stream.result == "42"
            await stream.wait()
            assert stream.view.agent == "second"


async def test_an_agent_that_exits_is_started_again_for_the_next_try_in_the_folder_of_the_block(
    tmp_path: Path,
) -> None:
    @asynccontextmanager
    async def room() -> AsyncGenerator[Path]:  # opens once
        (folder := tmp_path / "room").mkdir()
        yield folder
        folder.rmdir()

    first, other = played(script.crashes() + EMPTY), played(ANSWER, repeats=True)
    profiles = [known("first", first.program(tmp_path)), known("second", other.program(tmp_path))]
    tries = list[tuple[str, str]]()
    async with open_agent(
        profiles[0], cwd=room(), fallback=profiles[1:], record=tmp_path / "run.jsonl"
    ) as agent:
        for retry in (NOW, None):
            stream = agent.think().text("Go").stream(include={"try_failed"}, retry=retry)
            assert await stream.result == "42"
            await stream.wait()
            tries += [(event.error, event.then) async for event in stream if isinstance(event, ev.TryFailed)]
    # Only a try starts it again: without one the agent has ended.
    assert tries == [("AgentExited", "retry"), ("QuotaExhausted", "fallback"), ("AgentExited", "fallback")]
    folders = [session.cwd for each in (first, other) for session in each.sent.sessions]
    assert folders == [str(tmp_path / "room")] * 4


@pytest.mark.parametrize("says", ["", '{"type": "progress", "message": "Writing a.py"}'])
async def test_a_program_that_writes_lines_is_started_again_as_long_as_it_has_said_nothing(says: str) -> None:
    program = f"input(); print({says!r}, flush=True); raise SystemExit(3)"
    async with open_agent(command=(sys.executable, "-c", program), protocol="ndjson") as agent:
        with pytest.raises(AgentExited) as caught:
            await agent.think().text("Go").run(retry=NOW)
    assert len(caught.value.tries) == (0 if says else 2)
