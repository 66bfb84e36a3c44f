"""NDJSON agents: types without a handler, silence, programs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import permission
from lines.program import started
from listen.line_programs import message, program
from listen.talkers import SOON
from scripted import Turn, scripted

from thinkwell import Reply
from thinkwell import events as ev
from thinkwell.listen import (
    AgentQuestion,
    Handlers,
    Transcript,
    listen,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from lines.program import Program

    from thinkwell import ThoughtEvent

pytestmark = pytest.mark.anyio


async def run(
    play: Callable[[Program], Awaitable[object]], handlers: Handlers, **options: Any
) -> list[ThoughtEvent]:
    """Return what is on the log."""
    async with program(play, **options) as agent:
        stream = agent.think().text("Go").stream(include="all")
        with anyio.fail_after(SOON):
            assert await listen(stream, handlers) == "Done"
            return [event async for event in stream]


def unhandled(events: list[ThoughtEvent]) -> list[tuple[str, dict[str, Any]]]:
    return [(event.kind, event.body) for event in events if isinstance(event, ev.Unhandled)]


# What nobody handles


async def test_a_message_without_a_handler_is_an_event_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")

    async def play(program: Program) -> None:
        await program.say("progress", message="one")
        await program.say("progress", message="two")
        await program.say("cost\x1b[2J", cost=1, id=3)

    events = await run(play, Handlers())
    assert unhandled(events) == [
        ("progress", {"message": "one"}),
        ("progress", {"message": "two"}),
        ("cost\x1b[2J", {"cost": 1, "id": 3}),
    ]
    lines = [
        (record.levelname, record.getMessage()) for record in caplog.records if "no handler" in record.message
    ]
    assert [level for level, _ in lines] == ["INFO", "DEBUG", "INFO"]
    assert "'progress'" in lines[0][1]
    assert "\x1b" not in lines[2][1]


async def test_types_without_end_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "thinkwell")

    async def play(program: Program) -> None:
        await program.writes(*(message(f"type-{number}") for number in range(150)))

    assert len(unhandled(await run(play, Handlers()))) == 150
    assert len([record for record in caplog.records if "no handler" in record.message]) == 100


async def test_a_question_without_a_handler_is_declined_at_once() -> None:
    async def play(program: Program) -> None:
        assert await program.ask("question", question="?") is None
        assert await program.ask("approval", description="Write") is False

    events = await run(play, Handlers())
    assert unhandled(events) == [("question", {"question": "?"}), ("approval", {"description": "Write"})]


async def test_what_others_are_asked_is_not_unhandled() -> None:
    async def allow(question: object) -> bool:
        return True

    async def play(program: Program) -> None:
        assert await program.ask("approval", description="Write") is True

    assert not unhandled(await run(play, Handlers(), permissions="ask", on_question=allow))


async def test_over_acp_a_question_may_be_unhandled() -> None:
    async def play(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id))
        turn.say("Done")

    async with scripted(play) as agent:
        stream = agent.think().text("Go").stream(include={"unhandled"})
        with anyio.fail_after(SOON):
            await listen(stream, Handlers())
            events = [event async for event in stream]
    ((kind, body),) = unhandled(events)
    assert (kind, body["command"]) == ("approval", "rm -rf build")


# Silence


@pytest.mark.parametrize("value", [None, Reply(None, "not mine")])
@pytest.mark.parametrize("type_", ["question", "approval"])
async def test_none_tells_the_program_nothing(type_: str, value: object) -> None:
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)

    @handlers.on(type_)
    async def answer(fields: dict[str, Any]) -> object:
        return "yes" if fields.get("again") else value

    async def play(program: Program) -> None:
        await program.say(type_, question="?")
        assert await program.ask(type_, question="?", again=True, id=7) == "yes"
        assert len(program.heard) == 2

    await run(play, handlers)
    assert [(record.answer, record.details) for record in transcript] == [
        (None, {"question": "?"}),
        ("yes", {"question": "?", "again": True, "id": 7}),
    ]


@pytest.mark.parametrize("value", [None, Reply(None, "not mine")])
async def test_none_asks_the_next_where_there_is_one(value: object) -> None:
    handlers = Handlers()

    @handlers.on("question")
    async def answer(question: AgentQuestion) -> object:
        return value

    async def fill(question: object) -> dict[str, str]:
        return {"answer": "RS256"}

    async def play(program: Program) -> None:
        assert await program.ask("question", question="?") == "RS256"

    await run(play, handlers, permissions="ask", on_question=fill)


# Messages


async def test_only_what_the_program_says_is_heard(tmp_path: Path) -> None:
    handlers = Handlers()
    seen: list[object] = []
    for type_ in ("log", "partial"):
        handlers.on(type_)(seen.append)
    source = """
hear()
print("on standard error", file=sys.stderr, flush=True)
say("log", message="Note", more=[1])
say("partial", text="Do")
say("result", text="Done")
hear()
"""
    async with started(tmp_path, source) as agent:
        assert await agent.think().text("Go").listen(handlers) == "Done"
    assert seen == [{"message": "Note", "more": [1]}, {"text": "Do"}]
