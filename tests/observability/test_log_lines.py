"""Log lines and spans of a run: on whose behalf they are, and what lines say beside their text."""

from __future__ import annotations

import gc
import io
import json
import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import structlog
from asking import permission
from pythonjsonlogger.json import JsonFormatter
from scripted import Turn, scripted

from thinkwell.listen import Handlers
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from observability.spans import Collected

    from thinkwell import Agent
    from thinkwell.questions import Question

request: ContextVar[str] = ContextVar("request", default="none")


@contextmanager
def handling(handler: logging.Handler) -> Generator[None]:
    """Have a handler take the lines of all levels, for the time of a block."""
    logger = logging.getLogger("thinkwell")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def look(at: str) -> str:
    """Look."""
    return at


async def busy(turn: Turn) -> None:
    turn.update(s.ToolCallStart(tool_call_id="t1", title="ls", kind="execute"))
    await turn.client.request_permission(permission(turn.session_id))
    turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed"))
    own = s.ToolCallUpdate(tool_call_id="t2", title=f"mcp__{turn.server}__look")
    await turn.client.request_permission(permission(turn.session_id, own))
    await turn.call("look", {"at": "x"})
    await turn.returns(value="no number")
    await turn.returns(value=7)


async def fail(turn: Turn) -> None:
    raise RpcError(-32603, "broken")


async def for_a_caller(agent: Agent) -> None:
    """Run it in a task with a context of its own, as a web framework does for a request."""
    request.set("caller")
    structlog.contextvars.bind_contextvars(request_id="r7")
    stream = agent.think(int).text("Go").tool(look).stream()
    await stream.wait()
    stream.result.exception()


async def played(
    script: Callable[[Turn], Awaitable[None]],
    task: Callable[[Agent], Coroutine[Any, Any, None]] = for_a_caller,
    **options: Any,
) -> None:
    """Play a script for another task than the one that has opened the agent."""
    token = request.set("application")
    try:
        async with scripted(script, **options) as agent, anyio.create_task_group() as tasks:
            tasks.start_soon(task, agent)
    finally:
        request.reset(token)


def break_down(question: Question) -> None:
    raise LookupError


def answer_nonsense(question: Question) -> Any:
    return 7


