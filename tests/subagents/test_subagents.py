"""Sub-agents: what they say and do stands apart, as a tree."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stream.wire_agent import answer, end_turn, say, update, wire_agent

from thinkwell import ViewReducer, replay
from thinkwell import events as ev
from thinkwell.view import AgentView

if TYPE_CHECKING:
    from stream.wire_agent import Json

    from thinkwell import ThoughtStream

TRACES = Path(__file__).with_name("traces")


async def played(*messages: Json, include: ev.Include = "all") -> ThoughtStream[str]:
    """Return a run in which an agent has sent these messages."""
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Have a helper read a.txt.").stream(include=include)
        prompt = await wire.begin()
        await wire.write(*messages)
        await wire.write(end_turn(prompt))
        await stream.wait()
        return stream


async def of_trace(name: str) -> ThoughtStream[str]:
    lines: list[Json] = [
        json.loads(line)["message"] for line in (TRACES / f"{name}.ndjson").read_text("utf-8").splitlines()
    ]
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Have a helper read a.txt.").stream(include="all")
        prompt = await wire.begin()
        for message in lines[1:]:
            await wire.write(answer(prompt, message["result"]) if "id" in message else message)
        await stream.wait()
        return stream


def by(agent: object) -> Json:
    return {"_meta": {"claudeCode": {"parentToolUseId": agent}}}


def call(id_: str, agent: object = None, **fields: Any) -> Json:
    meta = {} if agent is None else by(agent)
    return update("tool_call", toolCallId=id_, title=id_, **meta, **fields)


def shape(stream: ThoughtStream[Any]) -> dict[str, tuple[str | None, tuple[str, ...], tuple[str, ...]]]:
    return {id_: (each.parent, each.calls, each.agents) for id_, each in stream.view.agents.items()}


async def test_what_claude_tells_of_a_sub_agent() -> None:
    stream = await of_trace("claude-subagent")
    assert await stream.result == "The helper says: hello."
    view = stream.view
    assert view.messages == ("I ask a helper.", "The helper says: hello.")
    assert view.thoughts == ""
    assert view.agents == {
        "call_2": AgentView(
            id="call_2",
            calls=("call_3",),
            text="The helper looks.It says hello.",
            thoughts="Let me look.",
        )
    }
    assert view.tools["call_3"].parent == "call_2"
    said = [(e.text, e.thinks, e.message_id) async for e in stream if isinstance(e, ev.SubagentText)]
    assert said == [
        ("Let me look.", True, "msg_3"),
        ("The helper looks.", False, "msg_3"),
        ("It says hello.", False, "msg_4"),
    ]


async def test_a_sub_agent_of_claude_in_the_background_goes_on_when_its_call_has_ended() -> None:
    stream = await of_trace("claude-subagent-background")
    assert "The helper looks." not in stream.view.text
    (helper,) = stream.view.agents.values()
    assert (helper.calls, helper.thoughts) == (("call_3",), "Let me look.")
    assert stream.view.tools[helper.id].status == "completed"


async def test_codex_tells_nothing_of_a_sub_agent_but_its_call() -> None:
    stream = await of_trace("codex-subagent")
    assert stream.view.agents == {}
    assert [tool.title for tool in stream.view.tools.values()] == ["spawnAgent"]


async def test_sub_agents_of_sub_agents() -> None:
    stream = await played(
        call("a"),
        call("b", "a"),
        say("Deep.", **by("b")),
        call("c", "b"),
        call("d", "a"),
        say("Mine."),
    )
    assert shape(stream) == {"b": ("a", ("c",), ()), "a": (None, ("b", "d"), ("b",))}
    assert stream.view.messages == ("Mine.",)
    assert stream.view.agents["b"].text == "Deep."


async def test_what_it_says_ends_no_message_of_the_agent() -> None:
    stream = await played(call("a"), say("All is "), say("Hm.", **by("a")), say("well."))
    assert await stream.result == "All is well."
    assert stream.view.messages == ("All is well.",)


@pytest.mark.parametrize("agent", ["unknown", 7, None, "", ["a"]])
async def test_what_names_no_known_call_is_the_agents_own(agent: object) -> None:
    stream = await played(call("a"), call("b", agent), say("Hm.", **by(agent)))
    assert stream.view.agents == {}
    assert stream.view.messages == ("Hm.",)
    assert stream.view.tools["b"].parent is None


async def test_calls_that_would_be_part_of_each_other_are_not() -> None:
    stream = await played(
        call("a", "a"),
        call("b", "a"),
        update("tool_call_update", toolCallId="a", **by("b")),
        update("tool_call_update", toolCallId="b", status="completed", **by("b")),
        call("b", "b"),
    )
    assert {id_: tool.parent for id_, tool in stream.view.tools.items()} == {"a": None, "b": None}


async def test_a_parent_that_is_named_later_counts_and_stays() -> None:
    stream = await played(
        call("a"),
        call("b"),
        call("c"),
        update("tool_call_update", toolCallId="c", **by("a")),
        update("tool_call_update", toolCallId="c", **by("b")),
    )
    assert stream.view.tools["c"].parent == "a"


async def test_no_tree_is_deeper_than_eight() -> None:
    calls = [call("0"), *(call(str(number), str(number - 1)) for number in range(1, 12))]
    stream = await played(*calls)
    parents = [tool.parent for tool in stream.view.tools.values()]
    assert parents == [None, *map(str, range(8)), None, "9", "10"]


async def test_what_is_not_kept_is_in_the_view_all_the_same() -> None:
    stream = await played(call("a"), say("Hm.", **by("a")), include="default")
    assert [event async for event in stream if isinstance(event, ev.SubagentText)] == []
    assert stream.view.agents["a"].text == "Hm."


async def test_events_and_views_survive_json_and_pickling(tmp_path: Path) -> None:
    stream = await of_trace("claude-subagent")
    reducer = ViewReducer()
    reducer.apply([ev.event_from_json(ev.event_to_json(event)) async for event in stream])
    assert reducer.snapshot().agents == stream.view.agents
    assert pickle.loads(pickle.dumps(stream.view)) == stream.view
    shown: Any = stream.view.to_json()["agents"]
    assert shown["call_2"]["calls"] == ["call_3"]


async def test_a_recording_has_it(tmp_path: Path) -> None:
    file = tmp_path / "run.ndjson"
    async with wire_agent(record=file) as (agent, wire):
        stream = agent.think().text("Go.").stream()
        prompt = await wire.begin()
        await wire.write(call("a"), say("Hm.", **by("a")), say("Done."), end_turn(prompt))
        await stream.wait()
    again = replay(file, speed=0)
    assert await again.result == "Done."
    assert again.view.agents == stream.view.agents


async def test_the_agent_is_asked_for_what_sub_agents_say() -> None:
    from thinkwell.testing import ScriptedAgent, script

    scripted = ScriptedAgent(script.says("Hi."))
    async with scripted.open() as agent:
        await agent.think().text("Hi").run()
    (hello,) = [message.params for message in scripted.sent.messages if message.method == "initialize"]
    assert hello["clientCapabilities"]["_meta"] == {"subagent-transcript": True}
