"""What is handled when: one at a time, several at once, in which order, and which answer goes out first."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from anyio.lowlevel import checkpoint
from listen.line_programs import hears, listened, message, program
from listen.talkers import LIMIT, SOON, talking

from thinkwell import PermissionPolicy
from thinkwell import events as ev
from thinkwell.listen import AgentApproval, AgentProgress, AgentQuestion, Handlers, Transcript, listen
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lines.program import Program
    from listen.line_programs import Play
    from listen.talkers import Asked, Protocol
    from listen.talkers import Turn as TalkersTurn

    from thinkwell import Question

pytestmark = pytest.mark.anyio

request: ContextVar[str] = ContextVar("request", default="nobody's")


async def run(play: Play, handlers: Handlers) -> None:
    assert await listened(play, handlers) == "Done"


class Gauge:
    """How many are at work."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await checkpoint()
        self.now -= 1


async def test_as_many_at_once_as_was_said() -> None:
    handlers = Handlers()
    gauge = Gauge()
    begun: list[str] = []

    @handlers.on("progress", concurrency=3)
    async def note(progress: AgentProgress) -> None:
        begun.append(progress.message)
        await gauge()

    async def play(program: Program) -> None:
        await program.writes(*(message("progress", message=str(number)) for number in range(20)))

    await run(play, handlers)
    assert gauge.most == 3
    assert set(begun[:3]) == {"0", "1", "2"}
    assert len(begun) == 20


@pytest.mark.parametrize("kinds", [("log", "question", "progress"), ("progress", "question", "log")])
async def test_messages_of_all_types_are_handled_in_the_order_of_their_lines(kinds: tuple[str, ...]) -> None:
    handlers = Handlers()
    gauge = Gauge()
    seen: list[int] = []

    async def note(fields: dict[str, Any]) -> str | None:
        await gauge()
        seen.append(fields["number"])
        return "yes" if "question" in fields else None

    for kind in kinds:
        handlers.on(kind)(note)
    order = ["progress", "question", "log", "log", "question", "question", "progress", "log"] * 3

    async def play(program: Program) -> None:
        lines = [message(kind, number=n, **{kind: kind}) for n, kind in enumerate(order)]
        await program.writes(*lines)
        assert [await program.value() for kind in order if kind == "question"] == ["yes"] * 9

    await run(play, handlers)
    assert seen == list(range(len(order)))
    assert gauge.most == 1


async def test_a_question_that_a_policy_decides_holds_nothing_up() -> None:
    handlers = Handlers()
    seen: list[str] = []

    @handlers.on("approval")
    async def approve(approval: AgentApproval) -> bool:
        seen.append(approval.description)
        return True

    @handlers.on("question")
    async def answer(question: AgentQuestion) -> str:
        seen.append(question.question)
        return "yes"

    @handlers.on("progress")
    async def note(progress: AgentProgress) -> str:
        seen.append(progress.message)
        return "noted"

    async def play(program: Program) -> None:
        await program.writes(
            message("question", question="Go on?"),
            message("approval", description="Write"),
            message("progress", message="a"),
        )
        answers = [await program.response() for _ in range(3)]
        assert {answer["in_reply_to"]: answer["value"] for answer in answers} == {
            "question": "yes",
            "approval": False,
            "progress": "noted",
        }

    assert await listened(play, handlers, permissions=PermissionPolicy(otherwise="deny")) == "Done"
    assert seen == ["Go on?", "a"]


async def test_a_question_that_the_result_comes_with_holds_nothing_up() -> None:
    handlers = Handlers()
    seen: list[str] = []
    handlers.on("question")(hears)

    @handlers.on("result")
    async def note(result: dict[str, str]) -> None:
        seen.append(result["text"])

    async def play(program: Program) -> None:
        await program.writes(message("question", question="Go on?"), message("result", text="Done"))

    assert await listened(play, handlers) == "Done"
    assert seen == ["Done"]


