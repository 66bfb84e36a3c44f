"""Updates of the wire become events: every kind, whole, and nothing lost."""

from __future__ import annotations

import json
from typing import Any, cast, get_args

import anyio
import pytest
from drawing import drawn
from schema.wire_strategies import OBJECTS, ours
from scripted import Played, Turn, scripted
from stream.wire_agent import end_turn, wire_agent

from thinkwell import (
    Message,
    OptionChoice,
    PlanEntry,
    PlanUpdate,
    SessionOption,
    Thought,
    ThoughtEvent,
    ToolDone,
    ToolStart,
    ToolUpdate,
    event_from_json,
    event_to_json,
)
from thinkwell import events as ev
from thinkwell.testing import script, virtual_backend
from thinkwell_acp import AgentSide
from thinkwell_acp import schema as s
from thinkwell_acp.schema.updates import KnownUpdate

KNOWN: tuple[type[s.Model], ...] = get_args(KnownUpdate)

TEXT = {"type": "text", "text": "hi"}

EXAMPLES = 50
"""Of each kind of update, in one turn."""


MARK = {"sessionUpdate": "_mark"}


async def told_of_each(*updates: object) -> list[list[ThoughtEvent]]:
    """Read updates from the wire, in one block, and return the events of each, without numbers and times."""
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream(include="all")
        prompt = await wire.begin()
        reader = stream.events()
        event = await anext(reader)
        while not (isinstance(event, ev.PhaseChanged) and event.phase == "prompted"):
            event = await anext(reader)
        await wire.write(*(sent(item) for update in updates for item in (update, MARK)))
        events: list[list[ThoughtEvent]] = [[] for _ in updates]
        number = event.seq
        before = event.at
        for told in events:
            async for event in reader:
                number += 1
                assert event.seq == number
                if isinstance(event, ev.PhaseChanged):
                    continue
                if isinstance(event, ev.UnknownUpdate) and event.raw == MARK:
                    assert event.at >= before
                    before = event.at
                    break
                told.append(event_from_json(json.dumps(_stripped(event))))
        assert stream.view.dropped == 0
        await wire.write(end_turn(prompt))
        await stream.wait()
    return events


async def converted(*updates: object) -> list[ThoughtEvent]:
    """Return the events of all of them."""
    return [event for events in await told_of_each(*updates) for event in events]


def sent(update: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}


def _stripped(event: ThoughtEvent) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(event_to_json(event))
    del fields["seq"]
    fields.pop("at", None)
    return fields


def tag(value: dict[str, str] | object) -> str:
    """Name a case by its first field, which is what it is of."""
    return str(next(iter(cast("dict[str, str]", value).values()))) if isinstance(value, dict) else ""


def tool(id_: str = "t", title: str = "T", **fields: object) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call", "toolCallId": id_, "title": title, **fields}


def patch(id_: str = "t", **fields: object) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": id_, **fields}


# Every kind


