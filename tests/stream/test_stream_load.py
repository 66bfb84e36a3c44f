"""Long runs that nobody reads, or somebody slowly: what they take, and that everybody sees a whole story."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from typing import TYPE_CHECKING, Literal

import anyio
import pytest
from stream.wire_agent import end_turn, line, say, update, wire_agent

from thinkwell import Buffer, BufferOverflow, Message, ToolStart, ToolUpdate
from thinkwell import events as ev
from thinkwell._log import CHECKPOINT_EVERY, RunLog
from thinkwell._shrink import MERGED_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream.wire_agent import Json

    from thinkwell import ThoughtEvent
    from thinkwell._log import EventReader

Overflow = Literal["coalesce", "drop_oldest", "error"]
Mix = Literal["one message", "many messages", "two in turn", "tools between"]

COUNT = 100_000
MOST = 1_000

FEW = 30_000
"""Objects that may be left of such a run: a thousand events of five each, and the messages. Without a bound
they would be half a million; a hundred thousand, where the view kept the pieces of its texts."""


def word(number: int) -> str:
    return f"{number % 10_000:04} "


def message_id(mix: Mix, number: int) -> str | None:
    match mix:
        case "one message" | "tools between":
            return None
        case "many messages":
            return f"m{number // 500}"
        case "two in turn":
            return f"m{number % 2}"


def fill(log: RunLog, mix: Mix, after: Callable[[int], object] = bool) -> None:
    for number in range(COUNT):
        seq = log.seq + 1
        if mix == "tools between" and number % 1000 == 0:
            log.append(ToolStart(seq=seq, id="t"))
        else:
            log.append(Message(seq=seq, text=word(number), message_id=message_id(mix, number)))
        after(number)


def objects_left(act: Callable[[], object]) -> int:
    """Count what is left in memory of doing something."""
    gc.collect()
    before = sys.getallocatedblocks()
    act()
    gc.collect()
    return sys.getallocatedblocks() - before


def told(events: list[ThoughtEvent]) -> dict[str | None, str]:
    """Return the text of each message, in the order in which they begin."""
    texts: dict[str | None, str] = {}
    for event in events:
        if isinstance(event, Message):
            texts[event.message_id] = texts.get(event.message_id, "") + event.text
    return texts


# Memory


@pytest.mark.parametrize(
    ("overflow", "mix"),
    [
        ("coalesce", "one message"),
        ("coalesce", "many messages"),
        ("coalesce", "two in turn"),
        ("coalesce", "tools between"),
        ("drop_oldest", "many messages"),
        ("drop_oldest", "tools between"),
        ("error", "one message"),
    ],
)
def test_bounded__takes_little_more_than_its_text(overflow: Overflow, mix: Mix) -> None:
    log = RunLog(buffer=Buffer(max_events=MOST, overflow=overflow))
    sizes: set[int] = set()

    def run() -> None:
        fill(log, mix, lambda _: sizes.add(len(log.events)))

    assert objects_left(run) < FEW
    assert max(sizes) <= (2 * MOST if overflow == "error" else MOST)
    assert log.view().text.startswith(word(1) if mix == "tools between" else word(0))
    assert len(log.view().text) == 5 * (COUNT - (100 if mix == "tools between" else 0))


@pytest.mark.parametrize("overflow", ["coalesce", "drop_oldest"])
def test_parked_readers__hold_nothing_but_their_places(overflow: Overflow) -> None:
    log = RunLog(buffer=Buffer(max_events=MOST, overflow=overflow))
    readers: list[EventReader] = []

    def open_reader(number: int) -> None:
        if number % 1000 == 0:
            readers.append(log.reader(after=log.seq))

    def run() -> None:
        fill(log, "one message", open_reader)

    assert objects_left(run) < FEW
    assert len(log.events) < 2 * MOST
    assert [reader.place for reader in readers] == list(range(1, COUNT, 1000))


def test_filtered__text_that_is_not_kept_takes_its_characters() -> None:
    log = RunLog(frozenset({"tool_start"}))

    def run() -> None:
        fill(log, "two in turn")

    assert objects_left(run) < 1_000
    assert len(log.view().text) == 5 * COUNT


def test_filtered__of_a_tool_call_only_the_last_contents_are_held() -> None:
    log = RunLog(frozenset({"message"}))
    tracemalloc.start()
    try:
        for number in range(50):
            block = ev.TextContent(text=f"{number:02}" * 50_000)
            log.add(ToolUpdate, id="t", content=(ev.BlockContent(content=block),))
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


async def test_ids__are_kept_once() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        for id_ in "abab":
            await wire.write(say("word", messageId=f"a long id of message {id_}"))
        await wire.write(end_turn(prompt))
        ids = {id(event.message_id) async for event in stream if isinstance(event, Message)}
        assert len(ids) == 2


# What readers see

BLOCKS = 20


@pytest.mark.parametrize("overflow", ["none", "coalesce", "drop_oldest"])
async def test_slow_reader__sees_a_whole_story_and_its_end(overflow: Literal["none"] | Overflow) -> None:
    buffer = None if overflow == "none" else Buffer(max_events=MOST, overflow=overflow)
    lines = [updates(block) for block in range(BLOCKS)]
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream(buffer=buffer)
        prompt = await wire.begin()
        slow, parked = stream.events(), stream.events()
        seen: list[ThoughtEvent] = []
        for block in lines:
            await wire.write(*block)
            with anyio.fail_after(5):
                seen.append(await anext(slow))
        first = await anext(parked)
        await wire.write(end_turn(prompt))
        with anyio.fail_after(10):
            await stream.result
            seen += [event async for event in slow]
            rest = [event async for event in parked]
            again = [event async for event in stream]
    said = [update["params"]["update"] for block in lines for update in block]
    text = "".join(part["content"]["text"] for part in said if "content" in part)
    assert stream.view.text == text
    for story in (seen, [first, *rest], again):
        assert [event.seq for event in story] == sorted({event.seq for event in story})
        assert story[-1].seq == len(said)
        assert [event.id for event in story if isinstance(event, ToolStart)] == [
            f"t{n}" for n in range(BLOCKS)
        ]
        dropped = sum(event.count for event in story if isinstance(event, ev.Dropped))
        if overflow == "drop_oldest":
            assert dropped + len([event for event in story if not isinstance(event, ev.Dropped)]) == len(said)
        else:
            assert told(story) == {"m": text}
    if buffer is not None:
        assert len(again) <= MOST


def updates(block: int) -> list[Json]:
    texts = [say(word(number), messageId="m") for number in range(block * 1000, block * 1000 + 999)]
    return [*texts[:500], update("tool_call", toolCallId=f"t{block}", title="T"), *texts[500:]]


async def test_failed_run__keeps_merging_what_comes_until_the_agent_stops() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream(buffer=Buffer(max_events=10, overflow="error"))
        prompt = await wire.begin()
        await wire.write(*[say(word(number)) for number in range(10_000)])
        with anyio.fail_after(5), pytest.raises(BufferOverflow):
            await stream.result
        await wire.write(*[say(word(number)) for number in range(10_000, 20_000)])
        await wire.write(end_turn(prompt, "cancelled"))
        events = [event async for event in stream]
        assert len(events) <= 20
        assert told(events)[None] == stream.view.text == "".join(map(word, range(20_000)))


def test_a_read_of_the_pipe_fits_between_two_rests_of_a_reader() -> None:
    if sys.platform == "win32":
        from thinkwell_acp._windows import READ_SIZE
    else:
        from thinkwell_acp._posix import READ_SIZE
    # Else a reader that is fast enough falls behind all the same while an agent pours out text.
    assert len(line(say("x"))) * CHECKPOINT_EVERY > READ_SIZE


# Messages that come interleaved


def interleaved(log: RunLog, ids: str) -> None:
    for number, id_ in enumerate(ids):
        log.add(Message, text=str(number % 10), message_id=id_)


def kept(log: RunLog) -> list[tuple[int, str | None, str]]:
    return [(event.seq, event.message_id, event.text) for event in log.events if isinstance(event, Message)]


def test_interleaved__each_message_is_joined_and_begins_where_it_began() -> None:
    log = RunLog(buffer=Buffer(max_events=8))
    interleaved(log, "abbababaa")
    assert kept(log) == [(1, "a", "0"), (3, "b", "12"), (7, "b", "46"), (9, "a", "3578")]
    assert log.view().messages == ("03578", "1246")


def test_interleaved__stays_as_it_is_where_joining_neighbours_is_enough() -> None:
    log = RunLog(buffer=Buffer(max_events=8))
    interleaved(log, "aaabbbabb")
    assert kept(log) == [(3, "a", "012"), (6, "b", "345"), (7, "a", "6"), (9, "b", "78")]


async def test_interleaved__never_across_the_place_of_a_reader() -> None:
    log = RunLog(buffer=Buffer(max_events=8))
    interleaved(log, "abab")
    reader = log.reader()
    for _ in range(3):
        await anext(reader)
    interleaved(log, "ababa")
    assert kept(log) == [
        (1, "a", "0"),
        (2, "b", "1"),
        (3, "a", "2"),
        (4, "b", "3"),
        (5, "a", "0"),
        (8, "b", "13"),
        (9, "a", "24"),
    ]
    log.end()
    assert told([event async for event in reader]) == {"b": "313", "a": "024"}


def test_interleaved__text_without_an_id_stays_between() -> None:
    log = RunLog(buffer=Buffer(max_events=4))
    for id_ in ("a", None, "a", None, "a"):
        log.add(Message, text="x", message_id=id_)
    assert [id_ for _, id_, _ in kept(log)] == ["a", None, "a", None, "a"]


def test_interleaved__long_texts_are_not_copied_again_and_again() -> None:
    log = RunLog(buffer=Buffer(max_events=2))
    for number in range(200):
        log.add(Message, text="x" * 10_000, message_id=f"m{number % 2}")
    sizes = [len(text) for _, _, text in kept(log)]
    assert sum(sizes) == 2_000_000
    assert max(sizes) < 2 * MERGED_LENGTH
    assert len(sizes) < 60
