"""Names that an agent gives stay in the line that they are logged in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scripted import ScriptedAgent, Turn, scripted

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    import pytest

FORGED = "x\n2026-01-01 CRITICAL all is lost\x1b[2J"


class Forger(ScriptedAgent):
    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        return s.InitializeResponse(
            protocol_version=1,
            agent_capabilities=self.capabilities,
            agent_info=s.Implementation(name=FORGED, version="v" * 10_000),
        )

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        return s.NewSessionResponse(session_id=FORGED)


async def forge(turn: Turn) -> str:
    turn.update(s.ToolCallStart(tool_call_id=FORGED, title=FORGED, status="completed"))
    return FORGED


async def test_nothing_that_an_agent_calls_itself_makes_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    async with scripted(agent=Forger([forge])) as agent:
        stream = agent.think().text("x").stream()
        await stream.wait()
        stream.result.exception()
    lines = [record.getMessage() for record in caplog.records if record.name == "thinkwell"]
    assert [line for line in lines if "all is lost" in line]
    for line in lines:
        assert line.isprintable(), line
        assert len(line) < 500