@pytest.mark.parametrize(
    ("update", "event"),
    [
        (
            {"sessionUpdate": "agent_message_chunk", "content": TEXT, "messageId": "m"},
            Message(text="hi", message_id="m"),
        ),
        (
            {"sessionUpdate": "agent_thought_chunk", "content": TEXT, "messageId": None},
            Thought(text="hi"),
        ),
        (
            {"sessionUpdate": "user_message_chunk", "content": TEXT, "messageId": "m"},
            ev.UserMessage(text="hi", message_id="m"),
        ),
        (
            {
                "sessionUpdate": "plan",
                "entries": [{"content": "a", "priority": "high", "status": "completed"}],
            },
            PlanUpdate(entries=(PlanEntry(content="a", priority="high", status="completed"),)),
        ),
        (
            {
                "sessionUpdate": "plan_update",
                "plan": {
                    "type": "items",
                    "planId": "p",
                    "entries": [{"content": "a", "priority": "low", "status": "pending"}],
                },
            },
            PlanUpdate(id="p", entries=(PlanEntry(content="a", priority="low"),)),
        ),
        (
            {"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": "p", "content": "# a"}},
            PlanUpdate(id="p", markdown="# a"),
        ),
        (
            {"sessionUpdate": "plan_update", "plan": {"type": "file", "planId": "p", "uri": "file:///a"}},
            PlanUpdate(id="p", uri="file:///a"),
        ),
        ({"sessionUpdate": "plan_removed", "planId": "p"}, PlanUpdate(id="p", removed=True)),
        ({"sessionUpdate": "usage_update", "used": 1, "size": 2}, ev.UsageUpdate(used=1, size=2)),
        (
            {
                "sessionUpdate": "usage_update",
                "used": 1,
                "size": 2,
                "cost": {"amount": 0.5, "currency": "EUR"},
            },
            ev.UsageUpdate(used=1, size=2, cost=ev.Cost(amount=0.5, currency="EUR")),
        ),
        ({"sessionUpdate": "current_mode_update", "currentModeId": "m"}, ev.ModeUpdate(mode_id="m")),
        ({"sessionUpdate": "current_mode_update", "modeId": "m"}, ev.ModeUpdate(mode_id="m")),
        (
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [
                    {"name": "a", "description": "A"},
                    {"name": "b", "description": "B", "input": {"hint": "what"}},
                ],
            },
            ev.CommandsUpdate(
                commands=(
                    ev.Command(name="a", description="A"),
                    ev.Command(name="b", description="B", hint="what"),
                )
            ),
        ),
        (
            {"sessionUpdate": "session_info_update", "title": None, "_meta": {"k": 1}},
            ev.SessionInfoUpdate(changes=ev.SessionChanges(title=None, meta={"k": 1})),
        ),
        (
            {"sessionUpdate": "notice", "severity": "odd", "title": "t", "description": "d"},
            ev.Notice(severity="odd", title="t", description="d"),
        ),
        (
            {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "failed", "error": "e"},
            ev.Compaction(id="c", raw={"compactionId": "c", "status": "failed", "error": "e"}),
        ),
        (
            {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": TEXT},
            ev.Compaction(id="c", raw={"compactionId": "c", "content": TEXT}),
        ),
        (
            {"sessionUpdate": "_vendor/odd", "x": [1]},
            ev.UnknownUpdate(kind="_vendor/odd", raw={"sessionUpdate": "_vendor/odd", "x": [1]}),
        ),
    ],
    ids=tag,
)
async def test_every_kind_of_update(update: dict[str, Any], event: ThoughtEvent) -> None:
    assert await converted(update) == [event]


async def test_config_options__come_whole_as_those_of_a_session() -> None:
    options = [
        {"id": "a", "name": "A", "type": "boolean", "currentValue": True},
        {
            "id": "b",
            "name": "B",
            "type": "select",
            "currentValue": "x",
            "options": [{"value": "x", "name": "X"}],
        },
    ]
    (event,) = await converted({"sessionUpdate": "config_option_update", "configOptions": options})
    assert isinstance(event, ev.ConfigUpdate)
    assert list(event.raw) == options
    assert event.options == (
        SessionOption(id="a", name="A", type="boolean", value=True),
        SessionOption(id="b", name="B", value="x", choices=(OptionChoice(value="x", name="X"),)),
    )


@pytest.mark.parametrize(
    ("update", "kind"),
    [
        ({"sessionUpdate": "plan_removed"}, "plan_removed"),
        ({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}}, "agent_message_chunk"),
        ({"no": "kind"}, ""),
        ("nonsense", ""),
        (None, ""),
    ],
)
async def test_broken_update__is_delivered_with_what_is_wrong(update: object, kind: str) -> None:
    (event,) = await converted(update)
    assert isinstance(event, ev.UnknownUpdate)
    assert (event.kind, event.raw) == (kind, update)
    assert event.error


@pytest.mark.draws
@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_any_update__gives_events(kind: type[s.Model]) -> None:
    updates = [s.to_builtins(update) for update in drawn(ours(kind), EXAMPLES)]
    for update, events in zip(updates, await told_of_each(*updates), strict=True):
        assert 1 <= len(events) <= 2, (update, events)


@pytest.mark.draws
async def test_any_unknown_update__keeps_its_body() -> None:
    updates = [{**fields, "sessionUpdate": "odd"} for fields in drawn(OBJECTS, 100)]
    assert await converted(*updates) == [ev.UnknownUpdate(kind="odd", raw=raw) for raw in updates]


