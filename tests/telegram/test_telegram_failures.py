"""A Telegram channel where something goes wrong: nothing is lost, and nothing comes twice without need."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import anyio
import httpx
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import MemoryTransport
from bot_api.values import Trouble
from limits.virtual import Stopwatch
from telegram_stage import CURSOR, Stage, delivered, same_text, staged

from thinkwell.channels import DeliveryFailed, DeliverySettings
from thinkwell.channels.telegram import (
    TelegramChannel,
    TelegramForbidden,
    TelegramNetworkError,
    TelegramRefused,
    TelegramThrottled,
)
from thinkwell.testing import script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.virtual_time

LONG = "\n\n".join(f"{number}. " + "Lorem ipsum dolor sit amet. " * 20 for number in range(20)).strip()
"""A text of three messages."""


SLOWLY = script.says("One.").pauses(5).says(" Two.").pauses(5).says(" Three.").pauses(5)


# While it is written


async def test_an_edit_that_fails_is_made_good_by_the_next(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with staged() as stage:
        stage.api.trouble("editMessageText", Trouble.unreachable(), Trouble.error(502), Trouble.lost())
        delivery = await delivered(stage, SLOWLY)
        assert stage.chat.texts == ["One. Two. Three."]
        assert delivery.streamed
        assert delivery.channel_errors == ()
        assert delivery.metrics.retries == 3
    assert caplog.records
    assert TOKEN.partition(":")[2] not in caplog.text


async def test_pauses_grow_while_nothing_can_be_shown() -> None:
    async with staged() as stage:
        stage.api.trouble("editMessageText", *[Trouble.unreachable()] * 6)
        await delivered(stage, script.says("One.").pauses(3).says(" Two.").pauses(100).says(" Three."))
        at = [call.at for call in stage.api.calls_of("editMessageText")]
        pauses = [round(after - before) for before, after in pairwise(at[:7])]
        assert pauses == [1, 2, 4, 8, 16, 30]


async def test_telegram_says_how_long_to_wait() -> None:
    async with staged() as stage:
        stage.api.trouble("editMessageText", Trouble.throttled(20))
        await delivered(stage, SLOWLY.pauses(30))
        refused, *rest = stage.api.calls_of("editMessageText")
        assert rest[0].at >= refused.at + 20
        assert stage.chat.texts == ["One. Two. Three."]
    assert stage.api.throttled == 1


async def test_an_answer_whose_message_was_deleted_goes_on_in_a_new_one() -> None:
    async with staged() as stage, anyio.create_task_group() as tasks:
        tasks.start_soon(delivered, stage, SLOWLY)
        await stage.until(lambda: stage.chat.texts == [f"One.{CURSOR}"])
        stage.ada.deletes(stage.post)
        await stage.until(lambda: stage.chat.texts == [f"One. Two.{CURSOR}"])
        await stage.until(lambda: stage.chat.texts == ["One. Two. Three."])


async def test_a_deleted_last_message_is_sent_again() -> None:
    async with staged() as stage, anyio.create_task_group() as tasks:
        tasks.start_soon(delivered, stage, script.says("One.").pauses(5).says(LONG))
        await stage.until(lambda: bool(stage.chat.texts))
        stage.ada.deletes(stage.post)
        await stage.until(lambda: same_text(stage.chat.messages, f"One.{LONG}"))


async def test_nothing_more_is_tried_where_the_bot_is_blocked() -> None:
    async with staged() as stage, anyio.create_task_group() as tasks:

        async def run() -> None:
            with pytest.raises(DeliveryFailed, match="in 1 attempt: ") as caught:
                await delivered(stage, SLOWLY.says("!" * 100))
            assert isinstance(caught.value.__cause__, TelegramForbidden)
            assert caught.value.text == "One. Two. Three." + "!" * 100

        tasks.start_soon(run)
        await stage.until(lambda: stage.chat.texts == [f"One.{CURSOR}"])
        stage.ada.blocks()
    assert len(stage.api.calls_of("editMessageText")) == 1, "while it was written"
    assert stage.idle


@pytest.mark.parametrize("pause", [0, 30])
async def test_a_person_who_has_blocked_the_bot_is_sent_nothing_twice(pause: float) -> None:
    async with staged() as stage:
        stage.ada.blocks()
        with pytest.raises(DeliveryFailed, match="in 1 attempt: ") as caught:
            await delivered(stage, script.pauses(pause).says("One."))
        assert isinstance(caught.value.__cause__, TelegramForbidden)
        for method in ("sendMessage", "sendChatAction"):
            assert len(stage.api.calls_of(method)) <= 1
        assert len(stage.api.calls_of("sendMessage")) == 1


async def test_another_try_may_succeed() -> None:
    async with staged() as stage:
        stage.ada.blocks()
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "Hello")
        await anyio.sleep(5)
        with pytest.raises(TelegramForbidden):
            await stage.channel.on_stream_end("7", "Hello")
        assert len(stage.api.calls_of("sendMessage")) == 1
        stage.ada.unblocks()
        await stage.channel.send("7", "Hello")
        assert stage.chat.texts == ["Hello"]


Answers: TypeAlias = dict[str, list[httpx.Response | BaseException]]
"""What comes of the next requests of a method."""


class Odd(MemoryTransport):
    """A way to the server on which odd things happen."""

    def __init__(self, api: BotApi, *, answers: Answers) -> None:
        super().__init__(api)
        self._answers = answers

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answers = self._answers.get(request.url.path.rpartition("/")[2])
        if answers:
            odd = answers.pop(0)
            if isinstance(odd, BaseException):
                raise odd
            return odd
        return await super().handle_async_request(request)


def refused(description: str, **parameters: int) -> httpx.Response:
    body = {"ok": False, "error_code": 400, "description": f"Bad Request: {description}"}
    return httpx.Response(400, json={**body, "parameters": parameters} if parameters else body)


@asynccontextmanager
async def odd(answers: Answers, *, drafts: bool = False) -> AsyncGenerator[Stage]:
    api = BotApi()
    api.user(7, "Ada")
    transport = Odd(api, answers=answers)
    async with (
        httpx.AsyncClient(transport=transport) as http,
        TelegramChannel(TOKEN, allowed=[7], drafts=drafts, client=http) as channel,
        anyio.create_task_group() as tasks,
    ):
        yield Stage(api, channel, tasks, http)


ENTITIES = "can't parse entities: Unsupported start tag"


async def test_a_text_is_sent_plain_where_its_marks_cannot_be_read() -> None:
    answers: Answers = {
        "sendMessage": [refused(ENTITIES)],
        "editMessageText": [],
    }
    async with odd(answers) as stage:
        await delivered(stage, script.thinks("Hm.").pauses(5).says("1 < 2").pauses(3).says(" <b>"))
        assert stage.post.text.endswith("1 < 2 <b>")
        assert "parse_mode" not in stage.api.calls_of("editMessageText")[-1].parameters


async def test_so_is_an_edit() -> None:
    async with odd({"editMessageText": [refused(ENTITIES)]}) as stage:
        await delivered(stage, script.says("1 < 2").pauses(3).says(" < 3"))
        assert stage.chat.texts == ["1 < 2 < 3"]


async def test_so_is_a_final_text() -> None:
    async with odd({"sendMessage": [refused(ENTITIES)]}) as stage:
        await stage.channel.send("7", "1 < 2")
        assert stage.chat.texts == ["1 < 2"]


async def test_what_cannot_be_sent_at_all_raises() -> None:
    async with odd({"sendMessage": [refused(ENTITIES), refused(ENTITIES), refused("TOPIC_CLOSED")]}) as stage:
        with pytest.raises(TelegramRefused, match="can't parse entities"):
            await stage.channel.send("7", "1 < 2")
        with pytest.raises(TelegramRefused, match="TOPIC_CLOSED"):
            await stage.channel.send("7", "Hello")
        await stage.channel.send("7", "Hello")
        assert stage.chat.texts == ["Hello"]


async def test_a_group_that_has_become_a_supergroup_is_followed() -> None:
    moved = "group chat was upgraded to a supergroup chat"
    async with odd({"sendMessage": [refused(moved, migrate_to_chat_id=-1_000_000_000_009)]}) as stage:
        stage.api.group(-9)
        group = stage.api.group(-1_000_000_000_009)
        await stage.channel.send("-9", "Hello")
        assert group.texts == ["Hello"]


async def test_a_fault_of_the_channel_itself_ends_no_other_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with odd({"sendMessage": [RuntimeError("odd")]}) as stage:
        delivery = await delivered(stage, script.says("Hello").pauses(5).says(" there"))
        assert stage.chat.texts == ["Hello there"]
        assert delivery.streamed
    assert "A task of a Telegram channel failed: RuntimeError" in caplog.text


# The end


async def test_the_final_text_is_tried_until_it_is_out() -> None:
    async with staged() as stage:
        stage.api.trouble(
            "sendMessage", Trouble.unreachable(), Trouble.error(500), Trouble.throttled(7), Trouble.garbage()
        )
        with anyio.fail_after(60):
            await stage.channel.send("7", "Hello")
        assert set(stage.chat.texts) == {"Hello"}
        assert stage.channel.counts("7").retries == 4


async def test_an_answer_of_telegram_that_is_lost_costs_a_message_that_comes_twice() -> None:
    """Better twice than not at all: nobody can know whether it has come."""
    async with staged() as stage:
        stage.api.trouble("sendMessage", Trouble.lost())
        await stage.channel.send("7", "Hello")
        assert stage.chat.texts == ["Hello", "Hello"]


async def test_an_edit_whose_answer_is_lost_costs_nothing() -> None:
    async with staged() as stage:
        stage.api.trouble("sendMessage", None)
        stage.api.trouble("editMessageText", Trouble.lost(), Trouble.lost())
        await delivered(stage, script.says("Hello").pauses(5).says("!"))
        assert stage.chat.texts == ["Hello!"]


async def test_a_text_that_cannot_be_sent_raises_in_bounded_time() -> None:
    async with staged() as stage:
        stage.api.trouble("sendMessage", *[Trouble.unreachable()] * 6)
        with pytest.raises(TelegramNetworkError), anyio.fail_after(30):
            await stage.channel.send("7", "Hello")
        assert len(stage.api.calls) == 6
        stage.api.trouble("sendMessage", *[Trouble.throttled(1)] * 20)
        with pytest.raises(TelegramThrottled), anyio.fail_after(300):
            await stage.channel.send("7", "Hello")
        await stage.channel.send("7", "Hello")
        assert stage.chat.texts == ["Hello"]


async def test_an_answer_that_could_not_be_finished_is_finished_by_the_same_messages() -> None:
    """The network is away at the end of the stream: `deliver` goes on with whole messages."""
    async with staged() as stage:
        stage.api.trouble("editMessageText", None, *[Trouble.unreachable()] * 7)
        delivery = await delivered(stage, script.thinks("Hm.").pauses(5).says("One.").pauses(3).says(LONG))
        assert not delivery.streamed
        assert len(delivery.channel_errors) == 1
        assert same_text(stage.chat.messages, f"thought for 5s\nHm.\nOne.{LONG}")
        assert all(post.markup is None and CURSOR not in post.text for post in stage.chat.messages)
        assert len(stage.api.sent) == 3
        await stage.settled()


@pytest.mark.parametrize("troubled", [3, 4])
async def test_of_several_messages_those_that_are_there_are_not_sent_again(troubled: int) -> None:
    async with staged(settings=DeliverySettings(streaming=False)) as stage:
        stage.api.trouble("sendMessage", None, *[Trouble.unreachable()] * 6 * troubled)
        if troubled == 4:
            with pytest.raises(DeliveryFailed):
                await delivered(stage, script.says(LONG))
            assert len(stage.api.sent) == 1
        else:
            await delivered(stage, script.says(LONG))
            assert same_text(stage.chat.messages, LONG)


async def test_a_message_is_not_taken_for_one_that_could_not_be_finished() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await stage.until(lambda: bool(stage.chat.texts))
        stage.api.trouble("editMessageText", *[Trouble.unreachable()] * 6)
        with pytest.raises(TelegramNetworkError):
            await stage.channel.on_stream_end("7", "One. Two.")
        await stage.channel.send_html("7", "<b>Something else</b>")
        await stage.settled()
        assert stage.chat.texts == ["One. Two.", "Something else"]
        stage.api.trouble("sendMessage", *[Trouble.unreachable()] * 6)
        with pytest.raises(TelegramNetworkError):
            await stage.channel.send("7", "Three.")
        await stage.channel.send("7", "Four.")
        assert stage.chat.texts == ["One. Two.", "Something else", "Four."]


async def test_a_message_in_html_can_be_tried_again() -> None:
    async with staged() as stage:
        stage.api.trouble("sendMessage", Trouble.slow(15))
        with anyio.move_on_after(5):
            await stage.channel.send_html("7", "<b>Hello</b>")
        await stage.channel.send_html("7", "<b>Hello</b>")
        assert stage.chat.texts == ["Hello"]
        await stage.channel.send_html("7", "<b>Hello</b>")
        assert stage.chat.texts == ["Hello", "Hello"]


async def test_a_stream_can_end_with_html() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "Hel")
        await stage.until(lambda: bool(stage.chat.texts))
        await stage.channel.send_html("7", "<b>Hello</b>")
        assert stage.chat.texts == ["Hello"]
        assert stage.idle


async def test_messages_for_which_nothing_is_left_are_deleted() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", LONG)
        await stage.until(lambda: len(stage.chat.texts) == 3)
        stage.api.trouble("deleteMessage", Trouble.error(500), Trouble.error(403))
        await stage.channel.on_stream_end("7", "Short.")
        first, second = stage.chat.texts
        assert first == "Short."
        assert second.rstrip(CURSOR) in LONG, "it cannot be deleted"


# Cancellation


@pytest.mark.parametrize("slow", [0.0, 0.7])
async def test_a_delivery_can_be_cancelled_at_any_time_and_tried_again(slow: float) -> None:
    """Whatever was under way is known: nothing comes twice, nothing is missing."""
    for tenth in range(0, 60, 3):
        async with staged() as stage:
            stage.api.chaos(1, [(Trouble.slow(slow), 1.0)] if slow else [])
            await stage.channel.on_stream_start("7")
            await stage.channel.on_stream_chunk("7", LONG[:1_000])
            await anyio.sleep(1.5)
            await stage.channel.on_stream_chunk("7", LONG[1_000:5_000])
            await anyio.sleep(0.5)
            with anyio.move_on_after(tenth / 10) as scope:
                await stage.channel.on_stream_end("7", LONG)
            if scope.cancelled_caught:
                await stage.channel.send("7", LONG)
            assert same_text(stage.chat.messages, LONG), tenth
            assert len(stage.api.sent) == 3
            await stage.settled()
            assert stage.channel._left == {}
        assert stage.api.throttled == 0


async def test_a_delivery_behind_a_cancelled_one_has_its_turn() -> None:
    async with staged() as stage, anyio.create_task_group() as tasks:
        stage.api.trouble("sendMessage", Trouble.slow(10))

        async def give_up() -> None:
            with anyio.move_on_after(3):
                await stage.channel.send("7", "One.")

        tasks.start_soon(give_up)
        await anyio.sleep(1)
        await stage.channel.send("7", "Two.")
        assert stage.chat.texts == ["One.", "Two."]


async def test_texts_of_several_messages_do_not_get_mixed_up() -> None:
    async with staged() as stage, anyio.create_task_group() as tasks:
        for letter in "ab":
            tasks.start_soon(stage.channel.notify, "7", f"{letter} " * 4_096)
    texts = [text[0] for text in stage.chat.texts]
    assert texts in (["a", "a", "b", "b"], ["b", "b", "a", "a"])


async def test_a_stream_without_an_end_is_tidied_up_when_the_next_begins() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await stage.until(lambda: bool(stage.chat.texts))
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "Two.")
        await stage.until(lambda: stage.chat.texts == ["One.", f"Two.{CURSOR}"])
        await stage.channel.on_stream_end("7", "Two.")
        assert stage.chat.texts == ["One.", "Two."]
        await stage.settled()


async def test_what_could_not_be_finished_is_tidied_up_when_the_next_begins() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await stage.until(lambda: bool(stage.chat.texts))
        stage.api.trouble("editMessageText", *[Trouble.unreachable()] * 6)
        with pytest.raises(TelegramNetworkError):
            await stage.channel.on_stream_end("7", LONG)
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_end("7", "Two.")
        await stage.settled()
        first, second = stage.chat.texts
        assert LONG.startswith(first)
        assert second == "Two."


async def test_what_is_tidied_up_may_be_gone() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await stage.until(lambda: bool(stage.chat.texts))
        stage.ada.deletes(stage.post)
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_end("7", "Two.")
        await stage.settled()
        assert stage.chat.texts == ["Two."]


async def test_what_is_tried_again_does_not_get_mixed_up_either() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await stage.until(lambda: bool(stage.chat.texts))
        stage.api.trouble("editMessageText", *[Trouble.unreachable()] * 6)
        with pytest.raises(TelegramNetworkError):
            await stage.channel.on_stream_end("7", LONG)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.channel.notify, "7", "x " * 4_096)
            tasks.start_soon(stage.channel.send, "7", LONG)
        first, *rest = [text[0] == "x" for text in stage.chat.texts]
        assert not first
        assert rest in ([True, True, False, False], [False, False, True, True])


async def test_an_answer_ends_while_it_waits_for_its_turn() -> None:
    async with staged() as stage, anyio.create_task_group() as tasks:
        tasks.start_soon(stage.channel.notify, "7", "x " * 20_000)
        await stage.until(lambda: bool(stage.chat.texts))
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await anyio.sleep(1)
        await stage.channel.on_stream_end("7", "One.")
        assert stage.chat.texts[-1] == "One."
        assert stage.post.edits == 0


async def test_an_edit_that_changes_nothing_is_none() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_status("7", "Done.")
        await stage.until(lambda: bool(stage.chat.texts))
        stage.post.history[-1] = replace(stage.post.history[-1], text="Done.", entities=())
        await stage.channel.on_stream_end("7", "Done.")
        assert stage.channel.counts("7").edits == 0
        assert stage.chat.texts == ["Done."]


async def test_chunks_without_a_stream_are_nothing() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_chunk("7", "x")
        await stage.channel.on_stream_status("7", "x")
        await stage.channel.on_stream_thinking("7", "x")
        await stage.channel.on_stream_thinking_end("7", 3.0)
        await anyio.sleep(10)
        assert stage.api.calls == []
        await stage.channel.on_stream_end("7", "All.")
        assert stage.chat.texts == ["All."]


async def test_an_end_without_any_text_leaves_nothing() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "")
        await stage.channel.on_stream_thinking("7", "")
        await stage.channel.on_stream_status("7", "Using: run")
        await stage.until(lambda: bool(stage.chat.texts))
        await stage.channel.on_stream_end("7", "")
        assert stage.chat.texts == []


# The channel's block


async def test_closing_brings_what_is_written_to_a_clean_end() -> None:
    stages: list[Stage] = []
    async with staged() as stage:
        stages.append(stage)
        stage.api.user(9)
        for user_id in ("7", "9"):
            await stage.channel.on_stream_start(user_id)
            await stage.channel.on_stream_chunk(user_id, "One.")
        stage.tasks.start_soon(stage.channel.wait_stop, "7")
        await stage.until(lambda: bool(stage.chat.texts) and bool(stage.post.buttons))
        await stage.until(lambda: bool(stage.api.chat(9).texts))
    assert stages[0].chat.texts == ["One."]
    assert stages[0].api.chat(9).texts == ["One."]
    assert stages[0].post.buttons == []


@pytest.mark.parametrize("how", ["cancel", "raise"])
async def test_so_does_leaving_in_a_hurry(how: str) -> None:
    watch = Stopwatch()
    api = BotApi()
    api.user(7)
    with anyio.CancelScope() as scope:
        try:
            async with (
                httpx.AsyncClient(transport=MemoryTransport(api)) as http,
                TelegramChannel(TOKEN, client=http) as channel,
            ):
                await channel.on_stream_start("7")
                await channel.on_stream_chunk("7", "One.")
                await api.until(lambda: bool(api.chat(7).texts))
                if how == "raise":
                    raise KeyError
                scope.cancel()
                await anyio.sleep_forever()
        except KeyError:
            assert how == "raise"
    assert api.chat(7).texts == ["One."]
    assert watch.seconds < 5


async def test_closing_takes_bounded_time() -> None:
    watch = Stopwatch()
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await stage.until(lambda: bool(stage.chat.texts))
        stage.api.trouble("editMessageText", Trouble.slow(500))
        watch = Stopwatch()
    assert watch.seconds <= 8


async def test_a_channel_works_inside_of_its_block() -> None:
    api = BotApi()
    api.user(7)
    async with httpx.AsyncClient(transport=MemoryTransport(api)) as http:
        channel = TelegramChannel(TOKEN, client=http)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="the channel is closed"):
                await channel.send("7", "x")
            with pytest.raises(RuntimeError, match="the channel is closed"):
                await channel.on_stream_start("7")
            with pytest.raises(RuntimeError, match="the channel is closed"):
                channel.messages()
            assert len(channel._chats) == 0
            async with channel:
                await channel.send("7", "Hello")
    assert api.chat(7).texts == ["Hello", "Hello"]


async def test_a_delivery_that_waits_gets_an_error_when_the_channel_closes() -> None:
    api = BotApi()
    api.user(7)
    async with httpx.AsyncClient(transport=MemoryTransport(api)) as http, anyio.create_task_group() as tasks:
        channel = TelegramChannel(TOKEN, client=http)

        async def send(text: str) -> None:
            with pytest.raises(RuntimeError, match="the channel is closed"):
                await channel.send("7", text)

        async with channel:
            api.trouble("sendMessage", Trouble.slow(500))
            tasks.start_soon(send, "One.")
            tasks.start_soon(send, "Two.")
            await anyio.sleep(2)


class Abort(BaseException):
    """Ends a program."""


async def test_what_ends_a_program_is_not_held_up() -> None:
    async with odd({"sendMessage": [Abort()]}) as stage:
        with pytest.raises(BaseExceptionGroup) as caught:
            async with TelegramChannel(TOKEN, client=stage.http) as channel:
                await channel.send("7", "Hello")
        assert caught.group_contains(Abort)
