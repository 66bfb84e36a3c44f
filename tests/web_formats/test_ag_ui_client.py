"""The client of AG-UI, which checks the order of events itself, against a server on the loopback."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from front_end_stage import (
    PNG,
    Front,
    Told,
    ag_ui_event,
    asks,
    form,
    front,
    page,
    text,
    tool,
    tool_news,
    works,
)
from msgspec.structs import replace
from real_servers import backend_of, listening
from web_stage import Stage, served

from thinkwell.web import web_app
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from scripted import Turn
    from web_stage import Script

AGENT = Path(__file__).with_name("ag_ui_agent.mjs")


@pytest.fixture
def anyio_backend(kind: Any) -> str:
    return backend_of(kind)


@dataclass
class Talk:
    """A conversation with an agent."""

    stage: Stage
    agent: Front
    url: str

    async def says(self, words: object, *, id_: str = "m1", **options: Any) -> Told:
        """Let the user say something, and return what came of it, which has the protocol's form."""
        return await self.runs(message={"id": id_, "role": "user", "content": words}, **options)

    async def runs(self, **options: Any) -> Told:
        """Let the agent run."""
        told = await self.agent.do("run", **options)
        for event in told.all("event"):
            model = ag_ui_event().validate_python(event, strict=False)
            assert not model.model_extra, model
        assert told.all("warn") == []
        return told

    async def answers(
        self, told: Told, payload: Any = None, status: str = "resolved", **options: Any
    ) -> Told:
        """Answer all that was asked in the same way, and return what came of it."""
        resume = [
            {"interruptId": interrupt["id"], "status": status, "payload": payload}
            for interrupt in told["interrupts"]
        ]
        return await self.runs(options={"resume": resume, **options})


@asynccontextmanager
async def talking(kind: Any, *scripts: Script, thread: str = "thread 1/a") -> AsyncGenerator[Talk]:
    async with (
        served(*scripts) as stage,
        listening(web_app(stage.server), kind) as where,
        front(AGENT, f"{where.url}/ag-ui/scripted", thread) as agent,
    ):
        yield Talk(stage, agent, where.url)


def kinds(told: Told) -> list[str]:
    return [event["type"] for event in told.all("event")]


def texts(told: Told, role: str = "assistant") -> list[str]:
    return [
        message["content"]
        for message in told["messages"]
        if message["role"] == role and "toolCalls" not in message
    ]


def activities(told: Told, kind: str) -> list[Any]:
    return [
        message["content"]
        for message in told["messages"]
        if message["role"] == "activity" and message["activityType"] == kind
    ]


def calls(told: Told) -> dict[str, Any]:
    """The functions that were called, by the end of their id."""
    return {
        call["id"].rpartition(":")[2]: call["function"]
        for message in told["messages"]
        for call in message.get("toolCalls", ())
    }


