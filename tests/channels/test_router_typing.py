"""While an agent is started, a person sees that an answer is on its way."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from echoing import Echo
from kept_channels import Refused, Streamed

from thinkwell import open_agent
from thinkwell.channels import MessageRouter, TypingChannel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent

pytestmark = pytest.mark.virtual_time


class Typed(Streamed):
    """Shows that an answer is on its way."""

    error: Exception | None = None

    async def show_typing(self, user_id: str) -> None:
        await self.call("typing", user_id)
        if self.error is not None:
            raise self.error
        try:
            await anyio.sleep_forever()
        finally:
            self.told.append(("typed", user_id))


@asynccontextmanager
async def slow_agent() -> AsyncGenerator[Agent]:
    await anyio.sleep(20)
    async with Echo().open() as agent:
        yield agent


async def test_a_person_sees_that_an_answer_is_on_its_way() -> None:
    channel = Typed()
    assert isinstance(channel, TypingChannel)
    async with MessageRouter(slow_agent) as router:
        await router.handle_user_message("Hello", "ada", channel)
    methods = [method for method, _ in channel.told]
    assert methods[:3] == ["typing", "typed", "start"]
    assert methods.count("typing") == 1
    assert channel.told[0] == ("typing", "ada")
    assert channel.at[1] - channel.at[0] == pytest.approx(20, abs=1)


async def test_a_message_that_waits_for_its_turn_shows_typing_too() -> None:
    channel, other = Typed(), Typed()
    async with MessageRouter(slow_agent) as router, anyio.create_task_group() as tasks:
        tasks.start_soon(router.handle_user_message, "One", "ada", channel)
        await channel.until("typing")
        await router.handle_user_message("Two", "ada", other)
    assert other.ends == ["session-1: Two"]
    assert other.calls["typing"] == 1


async def test_a_channel_that_cannot_show_it_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    channel = Typed()
    channel.error = Refused("no typing")
    async with MessageRouter(slow_agent) as router:
        delivery = await router.handle_user_message("Hello", "ada", channel)
    assert delivery is not None
    assert delivery.streamed
    assert [record.getMessage() for record in caplog.records] == [
        "Channel Typed did not show that an answer is on its way: Refused: no typing"
    ]


async def test_it_ends_where_there_is_no_agent() -> None:
    channel = Typed()
    async with MessageRouter(lambda: open_agent(command=["/no/such/program"])) as router:
        delivery = await router.handle_user_message("Hello", "ada", channel)
    assert delivery is not None
    assert delivery.status == "failed"
    assert [method for method, _ in channel.told] == ["typing", "typed", "send"]
