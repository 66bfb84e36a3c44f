"""What a delivery to Telegram took: times are those at which people could read something."""

from __future__ import annotations

import anyio
import pytest
from bot_api.values import Trouble
from telegram_stage import staged

from thinkwell.channels import deliver
from thinkwell.testing import ScriptedAgent, script

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(("drafts", "method"), [(False, "sendMessage"), (True, "sendMessageDraft")])
async def test_the_first_delivery_is_when_telegram_has_the_first_message(drafts: bool, method: str) -> None:
    async with staged(drafts=drafts) as stage, ScriptedAgent(script.says("Hello").pauses(30)).open() as agent:
        stage.api.trouble(method, Trouble.unreachable(), Trouble.slow(4))
        delivery = await deliver(agent.think().text("Go.").stream(), stage.channel, "7")
        assert delivery.metrics.first_delivery is not None
        assert 5 < delivery.metrics.first_delivery < 8
        assert delivery.metrics.total == pytest.approx(30, abs=2)


async def test_a_message_at_the_end_counts_too() -> None:
    async with staged() as stage:
        await stage.channel.send("7", "Hello")
        first = stage.channel.counts("7").first_delivery
        assert first is not None
        assert first < 1


async def test_the_bot_types_until_there_is_an_answer() -> None:
    async with staged() as stage:
        stage.api.trouble("sendChatAction", Trouble.throttled(9))
        with anyio.move_on_after(20):
            await stage.channel.show_typing("7")
        began = stage.api.typing[0].at
        assert [round(call.at - began, 1) for call in stage.api.typing] == [0, 9, 13.5, 18]
        await stage.settled()