@pytest.mark.quick
async def test_a_conversation_has_everything_that_a_run_has(kind: Any) -> None:
    async with talking(kind, works) as talk:
        told = await talk.says("Look.", state={"mine": 1})

    assert kinds(told)[:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
    started, finished = told.all("event")[0], told.all("event")[-1]
    assert (started["threadId"], started["protocolVersion"]) == ("thread 1/a", "1.0")
    assert finished["type"] == "RUN_FINISHED"
    assert finished["outcome"] == {"type": "success"}
    assert told.all("result")[0]["result"] == "It is 2."
    assert finished["runId"] == started["runId"]

    assert [message["role"] for message in told["messages"]] == [
        "user",
        "reasoning",
        "assistant",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "activity",
        "assistant",
        "tool",
        "activity",
        "activity",
        "activity",
        "activity",
        "assistant",
    ]
    assert texts(told, "reasoning") == ["Where is it?"]
    assert texts(told) == ["I look at it.", "It is 2."]
    assert calls(told) == {
        "read": {"name": "read", "arguments": '{"path":"a.py"}'},
        "edit": {"name": "edit", "arguments": '{"path":"a.py"}'},
        "run": {"name": "execute", "arguments": '{"command":"pytest"}'},
    }
    read, edit, run = [message for message in told["messages"] if message["role"] == "tool"]
    assert (read["content"], read["metadata"]["status"]) == ("print(1)", "completed")
    assert edit["content"] == [
        {"type": "text", "text": "Done"},
        {"type": "image", "source": {"type": "data", "value": PNG, "mimeType": "image/png"}},
    ]
    assert (run["content"], run["metadata"]["status"]) == ("1 failed", "failed")
    (diff,) = activities(told, "diff")
    assert (diff["path"], diff["oldText"], diff["newText"]) == ("a.py", "print(1)\n", "print(2)\n")
    assert [each["terminalId"] for each in activities(told, "terminal")] == ["term-1"]
    assert [each["text"] for each in activities(told, "tool-output")] == ["collected 3"]
    assert [each["type"] for each in activities(told, "content")] == ["image", "resource_link"]

    state = told["state"]
    assert state["mine"] == 1
    assert [entry["status"] for entry in state["plan"]] == ["completed", "completed"]
    assert state["plans"] == [{"id": "main", "entries": state["plan"]}]
    assert state["usage"] == {"used": 1200, "size": 200_000, "cost": {"amount": 0.5, "currency": "USD"}}
    assert state["run"]["phase"] == "completed"
    assert state["run"]["id"] == started["metadata"]["run"]
    assert "/" not in str([event for event in told.all("event") if event["type"] == "CUSTOM"])


async def test_plans_are_patched(kind: Any) -> None:
    async with talking(kind, works) as talk:
        told = await talk.says("Look.")
    deltas = [event["delta"] for event in told.all("event") if event["type"] == "STATE_DELTA"]
    assert [
        {"op": "replace", "path": "/plan/0/status", "value": "completed"},
        {"op": "replace", "path": "/plan/1/status", "value": "completed"},
    ] in deltas


@pytest.mark.parametrize(
    ("payload", "status", "chosen"),
    [
        pytest.param({"approved": True}, "resolved", "yes", marks=pytest.mark.quick),
        ({"approved": False}, "resolved", "no"),
        ({"approved": True, "option": "always"}, "resolved", "always"),
        (True, "resolved", "yes"),
        (None, "cancelled", "no"),
    ],
)
async def test_a_tool_call_is_an_interrupt_and_the_next_run_goes_on(
    kind: Any, payload: Any, status: str, chosen: str
) -> None:
    async def careful(turn: Turn) -> None:
        turn.say("I have to ")
        said = await asks(turn, "t1", raw_input={"command": "rm a"})
        turn.update(tool_news("t1", "completed" if said != "no" else "failed", content=(text("ended"),)))
        turn.say(f"You said {said}.")

    async with talking(kind, careful) as talk:
        asked = await talk.says("Clean up.")
        (interrupt,) = asked["interrupts"]
        assert (interrupt["reason"], interrupt["message"]) == ("tool_call", "Do t1")
        assert interrupt["toolCallId"].endswith(":t1")
        assert interrupt["responseSchema"]["required"] == ["approved"]
        assert kinds(asked)[-2:] == ["STATE_SNAPSHOT", "RUN_FINISHED"]
        assert asked["state"]["questions"][0]["title"] == "Do t1"

        told = await talk.answers(asked, payload, status)

    assert told["interrupts"] == []
    assert texts(told) == ["I have to ", f"You said {chosen}."]
    (result,) = [message for message in told["messages"] if message["role"] == "tool"]
    assert (result["toolCallId"], result["content"]) == (interrupt["toolCallId"], "ended")
    assert result["metadata"].get("denied", False) is (chosen == "no")
    assert told["state"]["questions"][0]["answer"]["by"] == "human"
    assert "TOOL_CALL_START" not in kinds(told)


@pytest.mark.quick
async def test_a_form_and_a_page_are_interrupts_and_a_wrong_answer_leaves_them_open(kind: Any) -> None:
    done: list[Any] = []

    async def asking(turn: Turn) -> None:
        done.append(await form(turn))
        done.append(await page(turn))
        turn.say("Thanks.")

    async with talking(kind, asking) as talk:
        asked = await talk.says("Connect.")
        (interrupt,) = asked["interrupts"]
        assert (interrupt["reason"], interrupt["message"]) == ("input_required", "Where to?")
        assert interrupt["responseSchema"] == {
            "type": "object",
            "properties": {
                "host": {"type": "string", "title": "Host", "minLength": 2},
                "port": {"type": "integer", "minimum": 1},
            },
            "required": ["host"],
        }
        payloads: tuple[Any, ...] = ({"host": "x"}, "x", {"host": {}})
        for payload in payloads:
            wrong = await talk.answers(asked, payload)
            error = wrong.all("event")[-1]
            assert (error["type"], error["code"]) == ("RUN_ERROR", "answer_invalid")
            assert wrong["interrupts"] == asked["interrupts"]
        opened = await talk.answers(asked, {"host": "db.example", "port": 5432})
        (interrupt,) = opened["interrupts"]
        assert (interrupt["reason"], interrupt["metadata"]["url"]) == (
            "confirmation",
            "https://login.example/start",
        )
        told = await talk.answers(opened, {"approved": True})

    assert done[0].content == {"host": "db.example", "port": 5432}
    assert done[1].action == "accept"
    assert texts(told) == ["Thanks."]


async def test_questions_that_are_asked_at_once_are_answered_at_once(kind: Any) -> None:
    chosen: dict[str, str | None] = {}

    async def careful(turn: Turn) -> None:
        turn.update(tool("other", status="in_progress"))

        async def one(name: str) -> None:
            chosen[name] = await asks(turn, name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "t1")
            tasks.start_soon(one, "t2")
        turn.update(tool_news("other", "completed"))
        turn.say("Done.")

    async with talking(kind, careful) as talk:
        asked = await talk.says("Clean up.")
        assert len(asked["interrupts"]) == 2
        part = [{"interruptId": asked["interrupts"][0]["id"], "status": "cancelled"}]
        half = await talk.runs(options={"resume": part})
        assert "not addressed by resume" in half.all("raised")[0]  # the client sees to that
        told = await talk.answers(asked, {"approved": True})
    assert chosen == {"t1": "yes", "t2": "yes"}
    assert texts(told) == ["Done."]


async def test_an_agent_that_fails_and_a_run_that_is_cancelled(kind: Any) -> None:
    begun = anyio.Event()

    async def failing(turn: Turn) -> None:
        turn.say("Oh")
        turn.update(tool("t1", status="in_progress"))
        raise RpcError(-32603, "broken", {"details": "in /secret/place"})

    async def endless(turn: Turn) -> None:
        turn.say("On ")
        turn.think("and on")
        turn.update(tool("t2"))
        begun.set()
        await anyio.sleep_forever()

    async with talking(kind, failing, endless) as talk:
        failed = await talk.says("Go.")
        error = failed.all("event")[-1]
        assert (error["type"], error["code"]) == ("RUN_ERROR", "AgentReported")
        assert "/secret" not in error["message"]

        await talk.says("Go on.", id_="m2", wait=False)
        await begun.wait()
        (record, _) = await talk.stage.server.runs(caller="")
        await talk.stage.server.cancel(record.id, caller="")
        told = await talk.agent.do("settle")
    assert told.all("event")[-1]["outcome"] == {"type": "cancelled"}
    assert texts(told) == ["Oh", "On "]
    assert [message["metadata"]["kind"] for message in told["messages"] if message["role"] == "tool"] == [
        "other",
        "other",
    ]


async def test_a_result_and_what_else_is_chosen(kind: Any) -> None:
    async def counting(turn: Turn) -> None:
        await turn.returns(count=3)

    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    async with talking(kind, counting) as talk:
        chosen = {"forwardedProps": {"thinkwell": {"output": schema, "title": "Counting"}}}
        told = await talk.says("Count.", options=chosen)
        (record,) = await talk.stage.server.runs(caller="")
        refused = await talk.says("Count.", options={"forwardedProps": {"thinkwell": {"cwd": "/"}}}, id_="m2")
    assert told.all("result")[0]["result"] == {"count": 3}
    assert record.title == "Counting"
    assert refused.all("status") == [422]
    assert "cwd" in refused.all("raised")[0]


@pytest.mark.parametrize("cut", [10, 1200, 3000, 5200])
async def test_a_run_is_asked_for_again_when_the_connection_broke_off(kind: Any, cut: int) -> None:
    async with talking(kind, works) as talk:
        whole = await talk.says("Look.", options={"runId": "r0"})
        await talk.agent.do("cut", bytes=cut)
        broken = await talk.agent.do(
            "run", message={"id": "m2", "role": "user", "content": "Look."}, options={"runId": "r1"}
        )
        assert broken.all("raised")
        told = await talk.runs(options={"runId": "r1"})
        assert len(await talk.stage.server.runs(caller="")) == 2

    first = len(whole["messages"])
    assert texts(told) == ["I look at it.", "It is 2."] * 2
    assert texts(told, "reasoning") == ["Where is it?"] * 2
    assert [message["role"] for message in told["messages"][first:]].count("tool") == 3
    assert [call["function"]["arguments"] for m in told["messages"] for call in m.get("toolCalls", ())] == [
        '{"path":"a.py"}',
        '{"path":"a.py"}',
        '{"command":"pytest"}',
    ] * 2
    assert {**told["state"], "run": None} == {**whole["state"], "run": None}


async def test_what_was_answered_is_asked_for_again_when_the_connection_broke_off(kind: Any) -> None:
    async def careful(turn: Turn) -> None:
        turn.think("Hm.")
        turn.say("One ")
        chosen = await asks(turn, "t1")
        await works(turn)
        turn.say(f" You said {chosen}.")

    async with talking(kind, careful) as talk:
        asked = await talk.says("Go.")
        await talk.agent.do("cut", bytes=3000)
        resume = [{"interruptId": asked["interrupts"][0]["id"], "status": "resolved", "payload": True}]
        broken = await talk.agent.do("run", options={"resume": resume, "runId": "r1"})
        assert broken.all("raised")
        told = await talk.runs(options={"resume": resume, "runId": "r1"})
    assert texts(told) == ["One ", "I look at it.", "It is 2. You said yes."]
    assert texts(told, "reasoning") == ["Hm.", "Where is it?"]
    assert list(calls(told)) == ["t1", "read", "edit", "run"]


async def test_a_run_that_was_started_elsewhere_is_watched(kind: Any) -> None:
    async def careful(turn: Turn) -> None:
        await works(turn)
        turn.say(f" {await asks(turn)}")

    async with talking(kind, careful) as talk:
        record = await talk.stage.start(caller="")
        async with talk.stage.server.watch(record.id, caller="") as watcher:
            while not (await talk.stage.server.state(record.id, caller="")).view.questions:
                await watcher.next()
        url = f"{talk.url}/api/runs/{record.id}/events?format=ag-ui"
        await talk.agent.do("watch", url=url, wait=False)
        await talk.stage.server.answer(record.id, "q1", "allow", caller="")
        told = await talk.agent.do("settle")
    assert told.all("raised") == []
    (result,) = told.all("result")
    assert result["result"] == " yes"
    assert result["state"]["questions"][0]["answer"]["choice"] == "allow_once"


SHOW = {
    "name": "showMap",
    "description": "Show a place on the map",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
    },
}


