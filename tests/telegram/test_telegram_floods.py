"""What tries the patience of a bot: crowds, floods, texts of megabytes, a slow Telegram, and addresses that
tell too much."""

from __future__ import annotations

import sys
import traceback
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import anyio
import httpx
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import MemoryTransport
from bot_api.values import Trouble
from echoing import Echo
from limits.virtual import Stopwatch
from telegram_stage import PATIENCE, Stage, delivered, same_text, staged

from thinkwell.channels import Delivery, DeliveryFailed, DeliverySettings, MessageRouter, deliver
from thinkwell.channels.telegram import TelegramChannel, serve
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import FrameType

pytestmark = pytest.mark.virtual_time

GROUP = -5


@asynccontextmanager
async def answering(echo: Echo) -> AsyncGenerator[tuple[Stage, list[Delivery], anyio.CancelScope]]:
    """Run a bot for the time of a block; the scope is around it, and nothing else."""
    deliveries: list[Delivery] = []
    scope = anyio.CancelScope()
    ended = anyio.Event()

    async with staged() as stage, MessageRouter(echo.open) as router:

        def tell(delivery: Delivery) -> None:
            deliveries.append(delivery)
            stage.api.bell.ring()

        async def bot() -> None:
            with scope:
                await serve(stage.channel, router, on_delivery=tell)
            ended.set()

        stage.tasks.start_soon(bot)
        await stage.until(lambda: stage.api.polled)
        yield stage, deliveries, scope
        scope.cancel()
        with anyio.fail_after(PATIENCE):
            await ended.wait()


# Crowds and floods


async def test_a_crowd_of_strangers_does_not_hold_up_an_answer() -> None:
    async with staged() as stage:
        stage.listen()
        group = stage.api.group(GROUP)
        for number in range(100):
            stage.api.user(1_000 + number).says("@test_bot Hello?", chat=group)
        await stage.until(lambda: len(group.messages) == 1)
        watch = Stopwatch()
        delivery = await delivered(stage, script.says("One."), str(GROUP))
        assert watch.seconds < 10
        assert delivery.channel_errors == ()
        refusal, answer = group.texts
        assert refusal.endswith("your number: 1000")
        assert answer == "One."


async def test_strangers_of_a_group_are_told_one_after_the_other() -> None:
    async with staged() as stage:
        stage.listen()
        group = stage.api.group(GROUP)
        strangers = [stage.api.user(id_) for id_ in (1_000, 1_001)]
        for _ in range(3):
            for stranger in strangers:
                stranger.says("@test_bot Hello?", chat=group)
            await anyio.sleep(61)
        assert [text[-4:] for text in group.texts] == ["1000", "1001"]


@pytest.mark.parametrize("text", ["Hello", "/help"])
async def test_a_person_who_writes_too_much_gets_the_answer_all_the_same(text: str) -> None:
    async with answering(Echo(30)) as (stage, deliveries, _):
        watch = Stopwatch()
        stage.ada.says("Hello")
        for _ in range(300):
            stage.ada.says(text)
        await stage.until(lambda: len(deliveries) == 1)
        assert watch.seconds < 40
        assert deliveries[0].channel_errors == ()
        assert len(stage.chat.texts) < 20


async def test_what_is_said_beside_an_answer_may_be_said_again_later() -> None:
    async with staged() as stage:
        for _ in range(2):
            await stage.channel.notify("7", "Listen.")
        stage.api.trouble("sendMessage", Trouble.error(400))
        with pytest.raises(Exception, match="400"):
            await stage.channel.notify("7", "Listen.")
        await stage.channel.notify("7", "Listen.")
        assert stage.chat.texts == ["Listen."] * 3


# Texts of megabytes


def paragraphs(count: int) -> str:
    return "\n\n".join(f"{number}. " + "Lorem ipsum dolor sit amet. " * 8 for number in range(count)).strip()


LONG = paragraphs(2_500)
"""A text of more than a hundred messages."""

SHORTER, LONGER = paragraphs(260), paragraphs(520)
"""Texts of so many messages that they take longer than the call of a channel may, by `BRIEF`; one is twice as
long as the other, and may take twice as much work, not four times."""

