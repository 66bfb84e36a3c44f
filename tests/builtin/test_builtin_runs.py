"""What a user of the built-in agent sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import pytest
from pydantic import BaseModel, Field, field_validator

from thinkwell import (
    Message,
    PlanUpdate,
    ResultInvalid,
    Thought,
    ThoughtCancelled,
    ThoughtEvent,
    ToolDone,
    ToolError,
    ToolStart,
)
from thinkwell.events import UsageUpdate

if TYPE_CHECKING:
    from pathlib import Path

    from builtin.tool_box import OpenBuiltin

LIMIT = 20


class Issue(BaseModel):
    path: str
    line: Annotated[int, Field(ge=1)]
    severity: Literal["low", "medium", "high"]


class Review(BaseModel):
    """A review."""

    title: str
    summary: str
    score: Annotated[int, Field(ge=1, le=5)]
    files: list[str]
    issues: Annotated[list[Issue], Field(max_length=2)]
    verdict: Literal["approve", "comment", "reject"]
    todos: int


def thoughts(events: list[ThoughtEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Thought))


def messages(events: list[ThoughtEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Message))


async def test_instructions_are_not_part_of_what_is_asked(builtin: OpenBuiltin) -> None:
    async with builtin() as agent:
        task = agent.think().text("Which files are here?")
        plain = await task.run()
        assert await task.system("Answer as notes.md says.", fallback="prompt").run() == plain


async def test_a_run_plans_reads_tells_and_returns_a_result_of_facts(builtin: OpenBuiltin) -> None:
    with anyio.fail_after(LIMIT):
        async with builtin() as agent:
            stream = agent.think(Review).text("Review this project.").stream(include="all")
            events = [event async for event in stream]
            review = await stream.result
    assert review == Review(
        title="Shapes",
        summary="2 files, mostly Python: 20 lines, 2 functions, 1 class, 2 headings and 1 TODO. "
        "The longest function is area in shapes.py with 3 lines.",
        score=4,
        files=["README.md", "shapes.py"],
        issues=[
            Issue(path="shapes.py", line=11, severity="low"),
            Issue(path="shapes.py", line=14, severity="low"),
        ],
        verdict="comment",
        todos=1,
    )
    first = next(event for event in events if isinstance(event, Thought))
    assert "I am thinkwell's built-in agent. I have no model" in thoughts(events)
    assert events.index(first) < next(i for i, event in enumerate(events) if isinstance(event, ToolStart))
    plans = [[entry.status for entry in event.entries] for event in events if isinstance(event, PlanUpdate)]
    assert plans == [
        ["in_progress", "pending", "pending"],
        ["completed", "in_progress", "pending"],
        ["completed", "completed", "in_progress"],
        ["completed", "completed", "completed"],
    ]
    tools = [(event.kind, event.title) for event in events if isinstance(event, ToolStart)]
    assert tools == [
        ("search", "List the files of the project"),
        ("read", "Read README.md"),
        ("read", "Read shapes.py"),
        ("other", "return_result"),
    ]
    assert all(event.status == "completed" for event in events if isinstance(event, ToolDone))
    assert [event.used for event in events if isinstance(event, UsageUpdate)] == sorted(
        event.used for event in events if isinstance(event, UsageUpdate)
    )
    assert "Line 11 is left open: TODO times the radius" in thoughts(events)
    assert "no docstring has square" in thoughts(events)


async def test_it_shows_its_result_while_it_writes_it(builtin: OpenBuiltin) -> None:
    async with builtin() as agent:
        stream = agent.think(Review).text("Review this project.").stream()
        drafts = [draft async for draft in stream.drafts()]
        assert drafts[-1].value == dict(await stream.result)
    assert len(drafts) > 5
    assert {draft.attempt for draft in drafts} == {1}


async def test_the_texts_come_in_small_chunks_grouped_by_message(builtin: OpenBuiltin) -> None:
    async with builtin() as agent:
        events = [event async for event in agent.think().text("Hello.").stream()]
    chunks = [event for event in events if isinstance(event, Thought)]
    assert max(len(event.text.split()) for event in chunks) <= 3
    ids = [event.message_id for event in chunks]
    assert None not in ids
    assert 1 < len(set(ids)) < len(ids)


async def test_text_is_answered_in_messages(builtin: OpenBuiltin) -> None:
    async with builtin() as agent:
        stream = agent.think().text("What is in shapes.py?").stream()
        events = [event async for event in stream]
        last = await stream.result
    assert messages(events).startswith("shapes.py is Python: 15 lines, 2 functions")
    assert "shapes.py:11 says TODO: times the radius" in last


async def test_resources_and_quotations_are_examined(builtin: OpenBuiltin, project: Path) -> None:
    async with builtin() as agent:
        stream = (
            agent.think()
            .text("Compare.")
            .resource(project / "shapes.py")
            .quote("def quoted():\n    pass\n", tag="source")
            .quote("name,age\n", tag="people.csv.txt")
            .code("fn main() {}\n", language="rust")
            .stream()
        )
        await stream.result
        said = stream.view.thoughts
    assert "shapes.py is Python" in said
    assert "source.py is Python: 2 lines, 1 function." in said
    assert "code.rs is Rust: 1 line." in said
    assert "people.csv.txt is text: 1 line." in said
    assert stream.view.tools == {}


async def test_a_tool_is_called_with_arguments_made_of_facts_and_its_answer_is_used(
    builtin: OpenBuiltin,
) -> None:
    asked: list[str] = []

    def star_count(path: str) -> int:
        """Count the stars of a file."""
        asked.append(path)
        return 42

    class Rated(BaseModel):
        stars: int

    async with builtin() as agent:
        stream = agent.think(Rated).text("Rate shapes.py.").tool(star_count).stream()
        assert await stream.result == Rated(stars=42)
        await stream.wait()
        assert "star_count answers: 42" in stream.view.thoughts
        assert "Ask star_count" in [entry.content for entry in stream.view.plan]
    assert asked == ["shapes.py"]


async def test_answers_of_tools_are_part_of_a_text_answer(builtin: OpenBuiltin) -> None:
    def about(topic: str) -> dict[str, str]:
        """Say what a topic is."""
        return {"topic": topic}

    async with builtin() as agent:
        stream = agent.think().text("Look at shapes.py").tool(about).stream()
        await stream.result
    assert 'about answers: {"topic": "Areas of shapes."}' in stream.view.text


async def test_a_tool_that_is_never_content_is_given_up(builtin: OpenBuiltin) -> None:
    asked: list[int] = []

    def sample(count: int) -> str:
        """Take a sample."""
        asked.append(count)
        raise ToolError(f"count: Input should be less than {count}")

    async with builtin() as agent:
        stream = agent.think().text("Go").tool(sample).stream()
        await stream.result
        assert "sample refuses that, so I correct it" in stream.view.thoughts
        assert "sample does not help: count: Input should be less than -1" in stream.view.thoughts
    assert asked == [2, 1, 0, -1]


async def test_a_tool_whose_arguments_cannot_be_made_is_left_out(builtin: OpenBuiltin) -> None:
    def pay(card: Annotated[str, Field(pattern=r"^\d{16}$")]) -> str:
        """Pay with a card."""
        raise AssertionError(card)

    async with builtin() as agent:
        stream = agent.think().text("Go").tool(pay).stream()
        await stream.result
    assert "I cannot call pay: card: I have no fact that fits" in stream.view.thoughts


async def test_a_result_that_breaks_a_rule_outside_of_the_schema_is_corrected(builtin: OpenBuiltin) -> None:
    class Small(BaseModel):
        lines: int

        @field_validator("lines")
        @classmethod
        def few(cls, value: int) -> int:
            if value > 7:
                raise ValueError("must be no more than 7")
            return value

    async with builtin() as agent:
        assert await agent.think(Small).text("How long is shapes.py?").run() == Small(lines=7)
        assert await agent.think(list[Small]).text("How long is shapes.py?").run() == [Small(lines=7)]


async def test_a_result_that_cannot_be_corrected_is_an_error_and_no_hang(builtin: OpenBuiltin) -> None:
    class Never(BaseModel):
        lines: int

        @field_validator("lines")
        @classmethod
        def never(cls, value: int) -> int:
            raise ValueError("this is not to my taste")

    async with builtin() as agent:
        stream = agent.think(Never).text("Go").stream(retries=0)
        with pytest.raises(ResultInvalid):
            await stream.result
        await stream.wait()
        assert "My result was not accepted" in stream.view.text


async def test_a_bare_number_answers_the_question(builtin: OpenBuiltin) -> None:
    async with builtin() as agent:
        for question, answer in (
            ("How many functions are in shapes.py?", 2),
            ("How many lines has shapes.py?", 15),
            ("Count the files.", 2),
        ):
            assert await agent.think(int).text(question).run() == answer, question


async def test_a_session_remembers_what_was_read(builtin: OpenBuiltin) -> None:
    @dataclass
    class Count:
        todos: int

    async with builtin() as agent, agent.session() as session:
        first = session.think().text("Read shapes.py").stream()
        await first.result
        second = session.think(Count).text("How much is left open?").stream()
        assert await second.result == Count(todos=1)
        await second.wait()
        assert "I go by what I have read before: shapes.py" in second.view.thoughts
        assert "I have no model" not in second.view.thoughts
        assert await session.think(list[str]).text("Which files?").run() == ["shapes.py"]


@pytest.mark.fast_time(0.1)  # slowly: the agent has 0.3 s to list the tools again
async def test_the_tools_of_a_session_may_change(builtin: OpenBuiltin) -> None:
    def one() -> str:
        """One."""
        return "first"

    def two() -> str:
        """Two."""
        return "second"

    async with builtin() as agent, agent.session() as session:
        await session.think().text("a").tool(one).run()
        stream = session.think().text("b").tool(two).stream()
        await stream.result
        assert "two answers: second" in stream.view.text
        assert "one answers" not in stream.view.text


async def test_a_turn_that_is_cancelled_ends_and_the_session_goes_on(builtin: OpenBuiltin) -> None:
    called = anyio.Event()

    async def wait() -> str:
        """Wait for ever."""
        called.set()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(LIMIT):
        async with builtin() as agent, agent.session() as session:
            stream = session.think().text("Go").tool(wait).stream()
            await called.wait()
            stream.cancel()
            with pytest.raises(ThoughtCancelled):
                await stream.result
            await stream.wait()
            assert stream.view.stop_reason == "cancelled"
            assert "files" in await session.think().text("Again, and how many files?").run()


async def test_several_runs_go_on_side_by_side(builtin: OpenBuiltin) -> None:
    started: list[str] = []
    everybody = anyio.Event()

    async def meet(path: str) -> str:
        """Wait until all are there."""
        started.append(path)
        if len(started) == 3:
            everybody.set()
        await everybody.wait()
        return "met"

    with anyio.fail_after(LIMIT):
        async with builtin() as agent:
            streams = [
                agent.think().text(f"Look at {name}").tool(meet).stream() for name in ("shapes.py",) * 3
            ]
            for stream in streams:
                await stream.result
    assert started == ["shapes.py"] * 3
