"""An agent made of the official SDK's agent side, that wants a login."""

from __future__ import annotations

import asyncio
from typing import Any

import acp  # noqa: TID251 - the peer to be tested against
from acp import schema as a  # noqa: TID251 - the peer to be tested against


class Agent:
    """Opens a session and answers once after each login."""

    def on_connect(self, conn: Any) -> None:
        self.client = conn
        self.logged_in = False

    async def initialize(self, protocol_version: int, **_: Any) -> a.InitializeResponse:
        return a.InitializeResponse(
            protocol_version=protocol_version,
            auth_methods=[a.AuthMethodAgent(id="key", name="Key")],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        assert method_id == "key"
        self.logged_in = True

    def check(self) -> None:
        if not self.logged_in:
            raise acp.RequestError.auth_required({"why": "the key has expired"})

    async def new_session(self, cwd: str, **_: Any) -> a.NewSessionResponse:
        self.check()
        return a.NewSessionResponse(session_id="s1")

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> a.PromptResponse:
        self.check()
        self.logged_in = False
        await self.client.session_update(session_id, acp.update_agent_message_text("done"))
        return a.PromptResponse(stop_reason="end_turn")


asyncio.run(acp.run_agent(Agent()))  # type: ignore[arg-type]