BRIEF = DeliverySettings(timeout=5)


class Reading:
    """Counts, in a block, how often functions of channels are given a whole text."""

    def __init__(self, text: str) -> None:
        self._length = len(text) * 0.9
        self.times = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and "channels" in frame.f_code.co_filename:
            given = frame.f_locals.values()
            self.times += any(isinstance(each, str) and len(each) > self._length for each in given)


@pytest.mark.long
async def test_a_very_long_answer_is_not_composed_for_each_of_its_messages() -> None:
    async def times_read(text: str) -> int:
        async with staged() as stage:
            with Reading(text) as reading:
                delivery = await delivered(stage, script.says(text), settings=BRIEF)
            assert len(delivery.channel_errors) == 1
            assert same_text(stage.chat.messages, text)
            assert len(stage.chat.messages) > 10
        return reading.times

    assert 0 < await times_read(LONGER) < 2.8 * await times_read(SHORTER)


@pytest.mark.long
async def test_an_agent_that_pours_out_text_does_not_have_it_read_at_every_edit() -> None:
    async def times_read(text: str) -> int:
        async with staged() as stage:
            with Reading(text) as reading:
                await delivered(stage, script.says(text).pauses(60).says("End.").pauses(60))
            assert len(stage.api.calls_of("sendMessage")) > 10
            assert same_text(stage.chat.messages, f"{text}End.")
        return reading.times

    assert 0 < await times_read(LONGER) < 2.8 * await times_read(SHORTER)


# A slow Telegram


async def test_a_message_whose_answer_takes_its_time_is_not_sent_twice() -> None:
    async with staged() as stage:
        stage.api.trouble("sendMessage", *[Trouble.slow(50)] * 10)
        delivery = await delivered(stage, script.says("One.").pauses(1).says(" Two."))
        assert delivery.channel_errors == ()
        assert stage.chat.texts == ["One. Two."]


async def test_it_is_logged_where_telegram_wants_silence_for_long(caplog: pytest.LogCaptureFixture) -> None:
    async with staged() as stage:
        stage.api.trouble("sendMessage", Trouble.throttled(30), Trouble.throttled(61))
        await stage.channel.send("7", "One.")
        assert stage.chat.texts == ["One."]
    (said,) = [record.getMessage() for record in caplog.records if record.name == "thinkwell"]
    assert said == (
        "Nothing is sent to the chat 7 for 61 s: "
        "Telegram, sendMessage: Too Many Requests: retry after 61 (429); wait 61 s"
    )


# The end


async def test_what_did_not_get_out_at_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with answering(Echo(1)) as (stage, _, scope):
        stage.ada.says(LONG)
        await stage.until(lambda: len(stage.chat.texts) > 5)
        watch = Stopwatch()
        scope.cancel()
    assert watch.seconds < 6
    assert "could not send everything within" in caplog.text


# The token


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_an_address_with_a_token_is_refused_and_not_repeated(scheme: str) -> None:
    with pytest.raises(ValueError, match="use only the part before /bot") as caught:
        TelegramChannel(TOKEN, base_url=f"{scheme}://telegram.example/bot{TOKEN}")
    assert TOKEN not in str(caught.value)


class Talkative(MemoryTransport):
    """A way to the server that fails, and says more than it should."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise OSError(f"cannot reach {request.url.raw_path!r}")


async def test_what_a_client_of_the_callers_says_is_told_without_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = TOKEN.partition(":")[2]
    async with (
        httpx.AsyncClient(transport=Talkative(BotApi())) as http,
        TelegramChannel(TOKEN, client=http) as channel,
        ScriptedAgent(script.says("Hello")).open() as agent,
    ):
        with pytest.raises(DeliveryFailed, match="OSError: cannot reach b'/bot42:…/sendMessage'") as caught:
            await deliver(agent.think().text("Go.").stream(), channel, "7")
    assert secret not in "".join(traceback.format_exception(caught.value))
    assert secret not in caplog.text