class Kept(logging.Handler):
    """Keeps what comes, with the context in which it came."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[logging.LogRecord, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append((record, request.get()))

    def fields(self) -> list[tuple[str, dict[str, object]]]:
        """The texts, with what the records say beside them."""
        return [
            (
                record.getMessage(),
                {
                    key.removeprefix("thinkwell_"): value
                    for key, value in vars(record).items()
                    if key.startswith("thinkwell_")
                },
            )
            for record, _ in self.records
        ]


@pytest.mark.parametrize("script", [busy, fail])
async def test_all_lines_of_a_run_are_written_in_the_context_of_its_caller(script: Any) -> None:
    kept = Kept()
    with handling(kept):
        await played(script, permissions="ask", on_question=(break_down, answer_nonsense))
    lines = [(record.getMessage(), at) for record, at in kept.records]
    of_the_run = [line for line in lines if "is ready" not in line[0]]
    assert [line for line in of_the_run if line[1] != "caller"] == []
    assert len(of_the_run) > 5
    assert kept.records[0][1] == "application"


async def test_all_spans_of_a_run_begin_and_end_in_the_context_of_its_caller(spans: Collected) -> None:
    steps: list[tuple[str, str]] = []
    spans.saboteur.on_step = lambda step: steps.append((step, request.get()))
    await played(busy)
    assert [step for step in steps if step[1] != "caller"] == []
    assert {"start execute_tool execute", "end execute_tool look", "end invoke_agent scripted"} <= dict(
        steps
    ).keys()


async def test_a_line_that_is_written_on_a_line_disturbs_nothing() -> None:
    class Cancelling(Kept):
        def emit(self, record: logging.LogRecord) -> None:
            super().emit(record)
            if "begins turn" in record.getMessage():
                stream.cancel()

    kept = Cancelling()
    with handling(kept):
        async with scripted(busy) as agent:
            stream = agent.think(int).text("Go").tool(look).stream()
            await stream.wait()
    assert stream.view.phase == "cancelled"
    assert kept.fields()[-2][1]["outcome"] == "cancelled"


async def test_what_lines_say_beside_their_text() -> None:
    kept = Kept()
    with handling(kept):
        await played(busy)
        await played(fail)
    lines = kept.fields()
    assert {frozenset(said) for _, said in lines if "Run " not in _} <= {
        frozenset(("agent",)),
        frozenset(("agent", "session")),
    }
    seconds: list[object] = []
    ends: list[dict[str, object]] = []
    for text, said in lines:
        if "has ended turn" in text:
            run = said.pop("run")
            assert str(run) in text
            assert said == {"agent": "scripted", "session": "session-1", "turn": 1}
        if " after " in text:
            seconds.append(said.pop("seconds"))
            ends.append({key: said[key] for key in said if key != "run"})
    told = {"agent": "scripted", "session": "session-1", "turn": 1}
    assert ends == [
        {**told, "outcome": "completed"},
        {**told, "outcome": "failed", "error": "AgentReported"},
    ]
    assert all(isinstance(number, float) for number in seconds)


async def test_lines_of_handlers_have_the_fields_of_their_run() -> None:
    async def speak(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id))
        await turn.returns(value=7)

    async def hear(agent: Agent) -> None:
        request.set("caller")
        await agent.think(int).text("Go").listen(Handlers())

    kept = Kept()
    with handling(kept):
        await played(speak, hear)
    ((said, at),) = (
        (said, at)
        for (text, said), (_, at) in zip(kept.fields(), kept.records, strict=True)
        if "no handler for a message" in text
    )
    assert said.keys() >= {"agent", "session", "run"}
    assert at == "caller"


def written(formatter: logging.Formatter) -> tuple[logging.Handler, Callable[[], list[dict[str, Any]]]]:
    """A handler that writes JSON, and what reads it."""
    file = io.StringIO()
    handler = logging.StreamHandler(file)
    handler.setFormatter(formatter)
    return handler, lambda: [json.loads(line) for line in file.getvalue().splitlines()]


async def test_structlog_has_the_fields_and_what_the_caller_has_bound() -> None:
    handler, lines = written(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.contextvars.merge_contextvars, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    with handling(handler):
        await played(busy)
    (end,) = (line for line in lines() if "thinkwell_outcome" in line)
    assert end["event"].startswith(f"Run {end['thinkwell_run']} of agent scripted completed after ")
    assert (end["request_id"], end["thinkwell_session"], end["thinkwell_turn"]) == ("r7", "session-1", 1)
    assert {line["request_id"] for line in lines() if "thinkwell_run" in line} == {"r7"}


async def test_a_formatter_of_json_has_the_fields() -> None:
    handler, lines = written(JsonFormatter("{levelname}{message}", style="{"))
    with handling(handler):
        await played(busy)
    (end,) = (line for line in lines() if "thinkwell_outcome" in line)
    assert end.keys() == {
        "levelname",
        "message",
        *(f"thinkwell_{name}" for name in ("agent", "run", "session", "turn", "outcome", "seconds")),
    }


async def test_a_result_that_is_never_looked_at() -> None:
    """Its line is written when it is collected, wherever that is."""

    async def forgets(agent: Agent) -> None:
        request.set("caller")
        await agent.think(int).text("Go").stream().wait()

    kept = Kept()
    with handling(kept):
        await played(fail, forgets)
        gc.collect()
    ((text, said), at) = next(
        (line, at) for line, (_, at) in zip(kept.fields(), kept.records, strict=True) if "never" in line[0]
    )
    assert text.startswith(f"Run {said['run']} of agent scripted failed and its result was never awaited")
    assert at == "caller"
