"""What people write to the bot: who is heard, and what of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import MemoryTransport
from bot_api.values import Trouble
from telegram_stage import Stage, staged

from thinkwell.channels import (
    AskingChannel,
    CapableChannel,
    Channel,
    ChannelCapabilities,
    ConfiguredChannel,
    CountingChannel,
    DeliverySettings,
    HtmlChannel,
    NotifyingChannel,
    OutcomeChannel,
    StoppingChannel,
    StreamingChannel,
    ThinkingChannel,
    TypingChannel,
)
from thinkwell.channels.telegram import IncomingMessage, Sender, TelegramChannel, TelegramUnauthorized

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

pytestmark = pytest.mark.virtual_time


async def heard(stage: Stage, count: int) -> list[str]:
    """Return what was heard once there are so many."""
    await stage.until(lambda: len(stage.heard) >= count)
    return [message.text for message in stage.heard]


async def quiet(stage: Stage) -> None:
    """Wait until everything that people did was handled."""
    await stage.until(lambda: stage.api.polled and not stage.api.pending)
    await stage.settled()


# Messages


async def test_a_message_is_handed_over_with_where_its_answer_belongs() -> None:
    async with staged() as stage:
        stage.listen()
        post = stage.ada.says("Hello bot")
        await heard(stage, 1)
        assert stage.heard == [
            IncomingMessage(
                text="Hello bot",
                user_id="7",
                person=Sender(id=7, name="Ada"),
                chat="private",
                message_id=post.id,
            )
        ]


async def test_a_name_is_a_clean_line() -> None:
    api = BotApi()
    eve = api.user(9, "Eve\n\x1b[31m" + "x" * 500)
    async with (
        httpx.AsyncClient(transport=MemoryTransport(api)) as http,
        TelegramChannel(TOKEN, allowed=[9], client=http) as channel,
    ):
        eve.says("Hello")
        async for message in channel.messages():
            assert message.person.name.startswith("Eve xxx")
            assert len(message.person.name) == 80
            break


async def test_what_is_edited_empty_or_of_a_bot_is_no_message() -> None:
    async with staged(allowed=(7, 9)) as stage:
        stage.listen()
        await stage.until(lambda: stage.api.polled)
        post = stage.ada.says("Hello")
        stage.ada.edits(post, "Hello again")
        stage.ada.says("  \n ")
        chat = {"id": 7, "type": "private"}
        message = {"message_id": 99, "date": 1, "chat": chat, "text": "x"}
        bot = {"id": 9, "is_bot": True, "first_name": "Bot"}
        stage.api.update({"message": {**message, "from": bot}})
        stage.api.update({"message": message})
        channel = {"id": -9, "type": "channel", "title": "News"}
        ada = {"id": 7, "is_bot": False, "first_name": "Ada"}
        stage.api.update({"message": {**message, "chat": channel, "from": ada}})
        stage.ada.says("Bye")
        assert await heard(stage, 2) == ["Hello", "Bye"]
        await quiet(stage)
        assert stage.api.sent == []


async def test_what_is_no_text_is_refused_politely_and_not_too_often() -> None:
    async with staged() as stage:
        stage.listen()
        for _ in range(5):
            stage.ada.sends_photo("Look")
        await quiet(stage)
        assert stage.chat.texts == ["Sorry, I can only read texts."]
        await anyio.sleep(100)
        stage.ada.sends_photo()
        await quiet(stage)
        assert len(stage.chat.texts) == 2
        assert stage.heard == []


async def test_iterating_can_stop_and_go_on() -> None:
    async with staged() as stage:
        for text in ("One", "Two", "Three"):
            stage.ada.says(text)
        texts: list[str] = []
        for _ in range(3):
            async for message in stage.channel.messages():
                texts.append(message.text)
                break
        assert texts == ["One", "Two", "Three"]
        messages = stage.channel.messages()
        for _ in range(3):
            with anyio.move_on_after(5):
                await anext(messages)
        stage.ada.says("Four")
        assert (await anext(messages)).text == "Four"


async def test_one_iterator_runs_at_a_time() -> None:
    async with staged() as stage:
        stage.listen()
        await stage.until(lambda: stage.api.polled)
        with pytest.raises(anyio.BusyResourceError):
            await anext(stage.channel.messages())


async def test_what_was_handed_over_does_not_come_again() -> None:
    api = BotApi()
    ada = api.user(7)
    async with httpx.AsyncClient(transport=MemoryTransport(api)) as http:
        for text in ("One", "Two"):
            ada.says(text)
            async with TelegramChannel(TOKEN, allowed=[7], client=http) as channel:
                assert (await anext(channel.messages())).text == text
    assert api.pending == 0


# Who may


async def test_a_stranger_is_told_the_number_once_an_hour() -> None:
    async with staged() as stage:
        stage.listen()
        for _ in range(3):
            stage.bob.says("Hello?")
        await quiet(stage)
        (told,) = stage.bob.chat.texts
        assert told.startswith("Sorry, I only answer users whom my owner has allowed.")
        assert told.endswith("your number: 8")
        await anyio.sleep(3_601)
        stage.bob.says("Hello?")
        await quiet(stage)
        assert len(stage.bob.chat.texts) == 2
        assert stage.heard == []


@pytest.mark.long
async def test_strangers_without_end_cost_bounded_memory_and_messages() -> None:
    async with staged(limits=False) as stage:
        stage.listen()
        for id_ in range(100, 1_250):
            stage.api.user(id_).says("Hello?")
        await quiet(stage)
        assert len(stage.api.sent) == 1_000
        await anyio.sleep(3_601)
        stage.api.user(1_249).says("Hello?")
        await quiet(stage)
        assert len(stage.api.sent) == 1_001


async def test_people_are_refused_unless_the_owner_allows_them() -> None:
    async with staged(allowed=()) as stage:
        stage.listen()
        stage.ada.says("Hello?")
        await quiet(stage)
        assert stage.heard == []


NAMES: Collection[Any] = ["@ada", True, None, 7.0]


@pytest.mark.parametrize("name", NAMES)
def test_people_are_allowed_by_number(name: Any) -> None:
    with pytest.raises(TypeError, match="give users' numbers"):
        TelegramChannel(TOKEN, allowed=[name])


async def test_a_refusal_that_cannot_be_sent_does_no_harm() -> None:
    async with staged() as stage:
        stage.listen()
        stage.bob.says("Hello?")
        stage.bob.blocks()
        stage.ada.says("Hello")
        assert await heard(stage, 1) == ["Hello"]
        await quiet(stage)


# Groups


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("@test_bot what is this?", "what is this?"),
        ("@Test_Bot, what is this?", "what is this?"),
        ("what is this, @test_bot", "what is this,"),
        ("so\n@test_bot: what\n  is this?", "so\nwhat\n  is this?"),
        ("/help", "/help"),
        ("/help@test_bot me", "/help me"),
        ("/help@TEST_BOT", "/help"),
        ("/help @test_bot me", "/help me"),
        ("/help@other_bot", None),
        ("what is this?", None),
        ("mail me@test_bot.example", None),
        ("@test_bottom", None),
        ("@test_bot", None),
    ],
)
@pytest.mark.parametrize("reads_all", [False, True])
async def test_in_groups_what_is_meant_for_the_bot(text: str, meant: str | None, reads_all: bool) -> None:
    async with staged(reads_all=reads_all) as stage:
        stage.listen()
        group = stage.api.group(-5)
        stage.ada.says(text, chat=group)
        await quiet(stage)
        stage.ada.says("/end", chat=group)
        expected = ["/end"] if meant is None else [meant, "/end"]
        assert await heard(stage, len(expected)) == expected
        assert {(message.chat, message.user_id) for message in stage.heard} == {("group", "-5")}


@pytest.mark.parametrize(
    ("text", "meant"),
    [("/help@test_bot", "/help"), ("/help@other_bot", None), ("Tell @test_bot so", "Tell @test_bot so")],
)
async def test_in_private_chats_everything_is(text: str, meant: str | None) -> None:
    async with staged() as stage:
        stage.listen()
        stage.ada.says(text)
        stage.ada.says("/end")
        expected = ["/end"] if meant is None else [meant, "/end"]
        assert await heard(stage, len(expected)) == expected


async def test_replies_to_the_bot_are_meant_for_it() -> None:
    async with staged() as stage:
        stage.listen()
        group = stage.api.group(-5)
        await stage.channel.send("-5", "Hello all")
        own = stage.ada.says("not this", chat=group)
        stage.ada.says("nor this", chat=group, reply_to=own)
        stage.ada.says("this", chat=group, reply_to=group.messages[0])
        assert await heard(stage, 1) == ["this"]
        stage.ada.sends_photo(chat=group)
        stage.bob.says("this", chat=group, reply_to=group.messages[0])
        await quiet(stage)
        assert [text[:6] for text in group.texts] == ["Hello ", "Sorry,"]


async def test_in_a_topic_that_the_bot_has_opened_not_everything_is_a_reply() -> None:
    async with staged() as stage:
        stage.listen()
        await stage.until(lambda: stage.api.polled)
        message = {
            "message_id": 99,
            "date": 1,
            "chat": {"id": -1_000_000_000_005, "type": "supergroup", "is_forum": True},
            "from": {"id": 7, "is_bot": False, "first_name": "Ada"},
            "message_thread_id": 5,
            "is_topic_message": True,
            "text": "just talk",
            "reply_to_message": {"message_id": 5, "from": {"id": 42, "is_bot": True}},
        }
        stage.api.update({"message": message})
        stage.api.update({"message": {**message, "text": "/hey", "message_id": 100}})
        await heard(stage, 1)
        assert [(each.text, each.user_id) for each in stage.heard] == [("/hey", "-1000000000005:5")]


async def test_a_bot_without_a_name_is_not_mentioned() -> None:
    api = BotApi(username="")
    group = api.group(-5)
    ada = api.user(7)
    async with (
        httpx.AsyncClient(transport=MemoryTransport(api)) as http,
        TelegramChannel(TOKEN, allowed=[7], client=http) as channel,
    ):
        ada.says("a @ b", chat=group)
        ada.says("/end", chat=group)
        assert (await anext(channel.messages())).text == "/end"


# The bot


async def test_who_the_bot_is_is_asked_once_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async with staged() as stage:
        stage.api.trouble("getMe", Trouble.unreachable(), Trouble.throttled(9), Trouble.error(500))
        stage.listen()
        stage.ada.says("Hello")
        assert await heard(stage, 1) == ["Hello"]
        at = [round(call.at - stage.api.calls[0].at) for call in stage.api.calls_of("getMe")]
        assert at == [0, 1, 10, 14]
        assert (await stage.channel.bot()).username == "test_bot"
        assert len(stage.api.calls_of("getMe")) == 4
    assert "getMe failed; retrying in 9.0 s" in caplog.text


async def test_a_wrong_token_ends_the_iteration() -> None:
    api = BotApi()
    async with (
        httpx.AsyncClient(transport=MemoryTransport(api)) as http,
        TelegramChannel("43:x-token-of-nobody", client=http) as channel,
    ):
        with pytest.raises(TelegramUnauthorized):
            await anext(channel.messages())


def test_the_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN", raising=False)
    with pytest.raises(ValueError, match="set the environment variable TELEGRAM_BOT_TOKEN"):
        TelegramChannel()
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    assert TOKEN.partition(":")[2] not in repr(TelegramChannel())
    with pytest.raises(ValueError, match="set the environment variable"):
        TelegramChannel("")


async def test_a_flood_of_presses_is_taken_and_not_all_of_it_answered() -> None:
    async with staged() as stage:
        await stage.channel.send("7", "Hello")
        stage.post.history.append(stage.post.history[0])
        object.__setattr__(
            stage.post.history[-1], "markup", {"inline_keyboard": [[{"text": "x", "callback_data": "y"}]]}
        )
        queries = [stage.api.press(stage.post, "x") for _ in range(100)]
        stage.api.trouble("answerCallbackQuery", *[Trouble.slow(10)] * 100)
        stage.listen()
        await stage.until(lambda: stage.api.polled and not stage.api.pending)
        await anyio.sleep(30)
        answered = [query for query in queries if stage.api.query_answer(query) is not None]
        assert len(answered) == 32
        query = stage.api.press(stage.post, "x")
        await stage.until(lambda: stage.api.query_answer(query) is not None)


async def test_a_press_without_its_message_is_answered() -> None:
    async with staged() as stage:
        stage.listen()
        await stage.until(lambda: stage.api.polled)
        ada = {"id": 7, "is_bot": False, "first_name": "Ada"}
        for more in ({"data": "q:x:0"}, {"message": {"message_id": 1, "date": 0, "chat": {"id": 7}}}):
            stage.api.update({"callback_query": {"id": "1", "from": ada, "chat_instance": "1", **more}})
        await stage.until(lambda: len(stage.api.calls_of("answerCallbackQuery")) == 2)
        texts = {call.parameters["text"] for call in stage.api.calls_of("answerCallbackQuery")}
        assert texts == {"This has already ended."}


# What it declares


def test_what_the_channel_can_do_it_declares() -> None:
    channel = TelegramChannel(TOKEN)
    for protocol in (
        AskingChannel,
        CapableChannel,
        Channel,
        ConfiguredChannel,
        CountingChannel,
        HtmlChannel,
        NotifyingChannel,
        OutcomeChannel,
        StoppingChannel,
        StreamingChannel,
        ThinkingChannel,
        TypingChannel,
    ):
        assert isinstance(channel, protocol)
    assert channel.capabilities == ChannelCapabilities(
        edits=True, max_length=4_096, html=True, expandable_quote=True, paced=True
    )
    assert TelegramChannel(TOKEN, markdown=True).capabilities.markdown
    assert channel.settings == DeliverySettings()
    settings = DeliverySettings(thinking=False)
    assert TelegramChannel(TOKEN, settings=settings).settings is settings


@pytest.mark.long
async def test_counts_are_known_for_a_bounded_number_of_people() -> None:
    async with staged(limits=False) as stage:
        for id_ in range(1, 1_011):
            stage.api.user(id_)
            await stage.channel.send(str(id_), "Hello")
        counts = stage.channel.counts
        assert counts("1") == counts("10") == counts("nobody")
        assert counts("nobody") not in (counts("11"), counts("1010"))
        assert stage.idle


async def test_something_can_be_said_beside_an_answer() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await stage.until(lambda: bool(stage.chat.texts))
        await stage.channel.notify("7", "By the way: **1 < 2**")
        await stage.channel.on_stream_end("7", "One. Two.")
        assert stage.chat.texts == ["One. Two.", "By the way: **1 < 2**"]
        assert stage.channel.counts("7").edits == 1