async def test_the_front_end_has_tools_for_the_agent(kind: Any) -> None:
    got: list[Any] = []

    async def guide(turn: Turn) -> None:
        turn.say("I show it.")
        turn.update(tool("mcp", title="showMap", status="in_progress"))
        got.append(await turn.call("showMap", {"place": 'Rome "I"'}))
        turn.update(tool_news("mcp", "completed", content=(text("shown"),)))
        got.append(await turn.call("showMap", {"place": "Oslo"}))
        turn.say("There.")

    async with talking(kind, guide) as talk:
        called = await talk.says("Where?", options={"tools": [SHOW]})
        (pending,) = called.all("event")[-1]["outcome"]["pendingToolCallIds"]
        call = called["messages"][-1]["toolCalls"][0]
        assert (call["id"], call["function"]) == (
            pending,
            {"name": "showMap", "arguments": '{"place": "Rome \\"I\\""}'},
        )
        result = {"id": "r1", "role": "tool", "toolCallId": pending, "content": "a map of Rome"}
        called = await talk.runs(message=result, options={"tools": [SHOW]})
        (pending,) = called.all("event")[-1]["outcome"]["pendingToolCallIds"]
        result = {"id": "r2", "role": "tool", "toolCallId": pending, "content": "", "error": "no such map"}
        told = await talk.runs(message=result, options={"tools": [SHOW]})

    assert [answer["content"][0]["text"] for answer in got] == ["a map of Rome", "no such map"]
    assert [answer.get("isError", False) for answer in got] == [False, True]
    assert told.all("event")[-1]["outcome"] == {"type": "success"}
    assert texts(told) == ["I show it.", "There."]