async def test_types_with_a_concurrency_of_their_own_wait_for_no_others_and_the_reader_waits_for_none() -> (
    None
):
    handlers = Handlers()
    open_ = anyio.Event()

    @handlers.on("progress", concurrency=1)
    async def wait(progress: AgentProgress) -> None:
        await open_.wait()

    @handlers.on("question")
    async def answer(question: AgentQuestion) -> str:
        return "yes"

    async def play(program: Program) -> None:
        await program.say("progress", message="one")
        for number in range(100):
            await program.say("progress", message=str(number))
        assert await program.ask("question", question="Go on?") == "yes"
        open_.set()

    await run(play, handlers)


# Answers to messages that are no questions


async def test_answers_without_ids_keep_the_order_of_their_messages() -> None:
    handlers = Handlers()
    first = anyio.Event()
    ended: list[int] = []

    @handlers.on("check", concurrency=10)
    async def check(fields: dict[str, Any]) -> int | None:
        number: int = fields["number"]
        if number == 0:
            await first.wait()
        ended.append(number)
        if len(ended) == 9:
            first.set()
        return None if number == 5 else number

    async def play(program: Program) -> None:
        await program.writes(*(message("check", number=number) for number in range(10)))
        assert [await program.value() for _ in range(9)] == [0, 1, 2, 3, 4, 6, 7, 8, 9]

    await run(play, handlers)
    assert ended[-1] == 0


async def test_answers_with_ids_go_out_as_they_come() -> None:
    handlers = Handlers()
    first = anyio.Event()

    @handlers.on("check", concurrency=2)
    async def check(fields: dict[str, Any]) -> int:
        if fields["id"] == 0:
            await first.wait()
        number: int = fields["id"]
        return number

    async def play(program: Program) -> None:
        await program.writes(message("check", id=0), message("check", id=1))
        assert (await program.response())["id"] == 1
        first.set()
        assert (await program.response())["id"] == 0

    await run(play, handlers)


async def test_over_acp_only_questions_have_answers(caplog: pytest.LogCaptureFixture) -> None:
    handlers = Handlers()

    @handlers.on("partial")
    async def answer(partial: dict[str, Any]) -> str:
        return "thank you"

    @handlers.on("result")
    async def ignored(result: dict[str, Any]) -> str:
        return "thank you"

    played = ScriptedAgent(script.says("One ").uses("Read").says("two"))
    async with played.open() as agent:
        with anyio.fail_after(SOON):
            await agent.think().text("Go").listen(handlers)
    (record,) = [record for record in caplog.records if "is dropped" in record.message]
    assert record.levelname == "WARNING"
    assert "answer()" in record.message


# Where handlers run


async def test_handlers_that_are_not_async_run_in_threads() -> None:
    handlers = Handlers()
    main = threading.get_ident()
    threads: list[int] = []
    asked = anyio.Event()

    @handlers.on("question")
    def answer(question: AgentQuestion) -> str:
        threads.append(threading.get_ident())
        anyio.from_thread.run_sync(asked.set)
        return "yes"

    @handlers.on("approval", concurrency=1)
    def approve(approval: AgentApproval) -> Awaitable[bool]:
        async def later() -> bool:
            await asked.wait()
            return threading.get_ident() == main

        return later()

    async def play(program: Program) -> None:
        await program.writes(message("approval", description="Write"), message("question", question="Go on?"))
        told = [await program.response() for _ in range(2)]
        assert {response["in_reply_to"]: response["value"] for response in told} == {
            "approval": True,
            "question": "yes",
        }

    await run(play, handlers)
    assert main not in threads


async def test_handlers_see_what_their_caller_sees() -> None:
    handlers = Handlers()
    seen: list[str] = []

    @handlers.on("progress")
    async def note(progress: AgentProgress) -> None:
        seen.append(request.get())
        request.set("a handler's")

    @handlers.on("log")
    def in_thread(log: object) -> None:
        seen.append(request.get())

    async def play(program: Program) -> None:
        await program.say("progress", message="a")
        await program.say("progress", message="b")
        await program.say("log", message="c")

    async with program(play) as agent:
        token = request.set("mine")
        with anyio.fail_after(SOON):
            await agent.think().text("Go").listen(handlers)
        request.reset(token)
    assert seen == ["mine"] * 3


