"""The built-in agent as a process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import anyio

from thinkwell import open_agent
from thinkwell_acp import ClientHandler, connect, stdio_transport

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

COMMAND = (sys.executable, "-m", "thinkwell.builtin")


async def test_it_is_the_agent_that_open_agent_starts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("THINKWELL_AGENT", "THINKWELL_AGENT_CMD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    with anyio.fail_after(30):
        async with open_agent(cwd=project) as agent:
            assert agent.info is not None
            assert agent.info.name == "thinkwell-builtin"
            assert await agent.think(int).text("How many files are there?").run() == 2


async def test_it_leaves_by_itself_at_the_end_of_its_input() -> None:
    with anyio.fail_after(30):
        async with (
            stdio_transport(COMMAND, exit_grace=20) as transport,
            connect(transport, ClientHandler()) as client,
        ):
            await client.initialize()
        assert transport.exit_code == 0
        assert transport.stderr_tail == ""


def test_it_starts_light() -> None:
    heavy = ("pydantic", "jsonschema", "trio", "mcp", "acp", "urllib.request", "http.client", "unittest")
    code = (
        f"import sys, thinkwell.builtin.__main__; print([name for name in {heavy!r} if name in sys.modules])"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert finished.stdout.strip() == "[]"
