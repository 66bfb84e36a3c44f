"""What goes wrong while handlers listen: the same over ACP and in lines, unless a test says otherwise."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from limits.virtual import Stopwatch, virtual_backend
from listen.talkers import (
    LIMIT,
    AcpTurn,
    HangUp,
    LineTurn,
    Protocol,
    Reported,
    Turn,
    answering,
    hanging,
    talking,
)

from thinkwell import AgentExited, wait_for_answer
from thinkwell import events as ev
from thinkwell.errors import AgentReported
from thinkwell.listen import AgentPartial, AgentQuestion, Handlers, Transcript, listen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell import Agent

pytestmark = pytest.mark.virtual_time


async def plain(turn: Turn) -> str:
    """Answer at once."""
    return f"did {turn.prompt}"


# Long lines

MB = 1_000_000

LONG = {"partial": "as a piece of text", "question": "as a question", "result": "as the result"}


def long_scene(kind: str, text: str) -> Callable[[Turn], Awaitable[str]]:
    async def scene(turn: Turn) -> str:
        if kind == "partial":
            await turn.partial(text)
        elif kind == "question":
            assert await turn.ask(text) == "heard"
        else:
            return text
        return "done"

    return scene


async def hear(protocol: Protocol, kind: str, size: int) -> None:
    """Hear a line of a size."""
    text = "x" * size
    sizes: list[int] = []
    handlers = Handlers()

    @handlers.on("question")
    async def _(question: AgentQuestion) -> str:
        sizes.append(len(question.question))
        return "heard"

    @handlers.on("partial")
    async def _(partial: AgentPartial) -> None:
        if len(partial.text) > len("done"):
            sizes.append(len(partial.text))

    async with talking(protocol, long_scene(kind, text), plain) as (agent, talker):
        said = await agent.think().text("Go").listen(handlers)
        assert said == (text if kind == "result" else "done")
        assert await agent.think().text("on").listen(handlers) == "did on"
    assert max(sizes, default=size) == size
    assert talker.strays == []


ON_ONE_LOOP = pytest.mark.parametrize(
    "anyio_backend",
    [virtual_backend("asyncio"), pytest.param(virtual_backend("trio"), marks=pytest.mark.long)],
)

SIZES = pytest.mark.parametrize("size", [2 * MB, pytest.param(20 * MB, marks=pytest.mark.long)])


@pytest.mark.parametrize("kind", LONG)
@SIZES
@ON_ONE_LOOP
async def test_the_memory_that_a_long_line_takes_is_bounded(kind: str, size: int, protocol: Protocol) -> None:
    tracemalloc.start()
    try:
        await hear(protocol, kind, size)
        _, peak = tracemalloc.get_traced_memory()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(f"{protocol} {kind}: peak {peak / size:.1f} times its size")  # noqa: T201 - the figure
    assert peak < 18 * size + 6 * MB, "of which the agent of the test has some"
    assert held < 3 * size + 6 * MB, "what is held is not more for having been long"


# Answers that come too late

LATE = "late"


class Stubborn:
    """A handler of questions that does not heed that it is cancelled, and returns a value all the same."""

    def __init__(self) -> None:
        self.thinking = anyio.Event()
        self.release = anyio.Event()
        self.done = anyio.Event()

    async def __call__(self, _question: dict[str, Any]) -> str:
        self.thinking.set()
        with anyio.CancelScope(shield=True):
            await self.release.wait()
        self.done.set()
        return LATE


@pytest.mark.parametrize("id_", [None, 7])
async def test_an_answer_after_the_end_of_its_turn_goes_nowhere(id_: int | None, protocol: Protocol) -> None:
    """Not to the agent, nor into the next turn, which asks the very same while the handler still thinks."""
    transcript = Transcript()
    stubborn = Stubborn()
    slow = Handlers(transcript=transcript)
    slow.on("question")(stubborn)
    said: list[str] = []

    async def leaves(turn: Turn) -> str:
        await turn.asks("What is it called?", id=id_)
        await stubborn.thinking.wait()
        return "never mind"

    async def asks(turn: Turn) -> str:
        return f"It is called {await turn.ask('What is it called?', id=id_)}"

    async def first(agent: Agent) -> None:
        said.append(await agent.think().text("one").listen(slow))

    with anyio.fail_after(LIMIT):
        async with talking(protocol, leaves, asks) as (agent, talker):
            gate = anyio.Event()
            quick = Handlers(transcript=transcript)

            @quick.on("question", by="quick")
            async def _(_question: object) -> str:
                gate.set()
                stubborn.release.set()  # now, while this one is open
                await stubborn.done.wait()
                for _ in range(100):
                    await anyio.lowlevel.checkpoint()
                return "Files"

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first, agent)
                await stubborn.thinking.wait()
                assert await agent.think().text("two").listen(quick) == "It is called Files"
                assert gate.is_set()
            assert said == ["never mind"]
            assert await agent.think().text("three").listen(answering("Notes")) == "It is called Notes"
    withdrawn, answered, again = (asked.told for asked in talker.asked)
    assert withdrawn == ([None] if protocol == "acp" else []), "in lines, nobody reads an answer any more"
    assert (answered, again) == (["Files"], ["Notes"])
    assert talker.strays == []
    assert [(record.answer, record.by) for record in transcript] == [(None, "cancel"), ("Files", "quick")]


async def test_an_answer_after_the_question_was_taken_back_goes_nowhere() -> None:
    """Only ACP has a word for that."""
    transcript = Transcript()
    stubborn = Stubborn()
    handlers = Handlers(transcript=transcript)
    handlers.on("question")(stubborn)

    async def takes_back(turn: Turn) -> str:
        assert isinstance(turn, AcpTurn)
        asked = await turn.asks("What is it called?")
        await stubborn.thinking.wait()
        await turn.withdraw(turn.last_request)
        assert await asked.answer() is None
        stubborn.release.set()
        await stubborn.done.wait()
        second = await turn.asks("And now?")
        assert await second.answer() == LATE, "the next question is answered by itself"
        return "ok"

    with anyio.fail_after(LIMIT):
        async with talking("acp", takes_back) as (agent, talker):
            assert await agent.think().text("one").listen(handlers) == "ok"
    assert [asked.told for asked in talker.asked] == [[None], [LATE]]
    assert talker.strays == []
    assert [(record.answer, record.by) for record in transcript] == [(None, "cancel"), (LATE, "handler")]


@pytest.mark.parametrize("has_id", [False, True])
async def test_a_late_answer_to_what_is_no_question_goes_nowhere(has_id: bool) -> None:
    """Programs may ask in types of their own. The next turn of the session says the very same."""
    stubborn = Stubborn()
    slow, quick = Handlers(), Handlers()
    slow.on("hint")(stubborn)
    id_ = 7 if has_id else None

    @quick.on("hint")
    async def _(_hint: object) -> str:
        stubborn.release.set()
        await stubborn.done.wait()
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        return "Files"

    async def leaves(turn: Turn) -> str:
        assert isinstance(turn, LineTurn)
        await turn.asks_else("hint", about="a name", id=id_)
        await stubborn.thinking.wait()
        return "never mind"

    async def asks(turn: Turn) -> str:
        assert isinstance(turn, LineTurn)
        asked = await turn.asks_else("hint", about="a name", id=id_)
        return f"It is called {await asked.answer()}"

    said: list[str] = []

    with anyio.fail_after(LIMIT):
        async with talking("ndjson", leaves, asks) as (agent, talker), agent.session() as session:

            async def first() -> None:
                said.append(await session.think().text("one").listen(slow))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first)
                await stubborn.thinking.wait()
                assert await session.think().text("two").listen(quick) == "It is called Files"
    assert said == ["never mind"]
    assert [asked.told for asked in talker.asked] == [[], ["Files"]]
    assert talker.strays == []


# Handlers that never answer


async def never(_message: object) -> None:
    await anyio.sleep_forever()


def verdicts(events: list[ev.ThoughtEvent]) -> list[tuple[str | None, str, str]]:
    return [(event.verdict, event.by, event.why) for event in events if isinstance(event, ev.QuestionVerdict)]


async def asks_both(turn: Turn) -> str:
    title = await turn.ask("What is it called?")
    return f"{title}, {await turn.approve('Write it')}"


async def test_a_handler_that_never_answers_makes_room_for_the_next(protocol: Protocol) -> None:
    """First its deadline, then `on_question` in its order, then whoever answers from outside."""
    handlers = Handlers(transcript=(transcript := Transcript()))
    handlers.on("question", timeout=20, by="sleeper")(never)
    handlers.on("approval", timeout=30, by="doorman")(never)
    asked_next: list[str] = []

    async def shrugs(question: Any) -> None:
        asked_next.append(question.title)

    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks_both, on_question=[shrugs, wait_for_answer]) as (agent, _talker):
            stream = agent.think().text("one").stream(include="all")
            watch = Stopwatch()
            waited: list[float] = []

            async def outside() -> None:
                answers: list[Any] = [{"answer": "Files"}, "allow"]
                events: list[ev.ThoughtEvent] = []
                async for event in stream:
                    events.append(event)
                    last = verdicts(events)[-1:]
                    if isinstance(event, ev.QuestionVerdict) and last[0][2] == "the handler left it open":
                        waited.append(watch.seconds)
                        stream.answer(event.id, answers.pop(0))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outside)
                assert await listen(stream, handlers) == "Files, True"
            events = [event async for event in stream]
    assert waited == [20, 50]
    assert asked_next == ["What is it called?", "Write it"]
    assert verdicts(events) == [
        (None, "sleeper", "the sleeper did not answer within 20 seconds"),
        (None, "handler", "the handler left it open"),
        (None, "doorman", "the doorman did not answer within 30 seconds"),
        (None, "handler", "the handler left it open"),
    ]
    said = {"answer": "Files"} if protocol == "acp" else "Files"
    assert [(record.answer, record.by, record.seconds) for record in transcript] == [
        (said, "human", 20),
        (True, "human", 30),
    ]


async def test_a_question_without_a_further_handler_is_declined(protocol: Protocol) -> None:
    handlers = Handlers()
    handlers.on("question", timeout=20)(never)
    handlers.on("approval", timeout=30)(never)
    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks_both, permissions=None) as (agent, _talker):
            watch = Stopwatch()
            assert await agent.think().text("one").listen(handlers) == "None, False"
            assert watch.seconds == 50


# Ends in the middle


async def test_the_connection_ends_while_a_handler_runs(protocol: Protocol) -> None:
    """Its question is withdrawn, and it is cancelled. What came before is handled to its end."""
    thinking, release = anyio.Event(), anyio.Event()
    log: list[str] = []
    handlers = Handlers(transcript=(transcript := Transcript()))

    @handlers.on("question")
    async def _(_question: object) -> None:
        try:
            await hanging(thinking, log)
        finally:
            release.set()

    @handlers.on("progress", concurrency=1)
    async def _(progress: dict[str, Any]) -> None:
        await release.wait()
        log.append(progress["message"])

    async def dies(turn: Turn) -> str:
        await turn.progress("one")
        await turn.progress("two")
        await turn.asks("What is it called?")
        await thinking.wait()
        raise HangUp

    with anyio.fail_after(LIMIT):
        async with talking(protocol, dies) as (agent, _talker):
            with pytest.raises(AgentExited):
                await agent.think().text("one").listen(handlers)
            log.append("returned")
    assert log[0] == "cancelled"
    assert list(dict.fromkeys(log)) == ["cancelled", "one", "two", "returned"]
    assert [(record.answer, record.by) for record in transcript] == [(None, "cancel")]


async def test_an_error_while_a_handler_runs(protocol: Protocol) -> None:
    thinking = anyio.Event()
    log: list[str] = []
    handlers = Handlers()

    @handlers.on("question")
    async def _(_question: object) -> None:
        await hanging(thinking, log)

    @handlers.on("error")
    async def _(error: dict[str, Any]) -> None:
        log.append(error["message"])

    async def fails(turn: Turn) -> str:
        await turn.asks("What is it called?")
        await thinking.wait()
        raise Reported("No disk")

    with anyio.fail_after(LIMIT):
        async with talking(protocol, fails, plain) as (agent, _talker):
            with pytest.raises(AgentReported, match="No disk"):
                await agent.think().text("one").listen(handlers)
            assert await agent.think().text("two").listen(handlers) == "did two"
    assert log == ["cancelled", "No disk"]
