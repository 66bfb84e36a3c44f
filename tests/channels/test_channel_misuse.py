"""What a newcomer does wrong is said at once, in words, and does no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from kept_channels import Whole

from thinkwell.channels import AskingChannel, Delivery, DeliverySettings, OutcomeChannel, deliver
from thinkwell.testing import ScriptedAgent, script, virtual_backend

if TYPE_CHECKING:
    from thinkwell.channels import Channel, ChannelQuestion
    from thinkwell.testing import Script
    from thinkwell.testing._virtual import Backend


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


async def delivered(played: Script, channel: Channel, settings: DeliverySettings | None = None) -> Delivery:
    with anyio.fail_after(100_000):
        async with ScriptedAgent(played).open(permissions="ask", question_timeout=60) as agent:
            return await deliver(agent.think().text("Go.").stream(), channel, "ann", settings=settings)


# Questions


class Answering(Whole):
    """Has an answer, and does not want to know what becomes of it."""

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        await self.call("ask", question.code)
        return "y"


async def test_a_channel_that_only_asks_is_asked() -> None:
    channel = Answering()
    assert isinstance(channel, AskingChannel)
    assert not isinstance(channel, OutcomeChannel)
    delivery = await delivered(script.asks("Clean", input={"command": "rm"}).says("Done."), channel)
    assert channel.told == [("ask", "rm"), ("send", "Done.")]
    assert (delivery.status, delivery.channel_errors) == ("completed", ())