# Several listens


async def test_the_same_handlers_listen_to_several_runs_at_once() -> None:
    handlers = Handlers()
    both = anyio.Event()
    seen: list[str] = []

    @handlers.on("question")
    async def answer(question: AgentQuestion) -> str:
        seen.append(question.question)
        if len(seen) == 2:
            both.set()
        await both.wait()  # one at a time in each run, and there are two
        return f"{question.question}!"

    def asks(text: str) -> Callable[[Program], Awaitable[object]]:
        async def play(program: Program) -> None:
            assert await program.ask("question", question=text) == f"{text}!"

        return play

    async with anyio.create_task_group() as group:
        for text in ("one", "two"):
            group.start_soon(run, asks(text), handlers)
    assert sorted(seen) == ["one", "two"]


async def test_a_run_has_one_listener() -> None:
    async def play(program: Program) -> None:
        await program.say("progress", message="one")

    async with program(play) as agent:
        stream = agent.think().text("Go").stream()
        with anyio.fail_after(SOON):
            async with anyio.create_task_group() as group:
                group.start_soon(listen, stream, Handlers())
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(RuntimeError, match="has a listener already"):
                    await listen(stream, Handlers())


# Both sorts, over ACP and in lines

MANY = 20


async def asks_at_once(turn: TalkersTurn) -> str:
    """Write many questions of both sorts in one block."""
    asked: list[Asked] = []
    async with turn.talker.at_once():
        for number in range(MANY):
            asked += await turn.asks(f"q{number}"), await turn.asks_for(f"a{number}")
    return " ".join([str(await one.answer()) for one in asked])


TOLD = " ".join(f"said q{number} True" for number in range(MANY))


@pytest.mark.parametrize("concurrency", [None, 1, 3])
async def test_handlers_go_by_the_order(concurrency: int | None, protocol: Protocol) -> None:
    begun: list[str] = []
    running = [0, 0]
    handlers = Handlers(transcript=(transcript := Transcript()))

    async def think(what: str, index: int) -> None:
        begun.append(what)
        running[index] += 1
        assert running[index] <= (concurrency or 1)
        for _ in range(len(begun) * 7 % 5):
            await anyio.lowlevel.checkpoint()
        running[index] -= 1

    @handlers.on("question", concurrency=concurrency)
    async def _(question: dict[str, Any]) -> str:
        await think(question["question"], 0)
        return f"said {question['question']}"

    @handlers.on("approval", concurrency=concurrency)
    async def _(approval: dict[str, Any]) -> bool:
        await think(approval["description"], 1)
        return True

    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks_at_once) as (agent, _talker):
            stream = agent.think().text("Go").stream(include="all")
            assert await listen(stream, handlers) == TOLD
            asked = [event.title async for event in stream if isinstance(event, ev.QuestionAsked)]
    both = [f"{letter}{number}" for number in range(MANY) for letter in "qa"]
    if concurrency is None:
        assert begun == [record.question for record in transcript] == both
    for letter in "qa":
        expected = [f"{letter}{number}" for number in range(MANY)]
        if concurrency == 1:
            assert [what for what in begun if what[0] == letter] == expected
            said = [record.question for record in transcript if record.question[0] == letter]
            assert said == expected
        assert sorted(what for what in begun if what[0] == letter) == sorted(expected)
    assert asked == both, "as they came"


async def test_questions_without_handlers_keep_their_order_too(protocol: Protocol) -> None:
    begun: list[str] = []

    async def rules(question: Question) -> Any:
        begun.append(question.title)
        return True if question.title.startswith("a") else {"answer": f"said {question.title}"}

    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks_at_once, on_question=rules) as (agent, _talker):
            assert await agent.think().text("Go").run() == TOLD
    assert begun == [f"{letter}{number}" for number in range(MANY) for letter in "qa"]
