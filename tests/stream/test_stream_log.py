"""The log and its readers: places, filters, the end, and bounds."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits.virtual import virtual_backend
from progress.golden import events, every_recording
from stream.counting import calls_made
from stream.strategies import EVENTS
from stream.wire_agent import end_turn, line, permission, say, update, wire_agent
from suite.tiers import few

from thinkwell import (
    Buffer,
    BufferOverflow,
    Message,
    PlanUpdate,
    Thought,
    ThoughtEvent,
    ToolStart,
    ToolUpdate,
    ViewReducer,
)
from thinkwell import events as ev

# Private: the log does no input and output; here its readers and writers take turns step by step, which
# no agent on a wire can be made to do.
from thinkwell._core.log.run_log import CHECKPOINT_EVERY, RunLog, running_clock
from thinkwell._core.log.shrink import MERGED_LENGTH
from thinkwell_acp._peer import READ_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell._core.log.run_log import EventReader

Overflow = Literal["coalesce", "drop_oldest", "error"]


def add_text(log: RunLog, *texts: str) -> None:
    for text in texts:
        log.add(Message, text=text)


async def taken(reader: EventReader, count: int) -> list[int]:
    with anyio.fail_after(5):
        return [(await anext(reader)).seq for _ in range(count)]


def messages(events: list[ThoughtEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Message)]


# Readers


async def test_reader__has_a_place_of_its_own_and_wakes_when_something_is_published() -> None:
    log = RunLog()
    readers = [log.reader() for _ in range(3)]
    seen: list[list[int]] = []

    async def read(reader: EventReader) -> None:
        seen.append([event.seq async for event in reader])

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for reader in readers:
                tasks.start_soon(read, reader)
            for _ in range(3):
                await anyio.wait_all_tasks_blocked()
                add_text(log, "a", "b")
                log.publish()
            log.end()
    assert seen == [[1, 2, 3, 4, 5, 6]] * 3


async def test_reader__two_tasks_on_one_share_its_events() -> None:
    log = RunLog()
    reader = log.reader()
    seen: list[int] = []

    async def read() -> None:
        seen.extend([event.seq async for event in reader])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        add_text(log, *"abcdef")
        log.end()
    assert sorted(seen) == [1, 2, 3, 4, 5, 6]


async def test_reader__cancelled_wherever_it_waits_it_loses_nothing() -> None:
    log = RunLog()
    add_text(log, *["x"] * (2 * CHECKPOINT_EVERY + 10))
    reader = log.reader()
    seen: list[int] = []
    cancelled = 0
    while len(seen) < len(log.events):
        with anyio.CancelScope() as scope:
            scope.cancel()
            seen.append((await anext(reader)).seq)
        if scope.cancelled_caught:
            cancelled += 1
            seen.append((await anext(reader)).seq)
    assert seen == [event.seq for event in log.events]
    assert cancelled == 3
    with anyio.move_on_after(0) as scope:
        await anext(reader)
    assert scope.cancelled_caught
    add_text(log, "y")
    assert (await anext(reader)).seq == seen[-1] + 1


async def test_reader__lets_others_run_even_behind_the_end() -> None:
    log = RunLog()
    log.end()
    with anyio.CancelScope() as scope:
        scope.cancel()
        async for _ in log.reader():
            pass
    assert scope.cancelled_caught
    with pytest.raises(StopAsyncIteration):
        await anext(log.reader())


async def test_reader__starts_behind_the_event_that_was_seen_already() -> None:
    log = RunLog()
    add_text(log, "a", "b", "c")
    assert await taken(log.reader(after=2), 1) == [3]
    ahead = log.reader(after=99)
    add_text(log, "d")
    assert await taken(ahead, 1) == [4]


async def test_end__nothing_comes_behind_it_but_the_view_counts_it() -> None:
    log = RunLog()
    add_text(log, "a")
    log.end()
    add_text(log, "b")
    assert [event.seq async for event in log.reader()] == [1]
    assert log.view().text == "ab"


# Filters


async def test_include__what_is_left_out_is_not_kept_and_counts_all_the_same() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream(include={"thought", "usage"})
        prompt = await wire.begin()
        await wire.write(
            say("Hello"),
            update("agent_thought_chunk", content={"type": "text", "text": "hm"}),
            update("tool_call", toolCallId="t", title="T"),
            update("usage_update", used=1, size=2),
            end_turn(prompt),
        )
        assert [(event.seq, event.type) async for event in stream] == [(1, "thought"), (2, "usage")]
        shown = stream.view
        assert (shown.text, shown.thoughts, list(shown.tools), shown.phase) == (
            "Hello",
            "hm",
            ["t"],
            "completed",
        )
        assert await stream.result == "Hello"
        assert [event.type async for event in stream.events(include="all")] == ["thought", "usage"]
        assert [event.type async for event in stream.events(include={"usage"}, after=0)] == ["usage"]
        assert [event.type async for event in stream.events(after=1)] == ["usage"]
        with pytest.raises(ValueError, match="include="):
            stream.events(include={"usages"})  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="include="):
            agent.think().text("Hi").stream(include="none")  # type: ignore[arg-type]


async def test_include__all_tells_a_run_from_its_start_to_its_end() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream(include="all")
        prompt = await wire.begin()
        await wire.write(say("Hello"), end_turn(prompt))
        events = [event async for event in stream]
        assert [event.type for event in events] == [
            *["phase", "phase"],
            "session",
            "turn_start",
            "phase",
            "phase",
            "message",
            "turn_end",
            "phase",
        ]
        assert [event.seq for event in events] == list(range(1, 10))
        assert [event.at for event in events] == sorted(event.at for event in events)
        phases = [event.phase for event in events if isinstance(event, ev.PhaseChanged)]
        assert phases == ["initializing", "starting", "prompted", "responding", "completed"]


@pytest.mark.long
async def test_unread__many_events_are_kept_for_later_readers() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        idle = stream.events()
        await wire.write_many(say("tok "), 50_000)
        await wire.write(end_turn(prompt))
        await stream.wait()
        count = 0
        async for event in stream:
            count += 1
            assert event.seq == count
        assert count == 50_000
        assert len(stream.view.text) == 200_000
        assert (await anext(idle)).seq == 1


# Buffers


@pytest.mark.parametrize("wrong", [{"max_events": 0}, {"max_events": 5, "overflow": "drop"}])
def test_buffer__wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Buffer"):
        Buffer(**wrong)


def test_coalesce__unread_text_becomes_few_events() -> None:
    log = RunLog(buffer=Buffer(max_events=10))
    for number in range(1000):
        add_text(log, str(number))
        assert len(log.events) <= 10
    assert "".join(messages(log.events)) == "".join(map(str, range(1000))) == log.view().text
    assert log.events[-1].seq == 1000


def test_coalesce__only_neighbours_of_one_message_in_plain_text() -> None:
    image = ev.ImageContent(data="", mime_type="image/png")
    loud = ev.TextContent(text="c", annotations={"priority": 1})
    log = RunLog(buffer=Buffer(max_events=1))
    fields: list[dict[str, Any]] = [
        {"text": "a", "message_id": "1"},
        {"text": "b", "message_id": "1"},
        {"text": "c", "message_id": "2"},
        {"content": loud, "message_id": "2"},
        {"text": "d", "message_id": "2"},
        {"content": image, "message_id": "2"},
        {"text": "e"},
        {"text": "f"},
    ]
    for field in fields:
        log.add(Message, **field)
    log.add(Thought, text="g")
    log.add(Thought, text="h")
    for _ in range(30):
        log.add(ToolStart, id="t")
    kept = [event for event in log.events if isinstance(event, Message | Thought)]
    assert [(event.seq, event.text) for event in kept] == [
        (2, "ab"),
        (3, "c"),
        (4, "c"),
        (5, "d"),
        (6, ""),
        (8, "ef"),
        (10, "gh"),
    ]
    assert kept[2].content == loud
    assert kept[4].content == image
    assert len(log.events) == len(kept) + 30


async def test_coalesce__never_across_the_place_of_a_reader() -> None:
    log = RunLog(buffer=Buffer(max_events=4))
    add_text(log, "a", "b", "c")
    reader, gone = log.reader(), log.reader()
    assert [await taken(reader, 2), await taken(gone, 1)] == [[1, 2], [1]]
    del gone
    add_text(log, "d", "e")
    assert [(event.seq, event.text) for event in log.events if isinstance(event, Message)] == [
        (2, "ab"),
        (5, "cde"),
    ]
    assert await taken(reader, 1) == [5]


def test_coalesce__long_texts_are_not_copied_again_and_again() -> None:
    log = RunLog(buffer=Buffer(max_events=2))
    for _ in range(100):
        add_text(log, "x" * 10_000)
    sizes = [len(text) for text in messages(log.events)]
    assert sum(sizes) == 1_000_000
    assert max(sizes) < MERGED_LENGTH + 10_000


def test_drop_oldest__only_text_goes_and_its_place_says_how_much() -> None:
    log = RunLog(buffer=Buffer(max_events=4, overflow="drop_oldest"))
    image = ev.ImageContent(data="", mime_type="image/png")
    add_text(log, "a", "b")
    log.add(ToolStart, id="t")
    log.add(Message, content=image)
    add_text(log, "c", "d", "e", "f")
    assert [(event.type, event.seq) for event in log.events] == [
        ("dropped", 2),
        ("tool_start", 3),
        ("message", 4),
        ("dropped", 5),
        ("message", 6),
        ("message", 7),
        ("message", 8),
    ]
    assert [event.count for event in log.events if isinstance(event, ev.Dropped)] == [2, 1]
    assert (log.view().text, log.view().dropped) == ("abcdef", 3)


async def test_error__fails_the_run_and_keeps_what_came() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream(buffer=Buffer(max_events=10, overflow="error"))
        prompt = await wire.begin()
        await wire.write(*[say(str(number)) for number in range(10)])
        reader = stream.events()
        for _ in range(10):
            await anext(reader)
        assert not stream.result.done()
        await wire.write(*[say(str(number)) for number in range(10, 30)])
        await wire.expect("session/cancel")
        await wire.write(say("bye"), end_turn(prompt, "cancelled"))
        with pytest.raises(BufferOverflow) as caught:
            await stream.result
        assert caught.value.max_events == 10
        await stream.wait()
        assert stream.view.phase == "failed"
        said = [event async for event in stream]
        assert "".join(messages(said)) == stream.view.text == "".join(map(str, range(30))) + "bye"
        assert len(said) < 20  # what came until the agent stopped was merged


@pytest.mark.parametrize("last", ["permission", "turn end"])
async def test_error__whatever_the_last_drop_is(last: str) -> None:
    async with wire_agent() as (agent, wire):
        most = 3 if last == "permission" else 5
        stream = (
            agent.think().text("Hi").stream(include="all", buffer=Buffer(max_events=most, overflow="error"))
        )
        prompt = await wire.begin()  # two events: the turn has begun, the phase
        if last == "permission":
            await wire.write(permission(1))
            await wire.expect("session/cancel")
        else:
            await wire.write(say("a"), say("b"))  # three, with the phase
        await wire.write(end_turn(prompt))
        with pytest.raises(BufferOverflow):
            await stream.result


@pytest.mark.parametrize("overflow", ["coalesce", "drop_oldest"])
@pytest.mark.parametrize("what", ["tools", "text", "both"])
def test_work_per_event_is_bounded(overflow: Overflow, what: str) -> None:
    def fill(count: int) -> None:
        log = RunLog(buffer=Buffer(max_events=10, overflow=overflow))
        readers = [log.reader() for _ in range(2)]
        for number in range(count):
            if what == "text" or (what == "both" and number % 3):
                log.add(Message, text="word")
            else:
                log.add(ToolStart, id="t")
            if not number % 100:
                readers[0] = log.reader(after=log.seq)  # it reads, now and then

    few, many = calls_made(lambda: fill(400)), calls_made(lambda: fill(3200))
    assert many < 10 * few


Step = tuple[Literal["message", "other message", "thought", "image", "tool", "open", "read", "close"], int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "message",
                "message",
                "message",
                "other message",
                "thought",
                "image",
                "tool",
                "open",
                "read",
                "close",
            ]
        ),
        st.integers(0, 9),
    ),
    max_size=120,
)


def texts(events: list[ThoughtEvent]) -> list[tuple[str, str | None, str]]:
    """Return what was said, message by message, and what came between: the same however the text is cut.

    Messages with ids may come interleaved; one without is told from the one before by what stands between.
    """
    told: list[tuple[str, str | None, str]] = []
    begin = 0  # of the messages with ids between which nothing else stands
    for event in events:
        if not isinstance(event, Message | Thought) or not isinstance(event.content, ev.TextContent):
            told.append(("other", str(event.seq), ""))
            begin = len(told)
            continue
        kind, id_ = event.type, event.message_id
        reach = range(begin, len(told)) if id_ is not None else range(max(len(told) - 1, 0), len(told))
        at = next((at for at in reach if told[at][:2] == (kind, id_)), None)
        if at is None:
            told.append((kind, id_, event.text))
        else:
            told[at] = (kind, id_, told[at][2] + event.text)
        if id_ is None:
            begin = len(told)
    return told


def solid(events: list[ThoughtEvent]) -> list[ThoughtEvent]:
    """Return what may neither be merged nor dropped."""
    return [
        event
        for event in events
        if not isinstance(event, ev.Dropped)
        and not (isinstance(event, Message | Thought) and isinstance(event.content, ev.TextContent))
    ]


def append(log: RunLog, what: str, number: int) -> None:
    match what:
        case "message":
            log.add(Message, text=str(number))
        case "other message":
            log.add(Message, text=str(number), message_id=str(number % 2))
        case "thought":
            log.add(Thought, text=str(number))
        case "image":
            log.add(Message, content=ev.ImageContent(data=str(number), mime_type="image/png"))
        case _:
            log.add(ToolStart, id=str(number))


@pytest.mark.parametrize("overflow", ["coalesce", "drop_oldest", "error"])
@settings(max_examples=few(60))
@given(steps=STEPS, limit=st.integers(1, 12))
async def test_every_reader_sees_all_in_order__however_reads_and_writes_take_turns(
    overflow: Overflow, steps: list[tuple[str, int]], limit: int
) -> None:
    log = RunLog(ev.ALL_TYPES, Buffer(max_events=limit, overflow=overflow))
    full = RunLog(ev.ALL_TYPES)
    readers: list[tuple[EventReader, list[ThoughtEvent]]] = [(log.reader(), [])]
    all_readers = list(readers)
    for what, number in steps:
        if what == "open":
            readers.append((log.reader(), []))
            all_readers.append(readers[-1])
        elif what == "read":
            reader, seen = readers[number % len(readers)]
            for _ in range(number):
                if reader.place < log.seq:
                    seen.append(await anext(reader))
        elif what == "close":
            if len(readers) > 1:
                readers.pop(number % len(readers))
        else:
            append(log, what, number)
            append(full, what, number)
    log.end()
    for reader, seen in all_readers:
        seen.extend([event async for event in reader])
        assert [event.seq for event in seen] == sorted({event.seq for event in seen})
        assert [(event.type, event.seq) for event in solid(seen)] == [
            (event.type, event.seq) for event in solid(full.events)
        ]
        if overflow == "drop_oldest":
            dropped = sum(event.count for event in seen if isinstance(event, ev.Dropped))
            assert len([event for event in seen if not isinstance(event, ev.Dropped)]) + dropped == len(
                full.events
            )
        else:
            assert texts(seen) == texts(full.events)
    assert log.view().text == full.view().text
    assert log.view().dropped == sum(event.count for event in log.events if isinstance(event, ev.Dropped))


# The clock


@pytest.mark.parametrize(
    "anyio_backend", [virtual_backend("asyncio"), virtual_backend("trio")], ids=["asyncio", "trio"]
)
async def test_the_clock_of_a_log_goes_with_virtual_time(anyio_backend: object) -> None:
    log = RunLog(clock=running_clock())
    await anyio.sleep(3600)
    assert log.now() == pytest.approx(3600)


def test_there_is_no_clock_without_an_event_loop() -> None:
    with pytest.raises(RuntimeError):
        running_clock()


# Long runs without readers

Mix = Literal["one message", "many messages", "two in turn", "tools between"]

COUNT = 40_000
MOST = 400

FEW = 12_000
"""Objects that may be left of such a run: hundreds of events of five each, and the messages. Without a bound
they would be two hundred thousand; forty thousand, where the view kept the pieces of its texts."""


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


def fill(log: RunLog, mix: Mix, after: Callable[[int], object] = bool, count: int = COUNT) -> None:
    for number in range(count):
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


@pytest.mark.long
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
    assert len(log.view().text) == 5 * (COUNT - (COUNT // 1000 if mix == "tools between" else 0))


@pytest.mark.long
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

    assert objects_left(lambda: fill(log, "two in turn", count=20_000)) < 1_000
    assert len(log.view().text) == 5 * 20_000


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


# The view, which is made at a look

SAID = st.builds(Message, text=st.sampled_from(["", "a", "bc"]), message_id=st.sampled_from([None, "1", "2"]))
COMMON = st.one_of(
    SAID,
    st.just(ev.TurnStarted(number=1)),
    st.just(Thought(text="hm")),
    st.builds(ToolUpdate, id=st.sampled_from("tu")),
)


@given(
    happened=st.lists(COMMON | EVENTS, max_size=30),
    include=st.sets(st.sampled_from(sorted(ev.ALL_TYPES))) | st.just(set(ev.DEFAULT_TYPES)),
    ended_at=st.integers(0, 30),
    looks=st.sets(st.integers(0, 30)),
)
def test_lazy_view__is_that_of_a_reducer_that_gets_each_event_at_once(
    happened: list[ThoughtEvent], include: set[str], ended_at: int, looks: set[int]
) -> None:
    log, eager = RunLog(frozenset(include), clock=lambda: 0.0), ViewReducer()
    for number, given_ in enumerate(happened):
        if number == ended_at:
            log.end()
        event = msgspec.structs.replace(given_, seq=log.seq + 1, at=float(number))
        log.append(event)
        eager.apply((event,))
        if number in looks:
            assert log.last_message() == eager.last_message()
            assert log.view() == eager.snapshot()
    assert log.last_message() == eager.last_message()
    assert log.view() == eager.snapshot()


@every_recording
@pytest.mark.parametrize(
    "include", [ev.DEFAULT_TYPES, frozenset({"message"}), frozenset({"tool_start", "phase"})]
)
def test_lazy_view__of_a_recorded_run_is_that_of_a_reducer_after_every_event(
    name: str, include: frozenset[str]
) -> None:
    log, eager = RunLog(include, clock=lambda: 0.0), ViewReducer()
    for recorded in events(name):
        event = msgspec.structs.replace(recorded, seq=log.seq + 1)
        log.append(event)
        eager.apply((event,))
        assert log.view() == eager.snapshot()
        assert log.last_message() == eager.last_message()


def test_lazy_view__nothing_is_reduced_before_it_is_used() -> None:
    log = RunLog(frozenset({"message"}))
    log.add(ev.TurnStarted, number=1)
    for number in range(200):
        log.add(Message, text="word", message_id=f"{number // 50}")
        log.add(Thought, text="hm")
        log.add(ev.UsageUpdate, used=number, size=1000)
    first, second = calls_made(log.view), calls_made(log.view)
    assert first > 400 + second


@pytest.mark.long
def test_lazy_view__events_that_are_left_out_take_the_room_of_their_text() -> None:
    log = RunLog(frozenset({"message"}))
    log.add(ev.TurnStarted, number=1)
    before, most = sys.getallocatedblocks(), 0
    for number in range(50_000):
        log.add(Thought, text="hm", message_id="1")
        log.add(ev.UsageUpdate, used=number, size=1000)
        log.add(ToolUpdate, id="t", status="in_progress")
        log.add(PlanUpdate, entries=(ev.PlanEntry(content="look"),))
        if not number % 1000:
            most = max(most, sys.getallocatedblocks())
    assert most - before < 10_000
    assert len(log.view().thoughts) == 100_000


def test_a_read_of_the_pipe_fits_between_two_rests_of_a_reader() -> None:
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
    assert texts([event async for event in reader]) == [("message", "b", "313"), ("message", "a", "024")]


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
