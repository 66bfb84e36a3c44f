"""An agent made of the official SDK's agent side, that works through its client's files and terminals."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import acp  # noqa: TID251 - the peer to be tested against
from acp import schema as a  # noqa: TID251 - the peer to be tested against


class Agent:
    """Copies a file, reads what it must not, and runs a command."""

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **offered: Any) -> a.InitializeResponse:
        self.offered = offered["client_capabilities"]
        return a.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> a.NewSessionResponse:
        self.cwd = cwd
        return a.NewSessionResponse(session_id="s1")

    async def prompt(self, session_id: str, **_: Any) -> a.PromptResponse:
        client, cwd = self.client, self.cwd
        text = (await client.read_text_file(session_id, f"{cwd}/in.txt", line=2, limit=1)).content
        await client.write_text_file(session_id, f"{cwd}/made/out.txt", text.upper())
        outside: list[int] = []
        for path in ("/etc/passwd", f"{cwd}/../secret.txt", f"{cwd}/missing.txt"):
            try:
                await client.read_text_file(session_id, path)
            except acp.RequestError as exc:
                outside.append(exc.code)
        terminal = (await client.create_terminal(session_id, "cat", ["made/out.txt"], cwd=cwd)).terminal_id
        ended = await client.wait_for_terminal_exit(session_id, terminal)
        printed = await client.terminal_output(session_id, terminal)
        await client.kill_terminal(session_id, terminal)
        await client.release_terminal(session_id, terminal)
        told = {
            "read": text,
            "outside": outside,
            "printed": printed.output,
            "exit": ended.exit_code,
            "fs": [self.offered.fs.read_text_file, self.offered.fs.write_text_file],
            "terminal": self.offered.terminal,
        }
        await client.session_update(session_id, acp.update_agent_message_text(json.dumps(told)))
        return a.PromptResponse(stop_reason="end_turn")

    async def close_session(self, session_id: str, **_: Any) -> None:
        return None


asyncio.run(acp.run_agent(Agent()))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - not all of it
