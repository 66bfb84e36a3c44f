"""The wheel installs into an empty environment beside the official SDK, in either order, and both work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from published.conftest import in_environment, run

PROGRAM = """
import acp, anyio, thinkwell, thinkwell_acp
from thinkwell import open_agent

async def main():
    async with open_agent("builtin") as agent:
        return await agent.think(int).text("How many?").run()

assert acp.PROTOCOL_VERSION == 1
assert isinstance(anyio.run(main), int)
print(*(module.__file__ for module in (acp, thinkwell, thinkwell_acp)))
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "order", [("thinkwell", "agent-client-protocol"), ("agent-client-protocol", "thinkwell")]
)
def test_it_stands_beside_the_official_sdk(wheels: Path, tmp_path: Path, order: tuple[str, str]) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    python = in_environment(tmp_path / "env", "python")
    for name in order:
        pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
        run(*pip, "install", "--no-index", "--find-links", wheels, "--no-compile", name)
    run(sys.executable, "-m", "pip", "--python", python, "check")
    for file in run(python, "-I", "-c", PROGRAM).split():
        assert (tmp_path / "env").resolve() in Path(file).resolve().parents