@pytest.mark.quick
async def test_the_agent_gets_what_the_application_tells_of_itself(kind: Any) -> None:
    seen: list[Any] = []

    async def looking(turn: Turn) -> None:
        seen.append([*turn.request.prompt])
        turn.say("I see.")

    picture = {"type": "image", "source": {"type": "data", "value": PNG, "mimeType": "image/png"}}
    words = {"type": "document", "source": {"type": "url", "value": "data:text/plain,a%20b"}}
    told_so = {"id": "s1", "role": "system", "content": "Be brief."}
    async with talking(kind, looking) as talk:
        assert talk.stage.handler is not None
        talk.stage.handler.capabilities = replace(
            talk.stage.handler.capabilities, prompt_capabilities=s.PromptCapabilities(image=True)
        )
        await talk.agent.do("add", message=told_so)
        context = [{"description": "The page that is open", "value": "prices"}]
        parts = [{"type": "text", "text": "What is it?"}, picture, words]
        await talk.says(parts, options={"context": context})
        await talk.says("And now?", id_="m2")
        bad = await talk.says([{"type": "image", "source": {"type": "url", "value": "https://a"}}], id_="m3")

    first = "".join(block.text for block in seen[0] if isinstance(block, s.TextContent))
    assert first == (
        "Be brief.\n\nThe page that is open\n<context>\nprices\n</context>\n\n"
        "What is it?\n<file>\na b\n</file>\n"
    )
    assert [block.data for block in seen[0] if isinstance(block, s.ImageContent)] == [PNG]
    assert [block.text for block in seen[1]] == ["And now?"]
    assert bad.all("status") == [422]