# Content


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (
            {"type": "text", "text": "a", "annotations": {"priority": 0.5}},
            ev.TextContent(text="a", annotations={"priority": 0.5}),
        ),
        (
            {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a"},
            ev.ImageContent(data="aGk=", mime_type="image/png", uri="file:///a"),
        ),
        (
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", "annotations": {"audience": ["user"]}},
            ev.AudioContent(data="aGk=", mime_type="audio/wav", annotations={"audience": ["user"]}),
        ),
        (
            {"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "size": 3},
            ev.ResourceLink(uri="file:///a", name="a", title="A", size=3),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "text": "x", "mimeType": "text/plain"}},
            ev.EmbeddedResource(uri="file:///a", text="x", mime_type="text/plain"),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}},
            ev.EmbeddedResource(uri="file:///a", blob="aGk="),
        ),
    ],
    ids=tag,
)
@pytest.mark.parametrize("kind", ["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"])
async def test_content__of_any_kind_is_delivered(
    kind: str, block: dict[str, Any], content: ev.ContentBlock
) -> None:
    (event,) = await converted({"sessionUpdate": kind, "content": block})
    assert isinstance(event, Message | Thought | ev.UserMessage)
    assert event.content == content
    assert event.text == (content.text if isinstance(content, ev.TextContent) else "")


# Tool calls

DIFF = {"type": "diff", "path": "/a", "oldText": None, "newText": "b"}
BLOCK = {"type": "content", "content": TEXT}
TERMINAL = {"type": "terminal", "terminalId": "x"}
CONTENT = (
    ev.DiffContent(path="/a", new_text="b"),
    ev.BlockContent(content=ev.TextContent(text="hi")),
    ev.TerminalContent(terminal_id="x"),
)


async def test_tool__start_has_everything() -> None:
    update = tool(
        kind="edit",
        status="in_progress",
        content=[DIFF, BLOCK, TERMINAL],
        locations=[{"path": "/a"}, {"path": "/b", "line": 3}],
        rawInput={"a": 1},
        name="edit_file",
    )
    assert await converted(update) == [
        ToolStart(
            id="t",
            title="T",
            kind="edit",
            status="in_progress",
            content=CONTENT,
            locations=(ev.Location(path="/a"), ev.Location(path="/b", line=3)),
            input={"a": 1},
            name="edit_file",
        )
    ]


async def test_tool__news_say_only_what_changed() -> None:
    _, *news = await converted(
        tool(),
        patch(status="in_progress", title=None),
        patch(content=[], locations=[], kind="odd", rawInput=[1], rawOutput=0, name="n"),
        patch(),
    )
    assert news == [
        ToolUpdate(id="t", status="in_progress"),
        ToolUpdate(id="t", content=(), locations=(), kind="other", input=[1], output=0, name="n"),
        ToolUpdate(id="t"),
    ]


async def test_tool__the_end_has_content_output_and_title_though_the_last_update_has_none() -> None:
    *_, end = await converted(
        tool(content=[BLOCK]),
        patch(content=[DIFF, BLOCK, TERMINAL], title="Better"),
        patch(rawOutput={"rows": 3}),
        patch(status="completed"),
    )
    assert end == ToolDone(id="t", status="completed", content=CONTENT, output={"rows": 3}, title="Better")


async def test_tool__the_end_has_what_the_last_update_brings() -> None:
    _, end = await converted(tool(), patch(status="failed", content=[DIFF], rawOutput="no", title="Worse"))
    assert end == ToolDone(id="t", status="failed", content=CONTENT[:1], output="no", title="Worse")


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_tool__one_that_has_ended_at_once_starts_and_ends(status: ev.FinalStatus) -> None:
    start, end = await converted(tool(status=status, content=[DIFF], rawOutput=1))
    assert start == ToolStart(id="t", title="T", status="in_progress", content=CONTENT[:1])
    assert end == ToolDone(id="t", status=status, content=CONTENT[:1], output=1, title="T")


async def test_tool__announced_again_it_is_the_same_call() -> None:
    start, again, end = await converted(
        tool(content=[BLOCK]), tool(title="U", kind="edit"), tool(title="V", status="completed")
    )
    assert isinstance(start, ToolStart)
    assert again == ToolUpdate(id="t", title="U", kind="edit", status="pending", content=(), locations=())
    assert end == ToolDone(id="t", status="completed", title="V")


