"""What a program says while it works, as events of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lines.program import every, first, played

from thinkwell import AgentReported, ThoughtStream
from thinkwell import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell import Session

pytestmark = pytest.mark.anyio

WATCHED = (ev.Message, ev.ToolStart, ev.ToolUpdate, ev.ToolDone, ev.Notice)


def short(event: ev.ThoughtEvent) -> tuple[object, ...]:
    match event:
        case ev.Message():
            return "message", event.message_id, event.text
        case ev.ToolStart():
            return "start", event.id, event.title
        case ev.ToolUpdate():
            return "update", event.id, event.title
        case ev.ToolDone():
            return "done", event.id, event.status
        case ev.Notice():
            return "notice", event.severity, event.title
        case _:
            raise AssertionError(event)


async def ran(*messages: dict[str, Any]) -> ThoughtStream[str]:
    """Return a run in which these were said."""
    async with played() as (agent, program):
        stream = agent.think().text("Go").stream(include="all")
        await program.hear()
        for message in messages:
            fields = dict(message)
            await program.say(fields.pop("type"), **fields)
        await stream.wait()
    return stream


async def said(*messages: dict[str, Any]) -> list[tuple[object, ...]]:
    """Return what events these become, besides the reports of them; a result follows."""
    stream = await ran(*messages, {"type": "result"})
    reports = await every(stream, ev.Report)
    assert [{"type": one.kind, **one.body} for one in reports] == list(messages)
    return [short(event) for event in await every(stream, *WATCHED)]


async def test_every_message_is_reported_whole() -> None:
    messages: Sequence[dict[str, Any]] = (
        {"type": "progress", "message": "a", "stage": None, "more": {"x": [1, 2.5, "\u00e4"]}},
        {"type": "partial", "text": 7},
        {"type": "log", "level": "debug", "message": "b"},
        {"type": "", "id": 0},
        {"type": "re\x1bsult\n", "message": "\x00"},
        {"type": "response", "in_reply_to": "question", "value": 1},
        {"type": "init", "params": {}},
    )
    stream = await ran(*messages, {"type": "result"})
    reports = await every(stream, ev.Report)
    assert [{"type": one.kind, **one.body} for one in reports] == list(messages)
    assert [one.message_id for one in reports] == [None, None, None, 0, None, None, None]


# Partials


async def test_partials_are_one_message() -> None:
    assert await said(
        {"type": "partial", "text": "Hel"},
        {"type": "partial", "message": "lo "},
        {"type": "partial", "content": "wor"},
        {"type": "partial", "delta": "ld"},
        {"type": "partial", "chunk": "!", "delta": 1},
        {"type": "partial", "text": ["!"], "delta": "?"},
        {"type": "partial"},
        {"type": "partial", "text": ""},
    ) == [("message", "partial-1", text) for text in ("Hel", "lo ", "wor", "ld", "!", "?")]


@pytest.mark.parametrize(
    ("partials", "result", "texts"),
    [
        ([], {"text": "Hello"}, ["Hello"]),
        (["Hel", "lo"], {"text": "Hello"}, ["Hello"]),
        (["Hel", "lo\n"], {"text": "Hello", "files": 3}, ["Hello\n", "Hello"]),
        (["\n Hel", "lo "], {"text": "Hello"}, ["\n Hello ", "Hello"]),
        (["I think"], {"text": "Hello"}, ["I think", "Hello"]),
        (["Hello"], {"text": ""}, ["Hello"]),
        (["Hello"], {}, ["Hello"]),
        (["Hello"], {"text": None, "files": ["\u00e4"]}, ["Hello", '{"text":null,"files":["\u00e4"]}']),
        ([], {"files": 3}, ['{"files":3}']),
        ([], {"text": " Hello\n"}, [" Hello\n"]),
        ([], {"text": " \n"}, [" \n"]),
    ],
)
async def test_a_result_says_what_was_not_said(
    partials: list[str], result: dict[str, object], texts: list[str]
) -> None:
    stream = await ran(
        *({"type": "partial", "text": text} for text in partials), {"type": "result", **result}
    )
    assert list(stream.view.messages) == texts
    assert await stream.result == (texts[-1] if texts else "")


async def test_each_prompt_has_messages_of_its_own() -> None:
    async with played() as (agent, program), agent.session() as session:
        for number in (1, 2):
            stream = session.think().text("Go").stream()
            await program.hear()
            await program.say("partial", text="so ")
            await program.say("result", text="done")
            await stream.wait()
            assert [short(event) for event in await every(stream, ev.Message)] == [
                ("message", f"partial-{number}", "so "),
                ("message", f"result-{number}", "done"),
            ]


# Progress


async def test_a_stage_is_a_step() -> None:
    assert await said(
        {"type": "progress", "message": "Reading", "stage": "read", "percent": 10},
        {"type": "progress", "message": "Reading on", "stage": "read", "percent": 50},
        {"type": "progress", "message": "Reading on", "stage": "read", "percent": 50.9},
        {"type": "progress", "stage": "write"},
        {"type": "progress", "message": "Done"},
    ) == [
        ("start", "progress-1", "Reading (10 %)"),
        ("update", "progress-1", "Reading on (50 %)"),
        ("done", "progress-1", "completed"),
        ("start", "progress-2", "write"),
        ("done", "progress-2", "completed"),
        ("start", "progress-3", "Done"),
        ("done", "progress-3", "completed"),
    ]


async def test_without_a_stage_the_text_is_the_step() -> None:
    assert await said(
        {"type": "progress", "message": "Reading", "percent": 0},
        {"type": "progress", "message": "Reading", "percent": 100},
        {"type": "progress", "message": "Writing"},
        {"type": "progress"},
        {"type": "progress", "percent": 7},
    ) == [
        ("start", "progress-1", "Reading (0 %)"),
        ("update", "progress-1", "Reading (100 %)"),
        ("done", "progress-1", "completed"),
        ("start", "progress-2", "Writing"),
        ("done", "progress-2", "completed"),
        ("start", "progress-3", "progress"),
        ("update", "progress-3", "progress (7 %)"),
        ("done", "progress-3", "completed"),
    ]


async def test_a_percentage_that_makes_no_sense_is_not_shown() -> None:
    odd: tuple[object, ...] = (True, -1, 101, 10**400, 1e300, float("nan"), "50", None, [], {})
    stream = await ran(
        *({"type": "progress", "message": "a", "percent": percent} for percent in odd), {"type": "result"}
    )
    shown = await every(stream, ev.ToolStart, ev.ToolUpdate)
    assert {short(event) for event in shown} <= {("start", "progress-1", "a"), ("update", "progress-1", "a")}
    assert shown


async def test_a_message_and_a_stage_of_other_types() -> None:
    assert (await said({"type": "progress", "message": ["a"], "stage": 7}))[0] == (
        "start",
        "progress-1",
        "progress",
    )


async def test_steps_fail_with_the_prompt() -> None:
    stream = await ran({"type": "progress", "message": "a"}, {"type": "error", "message": "no"})
    assert [short(event) for event in await every(stream, *WATCHED)] == [
        ("start", "progress-1", "a"),
        ("done", "progress-1", "failed"),
    ]


async def test_steps_are_no_tool_calls_of_a_budget_or_a_pause() -> None:
    async with played() as (agent, program), agent.session() as session:
        first_run = session.think().text("Go").stream()
        await program.hear()
        await program.say("progress", message="a")
        await program.say("result")
        await first_run.wait()
        stream = session.think().text("Go").stream()
        await program.hear()
        await program.say("progress", message="a")
        start = await first(stream, ev.ToolStart)
        assert start.id == "progress-2"  # no call of the prompt before goes on
        await program.say("result")
        await stream.wait()


# Logs


LOGS: list[tuple[dict[str, object], tuple[str, str] | None]] = [
    ({"message": "a"}, ("info", "a")),
    ({"level": "INFO", "message": "a"}, ("info", "a")),
    ({"level": "warn", "text": "a"}, ("warning", "a")),
    ({"level": "warning", "message": "a", "text": "b"}, ("warning", "a")),
    ({"level": "fatal", "message": "a"}, ("error", "a")),
    ({"level": "odd\x1b", "message": "a"}, ("odd\x1b", "a")),
    ({"level": 30, "message": "a"}, ("info", "a")),
    ({"level": "debug", "message": "a"}, None),
    ({"level": "Trace", "message": "a"}, None),
    ({"level": "error"}, None),
    ({"message": {"a": 1}}, None),
]


async def test_a_log_is_a_notice() -> None:
    expected = [("notice", *notice) for _, notice in LOGS if notice is not None]
    assert await said(*({"type": "log", **message} for message, _ in LOGS)) == expected


# Errors


@pytest.mark.parametrize(
    ("fields", "code", "message", "data"),
    [
        ({"message": "no"}, -32603, "no", None),
        ({"message": "no", "code": 7, "file": "a"}, 7, "no", {"file": "a"}),
        ({"message": "", "error": "no", "text": "b"}, -32603, "no", {"message": "", "text": "b"}),
        ({"text": "no", "code": True}, -32603, "no", {"code": True}),
        ({"message": "no", "code": 2**31}, -32603, "no", {"code": 2**31}),
        ({"message": "no", "code": -(2**31)}, -(2**31), "no", None),
        ({"message": "no", "code": "E7"}, -32603, "no", {"code": "E7"}),
        ({"message": "no", "code": -32000}, -32603, "no", {"code": -32000}),
        ({"message": "no", "code": -32800}, -32603, "no", {"code": -32800}),
        ({"error": {"why": "\u00e4"}}, -32603, '{"error":{"why":"\u00e4"}}', {"error": {"why": "\u00e4"}}),
        ({}, -32603, "it does not say what is wrong", None),
    ],
)
async def test_an_error_fails_the_run(
    fields: dict[str, object], code: int, message: str, data: object
) -> None:
    stream = await ran({"type": "error", **fields})
    with pytest.raises(AgentReported) as caught:
        await stream.result
    error = caught.value
    assert (error.code, error.message, error.data) == (code, message, data)


# Outside of a prompt


async def paused(session: Session, number: int) -> None:
    """Wait until what was said between the prompts has arrived."""
    async for event in session.events():
        if isinstance(event, ev.Report) and event.message_id == number:
            return


async def test_what_is_said_between_prompts_is_no_part_of_them(caplog: pytest.LogCaptureFixture) -> None:
    async with played() as (agent, program):
        await program.say("log", message="too early")
        await program.say("result", text="too early")
        async with agent.session() as session:
            for number in (1, 2):
                stream = session.think().text(str(number)).stream(include="all")
                await program.hear()
                for kind in ("progress", "partial", "log", "own", "result", "error"):
                    await program.say(kind, text=f"late {number}")
                assert await stream.result == f"late {number}"
                await program.say("pause", id=number)
                await paused(session, number)
                assert [(event.kind, event.body) for event in await every(stream, ev.Report)] == [
                    (kind, {"text": f"late {number}"}) for kind in ("progress", "partial", "log", "own")
                ]
                late = [event for event in stream.late if isinstance(event, ev.Report)]
                assert [event.kind for event in late] == ["error", "pause"]
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warned == ["Agent agent sent what belongs to no prompt: error, 35 bytes"] * 2


async def test_what_is_said_late_goes_where_the_last_prompt_was() -> None:
    async with played() as (agent, program), agent.session() as one, agent.session():
        stream = one.think().text("Go").stream()
        await program.hear()
        await program.say("result")
        await program.say("pause", id=1)
        await stream.wait()
        await paused(one, 1)
