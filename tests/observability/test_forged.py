"""Names that an agent gives stay in the line that they are logged in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scripted import Played, scripted

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    import pytest

FORGED = "x\n2026-01-01 CRITICAL all is lost\x1b[2J"


class Forger(Played):
    def __init__(self) -> None:
        super().__init__(
            info=s.Implementation(name=FORGED, version="v" * 10_000),
            answers={"session/new": self.forge_session, "session/prompt": self.forge},
        )

    async def forge_session(self, _request: object, _proceed: object) -> s.NewSessionResponse:
        return s.NewSessionResponse(session_id=FORGED)

    async def forge(self, _request: object, _proceed: object) -> s.PromptResponse:
        self.client.update(FORGED, s.ToolCallStart(tool_call_id=FORGED, title=FORGED, status="completed"))
        return s.PromptResponse(stop_reason=FORGED)


async def test_nothing_that_an_agent_calls_itself_makes_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    async with scripted(agent=Forger()) as agent:
        stream = agent.think().text("x").stream()
        await stream.wait()
        stream.result.exception()
    lines = [record.getMessage() for record in caplog.records if record.name == "thinkwell"]
    assert [line for line in lines if "all is lost" in line]
    for line in lines:
        assert line.isprintable(), line
        assert len(line) < 500