async def test_tool__announced_after_its_end_it_is_another_call() -> None:
    _, _, start, news, end, *last = await converted(
        tool(title="A", status="completed", content=[BLOCK], rawOutput=1),
        tool(title="B", rawInput={"command": "rm"}),
        patch(status="in_progress"),
        patch(status="failed"),
        tool(title="C", status="completed"),
    )
    assert start == ToolStart(id="t", title="B", input={"command": "rm"})
    assert news == ToolUpdate(id="t", status="in_progress")
    assert end == ToolDone(id="t", status="failed", title="B")
    assert last == [
        ToolStart(id="t", title="C", status="in_progress"),
        ToolDone(id="t", title="C", status="completed"),
    ]


@pytest.mark.parametrize("anyio_backend", [virtual_backend("asyncio"), virtual_backend("trio")])
async def test_tool__one_that_uses_an_id_again_runs() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream(idle_timeout=5)
        prompt = await wire.begin()
        await wire.write(sent(patch(status="completed")), sent(tool()))
        await anyio.sleep(60)
        assert not stream.result.done()
        await wire.write(end_turn(prompt, "cancelled"))
        *_, last = [event async for event in stream]
    assert isinstance(last, ToolDone)
    assert last.status == "cancelled"


async def test_tool__never_announced_its_news_create_it() -> None:
    assert await converted(patch(status="in_progress")) == [
        ToolStart(id="t", title="tool call", status="in_progress")
    ]
    assert await converted(patch(title="T", kind="read", content=[DIFF], locations=[{"path": "/a"}])) == [
        ToolStart(id="t", title="T", kind="read", content=CONTENT[:1], locations=(ev.Location(path="/a"),))
    ]
    assert await converted(patch(name="grep", status="completed", rawOutput=1)) == [
        ToolStart(id="t", title="grep", name="grep", status="in_progress"),
        ToolDone(id="t", title="grep", status="completed", output=1),
    ]


async def test_tool__corrections_after_the_end_are_news() -> None:
    _, end, *news = await converted(
        tool(), patch(status="completed"), patch(status="failed"), patch(content=[DIFF], status="completed")
    )
    assert isinstance(end, ToolDone)
    assert news == [
        ToolUpdate(id="t", status="failed"),
        ToolUpdate(id="t", status="completed", content=CONTENT[:1]),
    ]


async def test_tool__calls_left_open_are_cancelled_once() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        await wire.write(
            sent(patch("a", title="A", rawOutput=1)),
            sent(patch("b", title="B", status="completed")),
        )
        await anext(aiter(stream))
        stream.cancel()
        await wire.write(end_turn(prompt, "cancelled"))
        events = [event async for event in stream if isinstance(event, ToolStart | ToolDone)]
    assert [(event.type, event.id) for event in events] == [
        ("tool_start", "a"),
        ("tool_start", "b"),
        ("tool_done", "b"),
        ("tool_done", "a"),
    ]
    last = events[-1]
    assert isinstance(last, ToolDone)
    assert (last.status, last.output, last.title) == ("cancelled", 1, "A")


# The phase


@pytest.mark.parametrize(
    ("update", "responds"),
    [
        ({"sessionUpdate": "agent_message_chunk", "content": TEXT}, True),
        ({"sessionUpdate": "agent_thought_chunk", "content": TEXT}, True),
        (tool(), True),
        (patch(), True),
        ({"sessionUpdate": "plan", "entries": []}, True),
        ({"sessionUpdate": "plan_update", "plan": {"type": "file", "planId": "p", "uri": "u"}}, True),
        ({"sessionUpdate": "user_message_chunk", "content": TEXT}, False),
        ({"sessionUpdate": "usage_update", "used": 1, "size": 2}, False),
    ],
    ids=tag,
)
async def test_phase__the_first_sign_of_the_agents_work_is_told_once_per_turn(
    update: dict[str, Any], responds: bool
) -> None:
    def tell(client: AgentSide, session_id: str) -> None:
        client.connection.notify("session/update", {"sessionId": session_id, "update": update})

    async def twice(turn: Turn) -> None:
        for _ in range(2):
            tell(turn.client, turn.session_id)

    handler = Played([twice], before_session=script.updates(update))
    phases: list[str] = []
    async with scripted(agent=handler) as agent, agent.session() as session:
        for _ in range(2):
            stream = session.think().text("Hi").stream(include="all")
            phases += [event.phase async for event in stream if isinstance(event, ev.PhaseChanged)]
            tell(handler.client, session.id)
    assert phases.count("responding") == (2 if responds else 0)
