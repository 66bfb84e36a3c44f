"""What people write to the bot: everything once, whatever happens on the way. Time is virtual."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
from bot_api.canned_answers import TOKEN, Canned, done, failed, repeated
from bot_api.server import BotApi
from bot_api.serving import client
from bot_api.values import Trouble

from thinkwell.channels.telegram import (
    ChatAddress,
    InlineButton,
    InlineKeyboard,
    Messages,
    TelegramAnswerInvalid,
    TelegramApi,
    TelegramChannel,
    TelegramConflict,
    TelegramError,
    TelegramNetworkError,
    TelegramRefused,
    TelegramUnauthorized,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


pytestmark = pytest.mark.virtual_time

ANN = 7

BOT = done({"id": 5, "first_name": "Think", "username": "think_bot"})
"""What Telegram says first: who the bot is."""

CONFLICTS = 5
"""How often another program may come between."""

REMEMBERED = 1_000
"""Updates that are known by their number."""


@asynccontextmanager
async def bot_of(server: BotApi) -> AsyncGenerator[TelegramApi]:
    async with client(server) as http, TelegramApi(server.token, client=http) as api:
        yield api


@asynccontextmanager
async def hearing(server: BotApi) -> AsyncGenerator[Messages]:
    """Hear what Ann says, for the time of a block."""
    async with (
        client(server) as http,
        TelegramChannel(server.token, allowed=[ANN], client=http) as channel,
    ):
        yield channel.messages()


@asynccontextmanager
async def hearing_canned(*answers: httpx.Response) -> AsyncGenerator[tuple[Messages, Canned]]:
    canned = Canned(BOT, *answers)
    async with TelegramChannel(TOKEN, allowed=[ANN], client=canned.client) as channel:
        yield channel.messages(), canned


def offsets(canned: Canned) -> list[int | None]:
    """Return from where on updates were asked for."""
    return [asked.get("offset") for method, asked in canned.asked if method == "getUpdates"]


def numbered(*numbers: int) -> httpx.Response:
    """Return messages of Ann, each of which says the number of its update."""
    ann = {"id": ANN, "first_name": "Ann"}
    message = {"message_id": 1, "chat": {"id": ANN, "type": "private"}, "from": ann}
    return done([{"update_id": number, "message": {**message, "text": str(number)}} for number in numbers])


async def next_text(messages: Messages) -> str:
    return (await anext(messages)).text


async def numbers(messages: Messages, count: int) -> list[int]:
    return [int(await next_text(messages)) for _ in range(count)]


async def test_messages_and_presses_come_in_order() -> None:
    server = BotApi()
    ann = server.user(ANN, "Ann")
    ann.says("before")
    async with bot_of(server) as api:
        sent = await api.send_message(
            ChatAddress(ANN), "Shall I?", reply_markup=InlineKeyboard(((InlineButton("Yes", "q:yes"),),))
        )
        server.press(ann.chat.message(sent), "Yes")
        ann.says("after", reply_to=ann.chat.message(sent))
        before, press, reply = await api.get_updates()
    assert before.message is not None
    assert before.message.text == "before"
    query = press.callback_query
    assert query is not None
    assert query.message is not None
    assert (query.data, query.from_.id, query.message.message_id) == ("q:yes", ANN, sent)
    assert reply.message is not None
    assert reply.message.reply_to_message is not None
    assert reply.message.reply_to_message.message_id == sent
    assert reply.message.address == ChatAddress(ANN)


async def test_an_update_is_acknowledged_when_it_was_handed_over() -> None:
    server = BotApi()
    ann = server.user(ANN, "Ann")
    for text in ("one", "two"):
        ann.says(text)
    async with hearing(server) as messages:
        assert await next_text(messages) == "one"
        assert server.pending == 2
        assert await next_text(messages) == "two"
        assert server.pending == 2
        with anyio.move_on_after(1):
            await anext(messages)
        assert server.pending == 0


async def test_at_the_end_only_what_was_handed_over_is_acknowledged() -> None:
    server = BotApi()
    ann = server.user(ANN, "Ann")
    for text in ("one", "two", "three"):
        ann.says(text)
    async with hearing(server) as messages:
        async for message in messages:
            if message.text == "two":
                break
    assert len(server.calls_of("getUpdates")) == 2
    assert [message async for message in messages] == []
    async with hearing(server) as messages:
        assert await next_text(messages) == "three"
    assert len(server.calls_of("getUpdates")) == 4


async def test_what_was_acknowledged_is_not_acknowledged_again() -> None:
    server = BotApi()
    server.user(ANN, "Ann").says("one")
    async with hearing(server) as messages:
        assert await next_text(messages) == "one"
        with anyio.move_on_after(51):
            await anext(messages)
    polls = server.calls_of("getUpdates")
    assert len(polls) == 3
    assert [poll.json("offset") for poll in polls[1:]] == [polls[1].json("offset")] * 2


async def test_without_an_acknowledgement_it_comes_again_to_the_next_process() -> None:
    server = BotApi()
    server.user(ANN, "Ann").says("one")
    for _ in range(2):
        async with hearing(server) as messages:
            assert await next_text(messages) == "one"
            server.trouble("getUpdates", Trouble.unreachable())


async def test_what_was_never_used_has_nothing_to_acknowledge() -> None:
    server = BotApi()
    async with hearing(server):
        pass
    assert server.calls == []


async def test_the_acknowledgement_at_the_end_does_not_hold_up(caplog: pytest.LogCaptureFixture) -> None:
    for trouble, seconds in ((Trouble.slow(100), 2), (Trouble.unreachable(), 0)):
        server = BotApi()
        server.user(ANN, "Ann").says("one")
        began = 0.0
        with caplog.at_level(logging.INFO), anyio.CancelScope() as scope:
            async with hearing(server) as messages:
                await anext(messages)
                server.trouble("getUpdates", trouble)
                began = anyio.current_time()
                scope.cancel()
        assert anyio.current_time() - began == pytest.approx(seconds)
    assert "will come again" in caplog.text


async def test_a_wait_that_is_cancelled_ends_at_once_and_loses_nothing() -> None:
    server = BotApi()
    ann = server.user(ANN, "Ann")
    async with hearing(server) as messages:
        began = anyio.current_time()
        with anyio.move_on_after(3):
            await anext(messages)
        assert anyio.current_time() - began == pytest.approx(3)
        assert not server.polled
        ann.says("later")
        assert await next_text(messages) == "later"


async def test_a_poll_takes_as_long_as_telegram_lets_it() -> None:
    server = BotApi()
    async with hearing(server) as messages:
        with anyio.move_on_after(199):
            await anext(messages)
    polls = server.calls_of("getUpdates")
    assert [round(poll.at - polls[0].at) for poll in polls] == [0, 50, 100, 150]
    assert polls[0].json("allowed_updates") == ["message", "callback_query"]


# What cannot be read


async def test_what_cannot_be_read_is_skipped_and_acknowledged(caplog: pytest.LogCaptureFixture) -> None:
    server = BotApi()
    ann = server.user(ANN, "Ann")
    async with hearing(server) as messages:
        server.update({"message": {"message_id": "seven", "chat": {"id": 7}, "text": "private words"}})
        server.update({"callback_query": 5})
        ann.says("fine")
        assert await next_text(messages) == "fine"
    assert server.pending == 0
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2
    assert "private words" not in caplog.text


async def test_only_what_cannot_be_read_is_acknowledged_too() -> None:
    server = BotApi()
    async with hearing(server) as messages:
        server.update({"callback_query": 5})
        with anyio.move_on_after(1):
            await anext(messages)
        assert server.pending == 0


@pytest.mark.parametrize("answer", [[], [{"update_id": "one"}], [{"update_id": 7}]])
async def test_a_server_that_never_waits_is_not_asked_without_end(answer: list[object]) -> None:
    async with hearing_canned(*(done(answer) for _ in range(100))) as (messages, canned):
        with anyio.move_on_after(10.5):
            await anext(messages)
        assert len(offsets(canned)) <= 12


async def test_numbers_may_begin_anew_lower() -> None:
    answers = numbered(900, 901), numbered(5, 6), numbered(5, 6), numbered(6, 7)
    async with hearing_canned(*answers) as (messages, canned):
        assert await numbers(messages, 5) == [900, 901, 5, 6, 7]
        assert offsets(canned) == [None, 902, 7, 7]


async def test_what_is_remembered_is_bounded() -> None:
    many = range(1, REMEMBERED + 3)
    async with hearing_canned(numbered(*many), numbered(1, REMEMBERED + 2)) as (messages, _):
        assert await numbers(messages, REMEMBERED + 3) == [*many, 1]


# Faults that pass


FAULTS = [
    Trouble.unreachable(),
    Trouble.lost(),
    Trouble.error(500),
    Trouble.error(502),
    Trouble.garbage(),
    Trouble.throttled(1),
    Trouble.slow(1000),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind}-{fault.status}")
async def test_faults_pass_and_nothing_is_lost(fault: Trouble, caplog: pytest.LogCaptureFixture) -> None:
    server = BotApi()
    ann = server.user(ANN, "Ann")
    ann.says("one")
    with caplog.at_level(logging.DEBUG):
        async with hearing(server) as messages:
            server.trouble("getUpdates", fault, fault)
            assert await next_text(messages) == "one"
            ann.says("two")
            assert await next_text(messages) == "two"
    ours = [record for record in caplog.records if record.name == "thinkwell"]
    assert [record.levelname for record in ours] == ["WARNING", "INFO", "INFO"]
    assert "Telegram, getUpdates" in ours[0].getMessage()
    assert server.token.partition(":")[2] not in caplog.text


async def test_pauses_grow_up_to_a_bound_and_no_two_are_alike() -> None:
    server = BotApi()
    server.trouble("getUpdates", *[Trouble.unreachable()] * 12)
    server.user(ANN, "Ann").says("one")
    async with hearing(server) as messages:
        await anext(messages)
        times = [poll.at for poll in server.calls_of("getUpdates")]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    for number, pause in enumerate(pauses):
        longest = min(2.0**number, 30)
        assert longest / 2 <= pause <= longest
    assert len(set(pauses)) == 12


async def test_what_telegram_says_is_waited_for() -> None:
    server = BotApi()
    server.trouble("getUpdates", Trouble.throttled(40))
    server.user(ANN, "Ann").says("one")
    async with hearing(server) as messages:
        await anext(messages)
        first, second = server.calls_of("getUpdates")
    assert 40.5 <= second.at - first.at <= 41


async def test_after_a_fault_has_passed_pauses_begin_anew() -> None:
    server = BotApi()
    lost = Trouble.unreachable()
    server.trouble("getUpdates", lost, lost, lost, None, lost)
    ann = server.user(ANN, "Ann")
    ann.says("one")
    async with hearing(server) as messages:
        await anext(messages)
        ann.says("two")
        await anext(messages)
    polls = server.calls_of("getUpdates")
    assert 0.5 <= polls[5].at - polls[4].at <= 1


# Faults that do not


@pytest.mark.parametrize(
    ("code", "description", "kind"),
    [
        (401, "Unauthorized", TelegramUnauthorized),
        (404, "Not Found", TelegramUnauthorized),
        (400, "Bad Request: can't parse allowed updates", TelegramRefused),
        (409, "Conflict: can't use getUpdates method while webhook is active", TelegramConflict),
    ],
)
async def test_what_does_not_pass_is_an_error(code: int, description: str, kind: type[TelegramError]) -> None:
    async with hearing_canned(failed(code, description)) as (messages, canned):
        with pytest.raises(kind, match=description):
            await anext(messages)
    assert len(offsets(canned)) == 1


async def test_a_webhook_is_named_and_can_be_removed() -> None:
    server = BotApi()
    server.webhook = "https://bot.example/"
    async with hearing(server) as messages, bot_of(server) as api:
        with pytest.raises(TelegramConflict, match=r"delete_webhook\(\)"):
            await anext(messages)
        await api.delete_webhook()
        server.user(ANN, "Ann").says("one")
        assert await next_text(messages) == "one"


async def test_another_program_that_polls_is_told_and_one_goes_on() -> None:
    server = BotApi()
    ann = server.user(ANN, "Ann")
    ended: list[str] = []
    taken: list[str] = []

    async def poll() -> None:
        try:
            async with hearing(server) as messages:
                async for message in messages:
                    taken.append(message.text)
        except TelegramConflict as exc:
            ended.append(str(exc))

    async with anyio.create_task_group() as group:
        group.start_soon(poll)
        group.start_soon(poll)
        await anyio.sleep(1000)
        ann.says("who is there?")
        await anyio.sleep(100)
        group.cancel_scope.cancel()
    assert len(ended) == 1
    assert "end the other program" in ended[0]
    assert taken == ["who is there?"]
    assert sum(call.status == 409 for call in server.calls) < 2 * CONFLICTS


async def test_a_program_that_is_replaced_by_this_one_may_take_its_time() -> None:
    conflict = [failed(409, "Conflict: terminated by other getUpdates request") for _ in range(CONFLICTS)]
    answers = *conflict[1:], numbered(7), *conflict[1:], numbered(8)
    async with hearing_canned(*answers) as (messages, _):
        assert await numbers(messages, 1) == [7]
        await anyio.sleep(121)
        assert await numbers(messages, 1) == [8]


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_every_message_comes_once(seed: int) -> None:
    server = BotApi()
    ann = server.user(ANN, "Ann")
    server.chaos(seed, [(fault, 0.08) for fault in FAULTS], methods=["getUpdates"])
    dice = Random(seed)
    said = [f"message {number}" for number in range(60)]
    taken: list[str] = []

    async def speak() -> None:
        for text in said:
            ann.says(text)
            await anyio.sleep(dice.choice([0, 0, 1, 20, 70]))

    async with hearing(server) as messages, anyio.create_task_group() as group:
        group.start_soon(speak)
        while len(taken) < len(said):
            with anyio.move_on_after(dice.uniform(0, 40)):  # somebody is impatient
                while len(taken) < len(said):
                    taken.append(await next_text(messages))
    assert taken == said


# Time that requests may take: it is here because of the clock


async def test_a_request_takes_no_longer_than_it_may() -> None:
    server = BotApi()
    server.user(7)
    server.trouble("*", Trouble.slow(1000), Trouble.slow(1000))
    async with bot_of(server) as api:
        for seconds, request in ((20, api.send_chat_action), (60, partial(api.send_message, text="Hi"))):
            began = anyio.current_time()
            with pytest.raises(TelegramNetworkError) as caught:
                await request(ChatAddress(7))
            assert anyio.current_time() - began == pytest.approx(seconds)
            assert caught.value.sent


async def test_an_answer_that_only_drips_is_given_up() -> None:
    async with Canned(httpx.Response(200, content=repeated(b" ", 1000, pause=0.5))).api(timeout=4.2) as api:
        began = anyio.current_time()
        with pytest.raises(TelegramNetworkError, match=r"no answer within 4\.2 s"):
            await api.get_me()
    assert anyio.current_time() - began == pytest.approx(4.2)


async def test_a_poll_may_take_its_time_and_some_more() -> None:
    server = BotApi()
    server.trouble("getUpdates", Trouble.slow(15), Trouble.slow(1000))
    async with bot_of(server) as api:
        assert await api.get_updates(wait=50) == []
        began = anyio.current_time()
        with pytest.raises(TelegramNetworkError):
            await api.get_updates(wait=5)
    assert anyio.current_time() - began == pytest.approx(25)


async def test_half_an_answer_is_none() -> None:
    server = BotApi()
    server.trouble("getMe", Trouble.garbage())
    async with bot_of(server) as api:
        with pytest.raises(TelegramAnswerInvalid):
            await api.get_me()
