"""What the tests with real agents share."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from interop.agents import (
    CACHE,
    CLAUDE_CUT_OFF,
    CLAUDE_DIRECT,
    CODEX,
    CODEX_ASKING,
    CODEX_CUT_OFF,
    GEMINI,
    GEMINI_CUT_OFF,
    OPENCODE,
    OPENCODE_ASKING,
    OPENCODE_CUT_OFF,
)
from interop.model_server import CallTool
from thinkwell.agents import Npx, find_agent
from thinkwell.doctor import diagnose

if TYPE_CHECKING:
    from interop.agents import AgentRecipe, Launch
    from thinkwell.doctor import Diagnosis

__all__ = (
    "ASKING",
    "CUT_OFF",
    "NPM",
    "PLAIN",
    "TIMEOUT",
    "examined",
    "fetch_for_npx",
    "nothing_runs",
    "pids_of",
    "processes_of",
    "shell",
)

TIMEOUT = 120
"""Seconds for a whole test; the slowest agent seen needed fifteen."""

PLAIN = (CLAUDE_DIRECT, OPENCODE, GEMINI, CODEX)
"""Each agent once, for what does not depend on its settings."""

ASKING = (CLAUDE_DIRECT, OPENCODE_ASKING, GEMINI, CODEX_ASKING)
"""Each agent once, so that it asks before it runs a command."""

CUT_OFF = (CLAUDE_CUT_OFF, OPENCODE_CUT_OFF, GEMINI_CUT_OFF, CODEX_CUT_OFF)
"""Each agent once, set up so that our tools do not reach it."""

NPM = {"npm_config_cache": str(CACHE / "npm"), "npm_config_update_notifier": "false"}
"""Variables that say where npx keeps what it has installed."""


def fetch_for_npx(recipe: AgentRecipe) -> None:
    """Have npx find the agent by its profile later, without a network."""
    npx = find_agent(recipe.profile).launch
    assert isinstance(npx, Npx)
    npm = shutil.which("npm")
    assert npm is not None
    command = [npm, "exec", "--yes", f"--package={npx.spec}", "--", "node", "--version"]
    # Scripts of packages leave files where temporary ones go.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        env = {**os.environ, **NPM, "TMPDIR": temporary}
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)


def shell(recipe: AgentRecipe, command: str) -> CallTool:
    """Return the step that has an agent run a command by its own tool."""
    return CallTool(*recipe.shell_call(command))


async def examined(launch: Launch, folder: Path, *, prompt: bool) -> Diagnosis:
    """Have the doctor look at an agent."""
    with anyio.fail_after(5 * TIMEOUT):
        return await diagnose(
            command=launch.command, env=launch.env, cwd=folder, startup_timeout=TIMEOUT, prompt=prompt
        )


async def nothing_runs(home: Path) -> None:
    """Check that no process of the agent is left."""
    with anyio.move_on_after(5):
        # What was killed may take a moment to be gone.
        while processes_of(home):  # noqa: ASYNC110 - no event tells of a grandchild
            await anyio.sleep(0.05)
    assert processes_of(home) == []


def processes_of(home: Path) -> list[str]:
    """List what still runs with this home; empty where there is no /proc to look into."""
    return [*pids_of(home).values()]


def pids_of(home: Path) -> dict[int, str]:
    """Map the ids of what still runs with this home to the command lines."""
    mark = f"HOME={home}\0".encode()
    found: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found
