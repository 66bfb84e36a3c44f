"""When messages may be sent and edited, so that Telegram does not refuse them. Time is virtual."""

# Private: rules of time, sans I/O: from outside, a hundred chats hide who has waited for whom

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint
from bot_api.server import BotApi
from bot_api.serving import client
from bot_api.values import Trouble

from thinkwell.channels.telegram import ChatAddress, TelegramApi, TelegramThrottled
from thinkwell.channels.telegram._pacing import SWEEP, Pacer
from thinkwell.channels.telegram._updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable


pytestmark = pytest.mark.virtual_time

PRIVATE = 77
GROUP = -1001


class Meter:
    """Notes when requests were made, from when it was made itself."""

    def __init__(self) -> None:
        self._began = anyio.current_time()
        self.times: defaultdict[int, list[float]] = defaultdict(list)
        self.order: list[str] = []

    @property
    def now(self) -> float:
        return round(anyio.current_time() - self._began, 3)

    def note(self, chat_id: int, name: str = "") -> None:
        self.times[chat_id].append(self.now)
        self.order.append(name or str(chat_id))

    def all(self) -> list[float]:
        return sorted(time for times in self.times.values() for time in times)


def most_in(times: Iterable[float], seconds: float) -> int:
    """Return how many times lie in the fullest window of a length."""
    ordered = sorted(times)
    most = start = 0
    for end, time in enumerate(ordered):
        while ordered[start] <= time - seconds:
            start += 1
        most = max(most, end - start + 1)
    return most


async def edits(pacer: Pacer, meter: Meter, chat_id: int, wanted: Callable[[], bool]) -> None:
    """Edit as often as may be, as long as that is wanted."""
    while wanted():
        pause = pacer.try_turn(chat_id)
        if pause == 0:
            meter.note(chat_id)
            await checkpoint()
        else:
            await anyio.sleep(pause)


@pytest.mark.parametrize(("chat_id", "interval"), [(PRIVATE, 1.1), (GROUP, 3.1)])
async def test_turns_of_a_chat_keep_their_distance(chat_id: int, interval: float) -> None:
    pacer, meter = Pacer(), Meter()
    for _ in range(4):
        await pacer.turn(chat_id)
        meter.note(chat_id)
    assert meter.times[chat_id] == pytest.approx([0, interval, 2 * interval, 3 * interval])


async def test_after_a_pause_there_is_no_wait_and_no_burst() -> None:
    pacer, meter = Pacer(), Meter()
    await pacer.turn(PRIVATE)
    await anyio.sleep(60)
    for _ in range(2):
        await pacer.turn(PRIVATE)
        meter.note(PRIVATE)
    assert meter.times[PRIVATE] == pytest.approx([60, 61.1])


async def test_edits_are_put_off_and_not_queued() -> None:
    pacer = Pacer()
    assert pacer.try_turn(PRIVATE) == 0
    assert pacer.try_turn(PRIVATE) == pytest.approx(1.1)
    await anyio.sleep(0.6)
    assert pacer.try_turn(PRIVATE) == pytest.approx(0.5)
    await anyio.sleep(0.5001)
    assert pacer.try_turn(PRIVATE) == 0


async def test_turns_come_in_order() -> None:
    pacer, meter = Pacer(), Meter()
    await pacer.turn(PRIVATE)

    async def one(name: str) -> None:
        await pacer.turn(PRIVATE)
        meter.note(PRIVATE, name)

    async with anyio.create_task_group() as group:
        for name in ("first", "second", "third", "fourth"):
            group.start_soon(one, name)
            await anyio.sleep(0.1)
    assert meter.order == ["first", "second", "third", "fourth"]
    assert meter.times[PRIVATE] == pytest.approx([1.1, 2.2, 3.3, 4.4])


async def test_no_edit_comes_before_a_turn_that_waits() -> None:
    pacer, meter = Pacer(), Meter()
    await pacer.turn(PRIVATE)
    over = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(edits, pacer, meter, PRIVATE, lambda: not over.is_set())
        for _ in range(3):
            await pacer.turn(PRIVATE)
            meter.note(PRIVATE, "final")
        over.set()
    assert meter.order == ["final", "final", "final"]
    assert meter.times[PRIVATE] == pytest.approx([1.1, 2.2, 3.3])


