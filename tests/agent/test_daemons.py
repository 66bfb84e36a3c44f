"""What an agent leaves in the background ends with its block, unless that is not wanted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import pytest
from daemons import DAEMON, ON_LINUX, ends, number_in, number_told_in
from lines.program import PRELUDE, started
from scripted import Turn, scripted

from thinkwell import McpStdio, Workspace, login, open_agent, sync
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = ON_LINUX

KEEPING = pytest.mark.parametrize("keep_daemons", [False, True])


def leaves_a_daemon(file: Path) -> str:
    """A program that speaks lines."""
    return (
        f"import subprocess\nhear(); subprocess.run({[*DAEMON, str(file)]!r}); say('result', text='done')\n"
    )


@KEEPING
async def test_an_agents_daemon(tmp_path: Path, keep_daemons: bool) -> None:
    source = leaves_a_daemon(tmp_path / "daemon") + "hear()"
    async with started(tmp_path, source, keep_daemons=keep_daemons) as agent:
        await agent.think().text("Go").run()
        daemon = await number_in(tmp_path / "daemon")
    assert await ends(daemon) is not keep_daemons


@KEEPING
async def test_an_agents_daemon_without_async(tmp_path: Path, keep_daemons: bool) -> None:
    program = tmp_path / "program.py"
    program.write_text(PRELUDE + leaves_a_daemon(tmp_path / "daemon") + "hear()")

    def opens() -> int:
        command = [sys.executable, str(program)]
        with sync.open_agent(command=command, protocol="ndjson", keep_daemons=keep_daemons) as agent:
            agent.think().text("Go").run()
            return anyio.from_thread.run(number_in, tmp_path / "daemon")

    daemon = await anyio.to_thread.run_sync(opens)
    assert await ends(daemon) is not keep_daemons


@KEEPING
async def test_a_daemon_of_the_workspaces_commands(tmp_path: Path, keep_daemons: bool) -> None:
    async def runs(turn: Turn) -> None:
        request = s.CreateTerminalRequest(
            session_id=turn.session_id, command=DAEMON[0], args=(*DAEMON[1:], str(tmp_path / "daemon"))
        )
        terminal = (await turn.client.create_terminal(request)).terminal_id
        await turn.client.wait_for_terminal_exit(
            s.WaitForTerminalExitRequest(session_id=turn.session_id, terminal_id=terminal)
        )

    workspace = Workspace(tmp_path, terminal=True)
    async with scripted(
        runs, cwd=tmp_path, workspace=workspace, permissions="allow", keep_daemons=keep_daemons
    ) as agent:
        await agent.think().text("Go").run()
        daemon = await number_in(tmp_path / "daemon")
    assert await ends(daemon) is not keep_daemons


async def test_a_daemon_of_an_mcp_server_of_the_agents(tmp_path: Path) -> None:
    """It gets little of the agent's environment, and ends as soon as the agent gives up its server."""
    server = McpStdio("leaves", [*DAEMON, str(tmp_path / "daemon")])
    async with open_agent("builtin", mcp_servers=[server]) as agent, agent.session():
        daemon = await number_told_in(tmp_path / "daemon")
    assert await ends(daemon)


async def test_the_browser_of_a_login_stays(tmp_path: Path) -> None:
    (tmp_path / "displayed").touch()
    command = [sys.executable, "tests/login/programs/login_agent.py", "browser"]
    await login(command=command, env={"LOGIN_TOKEN": str(tmp_path / "token")})
    assert not await ends(int((tmp_path / "window").read_text()))