@pytest.mark.long
@pytest.mark.quick
async def test_hostile_ids_and_huge_texts_arrive_as_they_are(kind: Any) -> None:
    names = ["__proto__", "constructor", "a\nb\u2028\x00", "data: x\n\n", "x" * 5000]
    long = "läng" * 150_000

    async def hostile(turn: Turn) -> None:
        turn.say(long)
        for name in names:
            turn.update(tool(name, title=name, raw_input={"__proto__": name}))
            turn.update(tool_news(name, "completed", content=(text(name),)))
        turn.update(tool("__proto__", title="again"))
        turn.update(tool_news("__proto__", "completed", content=(text(long + long),)))
        turn.update(s.PlanUpdate(plan=s.PlanMarkdown(plan_id="__proto__", content="# a")))

    async with talking(kind, hostile) as talk:
        told = await talk.says("Go.")
    assert texts(told) == [long]
    results = [message["content"] for message in told["messages"] if message["role"] == "tool"]
    assert results[:-1] == names
    assert max(len(message["toolCallId"]) for message in told["messages"] if message["role"] == "tool") <= 200
    assert results[-1].endswith(f"… ({2 * len(long) - 1_000_000} more characters)")
    assert [plan["id"] for plan in told["state"]["plans"]] == ["__proto__"]
