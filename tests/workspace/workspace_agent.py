"""An agent in memory that asks for files and terminals of a workspace, with short words for its requests."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from scripted import Played, scripted

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from thinkwell import Agent, Workspace
    from thinkwell_acp import AgentSide


class Peer:
    """The agent's end, in one session."""

    def __init__(self, side: AgentSide, agent: Agent, session_id: str) -> None:
        self.side = side
        self._agent = agent
        self.session_id = session_id

    @asynccontextmanager
    async def session(self, cwd: str | Path) -> AsyncGenerator[Peer]:
        """Open another session."""
        async with self._agent.session(cwd=cwd) as session:
            assert session.id is not None
            yield Peer(self.side, self._agent, session.id)

    def unknown(self) -> Peer:
        """Return the agent's end of a session that nobody has opened."""
        return Peer(self.side, self._agent, "unknown")

    async def read(self, path: str | Path, line: int | None = None, limit: int | None = None) -> str:
        return (await self.answer(path, line, limit)).content

    async def answer(
        self, path: str | Path, line: int | None = None, limit: int | None = None
    ) -> s.ReadTextFileResponse:
        return await self.side.read_text_file(
            s.ReadTextFileRequest(session_id=self.session_id, path=str(path), line=line, limit=limit)
        )

    async def write(self, path: str | Path, content: str) -> s.WriteTextFileResponse:
        return await self.side.write_text_file(
            s.WriteTextFileRequest(session_id=self.session_id, path=str(path), content=content)
        )

    async def start(self, *args: str, cwd: str | None = None, command: str = sys.executable) -> str:
        request = s.CreateTerminalRequest(session_id=self.session_id, command=command, args=args, cwd=cwd)
        return (await self.side.create_terminal(request)).terminal_id

    async def output(self, terminal: str) -> str:
        """Everything that a command prints."""
        await self.side.wait_for_terminal_exit(
            s.WaitForTerminalExitRequest(session_id=self.session_id, terminal_id=terminal)
        )
        request = s.TerminalOutputRequest(session_id=self.session_id, terminal_id=terminal)
        return (await self.side.terminal_output(request)).output

    async def folder(self, cwd: str | None = None) -> str:
        """The folder in which a command runs."""
        terminal = await self.start("-P", command="/bin/pwd", cwd=cwd)
        folder = (await self.output(terminal)).removesuffix("\n")
        await self.side.release_terminal(
            s.ReleaseTerminalRequest(session_id=self.session_id, terminal_id=terminal)
        )
        return folder


@asynccontextmanager
async def agent(
    workspace: Workspace, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> AsyncGenerator[Peer]:
    """Open an agent with a workspace, and a session."""
    handler = Played([])
    with anyio.fail_after(60):
        async with (
            scripted(agent=handler, workspace=workspace, cwd=cwd or workspace.roots[0], env=env) as opened,
            opened.session() as session,
        ):
            assert session.id is not None
            yield Peer(handler.client, opened, session.id)