async def test_chats_do_not_wait_for_each_other() -> None:
    pacer, meter = Pacer(), Meter()
    await pacer.turn(GROUP)
    await anyio.sleep(0.5)

    async def one(chat_id: int) -> None:
        await pacer.turn(chat_id)
        meter.note(chat_id)

    async with anyio.create_task_group() as group:
        for chat_id in (GROUP, PRIVATE, PRIVATE + 1):
            group.start_soon(one, chat_id)
    assert meter.all() == [0.5, 0.54, 3.1]
    assert meter.times[GROUP] == [3.1]


async def test_over_all_chats_there_is_a_pace_too() -> None:
    pacer, meter = Pacer(), Meter()

    async def one(chat_id: int) -> None:
        await pacer.turn(chat_id)
        meter.note(chat_id)

    async with anyio.create_task_group() as group:
        for chat_id in range(1, 201):
            group.start_soon(one, chat_id)
    assert most_in(meter.all(), 1.0) <= 26
    assert meter.all()[-1] == pytest.approx(199 * 0.04, abs=0.1)


async def test_a_wait_that_is_cancelled_takes_no_turn() -> None:
    pacer, meter = Pacer(), Meter()
    await pacer.turn(PRIVATE)

    async def one() -> None:
        await pacer.turn(PRIVATE)
        meter.note(PRIVATE)

    async with anyio.create_task_group() as group:
        with anyio.move_on_after(0.5):
            async with anyio.create_task_group() as doomed:
                for _ in range(3):
                    doomed.start_soon(one)
                await anyio.sleep(0.1)
                group.start_soon(one)
    assert meter.times[PRIVATE] == pytest.approx([1.1])


async def test_a_cancelled_edit_takes_no_turn() -> None:
    pacer = Pacer()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await pacer.turn(PRIVATE)
    assert scope.cancelled_caught
    assert pacer.try_turn(PRIVATE) == 0


async def test_one_that_is_cancelled_in_the_last_moment_lets_the_others_go_on() -> None:
    pacer, meter = Pacer(overall=1.0), Meter()
    await pacer.turn(1)

    async def one(chat_id: int) -> None:
        await pacer.turn(chat_id)
        meter.note(chat_id)

    async with anyio.create_task_group() as group:
        with anyio.move_on_after(0.9):
            async with anyio.create_task_group() as doomed:
                doomed.start_soon(one, 2)
                await anyio.sleep(0.1)
                group.start_soon(one, 3)
                group.start_soon(one, 4)
    assert sorted(meter.all()) == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize("poll", [0, 51, -1])
