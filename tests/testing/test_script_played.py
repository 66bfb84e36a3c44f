"""What a scripted agent does to its client, step by step, in memory."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import anyio
import pytest

from thinkwell import (
    AgentReported,
    Message,
    PermissionQuestion,
    PlanUpdate,
    ResultRefused,
    Thought,
    ThoughtCancelled,
    ToolDone,
    ToolError,
    ToolStart,
    Workspace,
)
from thinkwell.events import UnknownUpdate
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell import Answer, Question, ThoughtStream


async def read(stream: ThoughtStream[str]) -> list[object]:
    return [event async for event in stream]


async def test_it_tells() -> None:
    played = ScriptedAgent(
        script.thinks("hm", message_id="m1")
        .plans("read", "write", done=1)
        .uses("Write", kind="edit", path="/a.py", new_text="b", old_text="a", input={"n": 1}, output=5)
        .uses("Run", kind="execute", text="ran", status="failed", id="x", name="bash")
        .uses("Wait", status="pending")
        .says("done", message_id="m2")
    )
    async with played.open() as agent:
        events = await read(agent.think().text("go").stream())
    thought, plan, start, done, start_2, done_2, *_, message = events
    assert isinstance(thought, Thought)
    assert (thought.text, thought.message_id) == ("hm", "m1")
    assert isinstance(plan, PlanUpdate)
    assert [(entry.content, entry.status) for entry in plan.entries] == [
        ("read", "completed"),
        ("write", "pending"),
    ]
    assert isinstance(start, ToolStart)
    assert isinstance(done, ToolDone)
    assert (start.title, start.kind, start.input, start.id) == ("Write", "edit", {"n": 1}, done.id)
    assert [location.path for location in start.locations] == ["/a.py"]
    assert done.output == 5
    assert "old_text='a'" in repr(done.content)
    assert isinstance(start_2, ToolStart)
    assert (start_2.id, start_2.name, start_2.status) == ("x", "bash", "in_progress")
    assert isinstance(done_2, ToolDone)
    assert done_2.status == "failed"
    assert isinstance(message, Message)
    assert (message.text, message.message_id) == ("done", "m2")


async def test_any_update_and_any_bytes(caplog: pytest.LogCaptureFixture) -> None:
    played = ScriptedAgent(
        script.updates({"sessionUpdate": "strange", "n": 1})
        .updates({"sessionUpdate": "strange"}, session_id="elsewhere")
        .sends("not JSON")
        .sends(b'{"jsonrpc": "2.0", ')
        .sends(b'"method": "_x"}\n')
        .floods_stderr(10_000_000)
    )
    async with played.open() as agent:
        events = await read(agent.think().text("go").stream(include="all"))
    assert [event.raw for event in events if isinstance(event, UnknownUpdate)] == [
        {"sessionUpdate": "strange", "n": 1}
    ]
    assert "sent a malformed message" in caplog.text
    assert "unknown session 'elsewhere'" in caplog.text


async def test_it_calls_tools() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    def fail() -> None:
        raise ToolError("out of order")

    played = ScriptedAgent(
        script.calls("add", {"a": 1, "b": 2})
        .calls("fail", expect_error=None)
        .calls("fail", expect_error=True)
        .calls("fail", expect_error="of order")
        .says("3")
    )
    async with played.open() as agent:
        assert await agent.think().text("go").tool(add).tool(fail).run() == "3"
    assert [(result.tool, result.text, result.is_error) for result in played.sent.results] == [
        ("add", "3", False),
        *[("fail", "out of order", True)] * 3,
    ]


async def test_results_are_put_into_the_envelope_that_is_asked_for() -> None:
    played = ScriptedAgent(
        script.returns({"a": 1})
        .stops()
        .returns([1])
        .stops()
        .returns("x", expect_error="valid integer")
        .returns({"result": {"a": 2}})
        .stops()
        .returns({"a": 3})
    )
    async with played.open() as agent:
        assert await agent.think(dict[str, int]).text("go").run() == {"a": 1}
        assert await agent.think(list[int]).text("go").run() == [1]
        async with agent.session() as session:
            assert await session.think(dict[str, int]).text("go").run() == {"a": 2}
            assert await session.think(dict[str, int]).text("go").run() == {"a": 3}
    assert [result.arguments for result in played.sent.results] == [
        {"a": 1},
        {"result": [1]},
        {"result": "x"},
        {"result": {"a": 2}},
        {"result": {"a": 3}},
    ]


async def test_steps_behind_a_result_may_be_left() -> None:
    played = ScriptedAgent(script.returns(1).hangs().says("never"))
    async with played.open() as agent:
        assert await agent.think(int).text("go").run() == 1
    played.check()


async def test_it_asks_for_permission() -> None:
    asked: list[PermissionQuestion] = []

    def answer(question: Question) -> Answer:
        assert isinstance(question, PermissionQuestion)
        asked.append(question)
        return "allow" if question.kind == "read" else "deny"

    played = ScriptedAgent(
        script.asks("Look", kind="read", path="/a.py", input={"n": 1}, id="c1", expect="allow_once")
        .uses("Look", kind="read", id="c1")
        .asks("Delete", options=("allow_always", "allow_once", "odd", "reject_once"), expect="reject_once")
        .asks("Whatever")
    )
    async with played.open(permissions="ask", on_question=answer) as agent:
        await agent.think().text("go").run()
    assert [question.title for question in asked] == ["Look", "Delete", "Whatever"]
    assert asked[0].input == {"n": 1}
    assert [(given.title, given.choice) for given in played.sent.answers] == [
        ("Look", "allow_once"),
        ("Delete", "reject_once"),
        ("Whatever", "reject_once"),
    ]


FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def test_it_asks_for_forms() -> None:
    def answer(question: Question) -> Answer:
        return {"name": "I"} if question.title == "Who?" else "deny"

    played = ScriptedAgent(
        script.asks_form("Who?", FORM, expect={"name": "I"})
        .asks_form("Who?", FORM, expect="accept")
        .asks_form("Why?", FORM)
    )
    async with played.open(permissions="ask", on_question=answer) as agent:
        await agent.think().text("go").run()
    assert [(given.title, given.choice, given.content) for given in played.sent.answers] == [
        ("Who?", "accept", {"name": "I"}),
        ("Who?", "accept", {"name": "I"}),
        ("Why?", "decline", None),
    ]


async def test_it_uses_files_and_terminals(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n", "utf-8")
    played = ScriptedAgent(
        script.reads(tmp_path / "a.txt", expect="hello")
        .reads(tmp_path / "b.txt", expect_error=True)
        .writes(tmp_path / "b.txt", "there")
        .runs("cat", "b.txt", expect="there")
        .runs("true")
    )
    workspace = Workspace(tmp_path, write=True, terminal=True)
    async with played.open(workspace=workspace, cwd=tmp_path, permissions="allow") as agent:
        await agent.think().text("go").run()
    assert (tmp_path / "b.txt").read_text("utf-8") == "there"


async def test_it_stops_for_any_reason() -> None:
    played = ScriptedAgent(script.says("half").stops("max_tokens").refuses().fails(-32050, "no", data=[1]))
    async with played.open() as agent:
        stream = agent.think().text("go").stream()
        await stream.wait()
        assert stream.view.stop_reason == "max_tokens"
        with pytest.raises(ResultRefused):
            await agent.think().text("go").run()
        with pytest.raises(AgentReported) as reported:
            await agent.think().text("go").run()
    assert (reported.value.code, reported.value.message, reported.value.data) == (-32050, "no", [1])


async def test_what_is_late_comes_behind_the_answer() -> None:
    played = ScriptedAgent(script.says("a").stops(late=script.pauses(0.01).says("b")).says("c"))
    async with played.open() as agent, agent.session() as session:
        stream = session.think().text("go").stream()
        assert await stream.result == "a"
        await stream.wait()
        with anyio.fail_after(30):
            async for event in session.events():  # pragma: no branch - it is there
                if isinstance(event, Message) and event.text == "b":
                    break
        assert await session.think().text("go").run() == "c"


async def test_late_updates_without_a_run() -> None:
    many = functools.reduce(lambda told, _: told.thinks("b"), range(2000), script)
    played = ScriptedAgent(script.says("a").stops(late=many))
    async with played.open() as agent:
        assert await agent.think().text("go").run() == "a"


async def test_a_turn_hangs_until_it_is_cancelled_and_ends_in_its_own_way() -> None:
    played = ScriptedAgent(script.says("a").hangs().says("b").stops().says("a").hangs())
    async with played.open() as agent:
        for told in (["a", "b"], ["a"]):
            stream = agent.think().text("go").stream()
            async for _ in stream:
                break
            stream.cancel()
            assert [event.text for event in await read(stream) if isinstance(event, Message)] == told
            with pytest.raises(ThoughtCancelled):
                await stream.result
    assert len(played.sent.cancelled) == 2


async def test_a_cancelled_turn_leaves_the_rest() -> None:
    played = ScriptedAgent(script.says("a").pauses(3600).says("b"), complete=False)
    async with played.open() as agent:
        stream = agent.think().text("go").stream()
        async for _ in stream:
            break
        stream.cancel()
        await stream.wait()
        assert stream.view.stop_reason == "cancelled"
    assert [str(step) for step in played.unplayed] == ["turn 1, step 3: says('b')"]
