"""A Telegram channel while an answer is written: what people see of it, and when."""

from __future__ import annotations

import pytest
from limits.virtual import Backend, virtual_backend
from telegram_stage import CURSOR, staged

from thinkwell.channels import deliver
from thinkwell.testing import ScriptedAgent, script


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


async def test_an_answer_grows_and_ends_clean() -> None:
    async with staged() as stage:
        played = script.says("Hello").pauses(3).says(" there").pauses(3).says(", Ada.")
        async with ScriptedAgent(played).open() as agent:
            delivery = await deliver(agent.think().text("Hi").stream(), stage.channel, "7")
        assert delivery.streamed
        assert stage.chat.texts == ["Hello there, Ada."]
        told = [version.text for version in stage.post.history]
        assert told == [f"Hello{CURSOR}", f"Hello there{CURSOR}", "Hello there, Ada."]
        assert stage.post.markup is None
        assert stage.idle
    assert stage.api.refused == []
    assert stage.api.throttled == 0