def test_a_poll_has_bounds(poll: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 50"):
        Updates(TelegramApi("42:token"), poll=poll)


async def test_two_that_wait_share_the_updates() -> None:
    server = BotApi()
    ann = server.user(PRIVATE, "Ann")
    taken: list[str | None] = []
    async with client(server) as http, TelegramApi(server.token, client=http) as api:
        updates = Updates(api)

        async def take() -> None:
            async for update in updates:
                taken.append(update.message.text if update.message else None)
                break

        async with anyio.create_task_group() as group:
            group.start_soon(take)
            group.start_soon(take)
            await server.until(lambda: server.polled)
            ann.says("one")
            ann.says("two")
    assert sorted(taken, key=str) == ["one", "two"]
    assert not any(call.status == 409 for call in server.calls)


# 429


async def test_all_wait_as_long_as_telegram_says() -> None:
    pacer, meter = Pacer(), Meter()
    await pacer.turn(PRIVATE)
    pacer.throttled(PRIVATE, 20)
    assert pacer.try_turn(PRIVATE) == pytest.approx(20)
    await pacer.turn(PRIVATE)
    meter.note(PRIVATE)
    await pacer.turn(PRIVATE + 1)  # another chat
    meter.note(PRIVATE + 1)
    assert meter.times == {PRIVATE: [20.0], PRIVATE + 1: [20.04]}


async def test_it_holds_for_what_waits_already() -> None:
    pacer, meter = Pacer(), Meter()
    await pacer.turn(PRIVATE)

    async def one(chat_id: int) -> None:
        await pacer.turn(chat_id)
        meter.note(chat_id)

    async with anyio.create_task_group() as group:
        group.start_soon(one, PRIVATE)
        await anyio.sleep(0.2)
        pacer.throttled(PRIVATE, 30)
    assert meter.times[PRIVATE] == pytest.approx([30.2])


async def test_it_holds_for_what_waits_for_a_place_among_all() -> None:
    pacer, meter = Pacer(overall=2.0), Meter()
    await pacer.turn(1)

    async def one(chat_id: int, name: str = "") -> None:
        await pacer.turn(chat_id)
        meter.note(chat_id, name)

    async with anyio.create_task_group() as group:
        group.start_soon(one, 2)
        group.start_soon(one, 3)
        await anyio.sleep(1.0)
        pacer.throttled(2, 10)
        group.start_soon(one, 3, "3 again")
    assert meter.times == {3: [2.0, 4.0], 2: [11.0]}
    assert meter.order == ["3", "3 again", "2"]


async def test_the_interval_grows_and_comes_back() -> None:
    pacer = Pacer()
    seen = [pacer.interval(GROUP)]
    for _ in range(5):
        pacer.throttled(GROUP)
        seen.append(pacer.interval(GROUP))
    assert seen == pytest.approx([3.1, 4.65, 6.975, 10.4625, 12.4, 12.4])
    assert pacer.try_turn(GROUP) == pytest.approx(12.4)
    await anyio.sleep(120)
    assert pacer.interval(GROUP) == pytest.approx(9.3)
    await anyio.sleep(400)
    assert pacer.interval(GROUP) == 3.1
    pacer.throttled(GROUP)
    assert pacer.interval(GROUP) == pytest.approx(4.65)


@pytest.mark.parametrize(
    ("refused", "retry_after", "wait"),
    [
        ([1, 2, 3], 2, 3.0),
        ([1, 2, 3], None, 1.5),
        ([1, 2, 3], 3600, 7.5),
        ([1, 2, 3, 4, 5, 6], 2, 4.5),
        ([1, 2], 2, 0.0),
        ([1, 2, 1, 2, 1], 2, 0.0),
    ],
)
async def test_all_chats_pause_where_many_are_refused(
    refused: list[int], retry_after: float | None, wait: float
) -> None:
    pacer, meter = Pacer(), Meter()
    for chat_id in refused:
        pacer.throttled(chat_id, retry_after)
    await pacer.turn(PRIVATE)
    assert meter.now == pytest.approx(wait)


async def test_chats_that_are_refused_one_after_another_do_not_hold_up_others() -> None:
    pacer = Pacer()
    for chat_id in range(1, 6):
        pacer.throttled(chat_id, 30)
        await anyio.sleep(0.6)
    assert pacer.try_turn(PRIVATE) == 0


# Many


@pytest.mark.parametrize(("chat_id", "seconds", "limit"), [(PRIVATE, 1.0, 1), (GROUP, 60.0, 20)])
async def test_a_thousand_edits_stay_below_the_limit(chat_id: int, seconds: float, limit: int) -> None:
    pacer, meter = Pacer(), Meter()
    await edits(pacer, meter, chat_id, lambda: len(meter.order) < 1000)
    assert most_in(meter.all(), seconds) <= limit
    assert meter.all()[-1] < 1000 * pacer.interval(chat_id) * 1.01


@pytest.mark.long
async def test_many_chats_that_edit_get_the_same_and_messages_come_through() -> None:
    pacer, meter = Pacer(), Meter()
    waits: list[float] = []
    async with anyio.create_task_group() as group:
        for chat_id in range(1, 101):
            group.start_soon(edits, pacer, meter, chat_id, lambda: meter.now < 120)
        for chat_id in range(201, 221):
            await anyio.sleep(3)
            began = meter.now
            await pacer.turn(chat_id)
            waits.append(meter.now - began)
            meter.note(chat_id)
    counts = [len(meter.times[chat_id]) for chat_id in range(1, 101)]
    assert most_in(meter.all(), 1.0) <= 26
    assert min(counts) >= 24
    assert max(counts) - min(counts) <= 3
    assert max(waits) <= 0.05


async def test_few_chats_do_not_share() -> None:
    pacer, meter = Pacer(), Meter()
    async with anyio.create_task_group() as group:
        for chat_id in range(1, 21):
            group.start_soon(edits, pacer, meter, chat_id, lambda: meter.now < 100)
    assert {len(meter.times[chat_id]) for chat_id in range(1, 21)} <= {88, 89, 90, 91}
    assert most_in(meter.all(), 1.0) <= 25


@pytest.mark.long
async def test_chats_of_which_nothing_has_to_be_known_are_forgotten() -> None:
    pacer = Pacer(overall=0)
    pacer.throttled(-1, 5)
    for chat_id in range(1, 20 * SWEEP):
        await pacer.turn(chat_id)
        await anyio.sleep(1.0)
        assert len(pacer._chats) <= SWEEP
        if chat_id == 30:
            assert pacer.interval(-1) > 3.1


# What the server says of it


def chats_of(server: BotApi, private: int, groups: int) -> list[int]:
    chats = [server.user(number).chat.id for number in range(1, private + 1)]
    return chats + [server.group(-1000 - number).id for number in range(groups)]


async def write(api: TelegramApi, pacer: Pacer, chat_id: int, count: int) -> None:
    """Send a message, edit it as often as may be, and end with a final edit."""
    chat = ChatAddress(chat_id)
    message = 0
    while not message:
        await pacer.turn(chat_id)
        with telling(pacer, chat_id):
            message = await api.send_message(chat, "0")
    for number in range(1, count):
        while pause := pacer.try_turn(chat_id):  # noqa: ASYNC110 - there is nothing else to wait for
            await anyio.sleep(pause)
        with telling(pacer, chat_id):
            await api.edit_message_text(chat, message, str(number))
    done = False
    while not done:
        await pacer.turn(chat_id)
        with telling(pacer, chat_id):
            done = await api.edit_message_text(chat, message, "final")


@contextmanager
def telling(pacer: Pacer, chat_id: int) -> Generator[None]:
    try:
        yield
    except TelegramThrottled as exc:
        pacer.throttled(chat_id, exc.retry_after)


@pytest.mark.parametrize(
    ("private", "groups", "count"),
    [
        (8, 8, 25),
        *(
            pytest.param(*sizes, marks=pytest.mark.long)
            for sizes in ((20, 0, 60), (10, 10, 40), (50, 10, 20))
        ),
    ],
)
async def test_the_server_refuses_none_of_many_chats_at_once(private: int, groups: int, count: int) -> None:
    server, pacer = BotApi(), Pacer()
    chats = chats_of(server, private, groups)
    async with (
        client(server) as http,
        TelegramApi(server.token, client=http) as api,
        anyio.create_task_group() as group,
    ):
        for chat_id in chats:
            group.start_soon(write, api, pacer, chat_id, count)
    assert server.throttled == 0
    assert [server.chat(chat_id).texts for chat_id in chats] == [["final"]] * len(chats)
    assert len(server.calls) == len(chats) * (count + 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
async def test_a_slow_network_does_not_make_it_worse(seed: int) -> None:
    server, pacer = BotApi(), Pacer()
    chats = chats_of(server, 10, 5)
    server.chaos(seed, [(Trouble.slow(0.3), 0.3), (Trouble.slow(4.0), 0.1)])
    async with (
        client(server) as http,
        TelegramApi(server.token, client=http) as api,
        anyio.create_task_group() as group,
    ):
        for chat_id in chats:
            group.start_soon(write, api, pacer, chat_id, 40)
    assert server.throttled == 0


@pytest.mark.parametrize(
    ("private", "groups"), [(1, 0), (0, 1), (6, 0), pytest.param(30, 0, marks=pytest.mark.long)]
)
async def test_two_programs_of_one_bot_get_along(private: int, groups: int) -> None:
    server = BotApi()
    chats = chats_of(server, private, groups)
    async with (
        client(server) as http,
        TelegramApi(server.token, client=http) as api,
        anyio.create_task_group() as group,
    ):
        for pacer in (Pacer(), Pacer()):
            for chat_id in chats:
                group.start_soon(write, api, pacer, chat_id, 60)
    assert 0 < server.throttled < len(server.calls) * 0.1
    assert [server.chat(chat_id).texts for chat_id in chats] == [["final", "final"]] * len(chats)


async def test_a_message_that_was_refused_comes_when_telegram_lets_it() -> None:
    server, pacer = BotApi(), Pacer()
    (chat_id,) = chats_of(server, 1, 0)
    server.trouble("editMessageText", *[None] * 9, Trouble.throttled(90), Trouble.throttled(3))
    async with client(server) as http, TelegramApi(server.token, client=http) as api:
        began = anyio.current_time()
        await write(api, pacer, chat_id, 10)
    assert server.chat(chat_id).texts == ["final"]
    assert anyio.current_time() - began == pytest.approx(10 * 1.1 + 90 + 3)
