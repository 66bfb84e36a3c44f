"""What clients send: its forms, the same again, one at a time, skills, and stopping what goes on."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from letta_stage import Blocks, LettaStage, asking, hello, letta_served

from thinkwell.web import Limits, StartRun
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from scripted import Turn

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def prompted(stage: LettaStage) -> list[str]:
    """The texts of the last prompt."""
    blocks = stage.handler.requests("session/prompt")[-1].prompt
    return [block.text for block in blocks if isinstance(block, s.TextContent)]


async def see(turn: Turn) -> None:
    turn.say(f"I got: {turn.text}")


# Forms


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ({"input": "Hello."}, "Hello."),
        ({"input": [{"type": "text", "text": "Hello."}]}, "Hello."),
        ({"input": [{"text": "Hel"}, {"text": "lo."}]}, "Hel\n\nlo."),
        ({"messages": [user("Hello.")]}, "Hello."),
        ({"messages": [user("Hello.", type="message", otid="o1")]}, "Hello."),
        ({"messages": [{"role": "system", "content": "Be kind."}, user("Hello.")]}, "Be kind.\n\nHello."),
        ({"messages": [user([{"type": "text", "text": "Hello."}])], "max_steps": 3}, "Hello."),
    ],
)
async def test_what_an_agent_is_told(body: dict[str, Any], prompt: str) -> None:
    async with letta_served(see) as stage:
        agent = await stage.agent()
        answer = await stage.post(f"/v1/agents/{agent}/messages", body)
        assert answer["messages"][-1]["content"] == f"I got: {prompt}"


async def test_images() -> None:
    capabilities = s.AgentCapabilities(
        mcp_capabilities=s.McpCapabilities(acp=True), prompt_capabilities=s.PromptCapabilities(image=True)
    )
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    async with letta_served(hello) as stage:
        stage.handler.capabilities = capabilities
        agent = await stage.agent()
        content = [
            {"type": "text", "text": "Look:"},
            {"type": "image", "source": source},
            {"source": {"type": "url", "url": "https://example.org/a.png"}},
        ]
        await stage.post(f"/v1/agents/{agent}/messages", {"messages": [user(content)]})
        blocks = stage.handler.requests("session/prompt")[-1].prompt
        assert any(isinstance(block, s.ImageContent) for block in blocks)
        assert "https://example.org/a.png" in "".join(prompted(stage))
        (said, *_) = await stage.messages(agent)
        assert said["content"] == "Look:\n\n[image]\n\nhttps://example.org/a.png"
        await stage.post(f"/v1/agents/{agent}/messages", {"input": [{"type": "image", "source": source}]})
        (run, _) = await stage.server.runs(caller="")
        assert run.title == "(an image)"


NOTHING: list[dict[str, Any]] = [
    {},
    {"input": "Hello.", "messages": [user("Hello.")]},
    {"messages": []},
    {"messages": [user("Hello.")] * 101},
    {"input": ""},
    {"input": "   "},
    {"messages": ["Hello."]},
    {"messages": [{"content": "Hello."}]},
    {"messages": [{"role": "assistant", "content": "Hello."}]},
    {"messages": [{"type": "letter", "content": "Hello."}]},
    {"messages": [user("Hello.", type=5)]},
    {"input": ["Hello."]},
    {"input": [{"type": "text"}]},
    {"input": [{"type": "tool_call", "id": "1"}]},
    {"input": [{"text": "x"}] * 101},
    {"input": [{"type": "image"}]},
    {"input": [{"type": "image", "source": {"type": "letta", "file_id": "f"}}]},
    {"input": [{"type": "image", "source": {"type": "base64", "data": "!"}}]},
    {"input": [{"type": "image", "source": {"type": "url"}}]},
    {"messages": [user("Hello."), {"type": "approval", "approve": True}]},
    {"messages": [{"type": "approval"}]},
    {"messages": [{"type": "approval", "approvals": []}]},
    {"messages": [{"type": "approval", "approvals": [{"approve": True}]}]},
    {"messages": [{"type": "approval", "approvals": [5]}]},
    {"messages": [{"type": "tool_return", "tool_returns": []}]},
    {"messages": [{"type": "tool_return", "tool_returns": [{"tool_call_id": "1"}]}]},
    {"input": "Hello.", "include_return_message_types": ["gossip"]},
    {"input": "\ud800"},
]
"""What cannot be sent."""


@pytest.mark.parametrize("body", NOTHING)
async def test_what_cannot_be_sent(body: dict[str, Any]) -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        for path in ("messages", "messages/stream"):
            refused = await stage.post(f"/v1/agents/{agent}/{path}", body, 422)
            assert isinstance(refused["detail"], str)
            assert refused["detail"]
        assert not stage.handler.sent.prompts
        assert await stage.get("/v1/runs/") == []


async def test_a_request_that_is_too_long() -> None:
    async with letta_served(hello, limits=Limits(max_request=1000)) as stage:
        agent = await stage.agent()
        refused = await stage.post(f"/v1/agents/{agent}/messages", {"input": "x" * 2000}, 413)
        assert "1,000 bytes" in refused["detail"]


async def test_more_runs_than_may_be() -> None:
    async with letta_served(asking, limits=Limits(max_runs_per_caller=1)) as stage:
        one, two = await stage.agent(), await stage.agent()
        await stage.stream(one)
        answer = await stage.client.post(f"/v1/agents/{two}/messages", {"input": "Go."})
        assert answer.status == 429
        assert "retry-after" in answer.headers
        assert "detail" in await answer.json()


# The same again


async def test_the_same_message_again_is_the_same_run() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        url = f"/v1/agents/{agent}/messages/stream"
        body = {"messages": [user("Go.", otid="o1")], "stream_tokens": True, "background": True}
        first = await stage.read(url, body)
        again = await stage.read(url, body)
        assert again.frames[1:] == first.frames[1:]
        assert len(stage.handler.sent.prompts) == 1
        other = await stage.read(url, {**body, "messages": [user("Go.", otid="o2")]})
        assert other.run_id != first.run_id
        complete = await stage.post(f"/v1/agents/{agent}/messages", {"messages": body["messages"]})
        assert complete["messages"][-1]["content"] == "Hello Ada."
        assert len(stage.handler.sent.prompts) == 2


async def test_a_connection_that_is_lost_and_a_message_that_is_sent_again() -> None:
    go = anyio.Event()

    async def slowly(turn: Turn) -> None:
        turn.say("One")
        await go.wait()
        turn.say(" two")

    async with letta_served(slowly) as stage:
        agent = await stage.agent()
        url = f"/v1/agents/{agent}/messages/stream"
        body = {"messages": [user("Go.", otid="o1")], "stream_tokens": True, "background": True}
        for _ in range(3):  # as clients do
            async with stage.client.stream("POST", url, json_body=body) as answer:
                await anext(Blocks(answer.chunks))
        go.set()
        assert (await stage.read(url, body)).text == "One two"
        assert len(stage.handler.sent.prompts) == 1


async def test_the_same_message_at_the_same_time() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        url = f"/v1/agents/{agent}/messages/stream"
        runs: list[str] = []

        async def send() -> None:
            runs.append((await stage.read(url, {"messages": [user("Go.", otid="o1")]})).run_id)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(send)
        assert len(set(runs)) == 1
        assert len(stage.handler.sent.prompts) == 1


async def test_the_same_name_in_another_conversation_is_another_message() -> None:
    async with letta_served(hello) as stage:
        one, two = await stage.agent(), await stage.agent()
        runs = {
            (await stage.stream(agent, None, messages=[user("Go.", otid="o1")])).run_id
            for agent in (one, two)
        }
        assert len(runs) == 2


async def test_one_run_at_a_time() -> None:
    go = anyio.Event()

    async def slowly(turn: Turn) -> None:
        await go.wait()
        turn.say("Done.")

    async with letta_served(slowly) as stage:
        agent = await stage.agent()
        url = f"/v1/agents/{agent}/messages"
        run = await stage.post(f"{url}/async", {"input": "Go."})
        answer = await stage.client.post(url, {"input": "And now?"})
        assert answer.status == 409
        assert answer.headers["x-should-retry"] == "false"
        body = await answer.json()
        assert "is currently being processed" in body["detail"]
        assert f"run_id={run['id']}" in body["detail"]
        assert body["run_id"] == run["id"]
        go.set()
        assert (await stage.read(f"/v1/runs/{run['id']}/stream", {})).text == "Done."
        await stage.send(agent)


@pytest.mark.parametrize("limit", [2, 16])
async def test_a_repeated_message_behind_a_decision_of_a_caller_at_the_limit_of_runs(
    limit: int,
) -> None:
    async def script(turn: Turn) -> None:
        if "Ask." in turn.text:
            await asking(turn)
        elif "Wait." in turn.text:
            await anyio.sleep_forever()

    async with letta_served(script, limits=Limits(max_runs_per_caller=limit)) as stage:
        agent = await stage.agent()
        await stage.stream(agent, "Ask.")
        approval = {"type": "approval", "approve": True, "otid": "o1"}
        body = {"messages": [approval, user("And now?", otid="o2")]}
        url = f"/v1/agents/{agent}/messages/stream"
        first = await stage.read(url, body)
        for _ in range(2):
            await stage.post(f"/v1/agents/{await stage.agent()}/messages/async", {"input": "Wait."})
        again = await stage.read(url, body)
        assert [f for f in again.frames if f["message_type"] != "ping"] == [
            f for f in first.frames if f["message_type"] != "ping"
        ]
        assert len(await stage.server.runs(caller="", thread=agent)) == 2


async def test_a_repeated_message_after_many_others_of_a_caller_at_the_limit_of_runs() -> None:
    async def script(turn: Turn) -> None:
        if "Wait." in turn.text:
            await anyio.sleep_forever()

    async with letta_served(script, limits=Limits(max_runs_per_caller=1)) as stage:
        agent = await stage.agent()
        url = f"/v1/agents/{agent}/messages/stream"
        body = {"messages": [user("Go.", otid="first")]}
        run = (await stage.read(url, body)).run_id
        for _ in range(30):
            await stage.send(agent)
        await stage.post(f"/v1/agents/{await stage.agent()}/messages/async", {"input": "Wait."})
        assert (await stage.read(url, body)).run_id == run
        await stage.post(url, {"messages": [user("Go.", otid="new")]}, 429)


async def test_a_message_that_never_gets_its_place() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        # Somebody has given another run of his the name that the first of the conversation would have.
        await stage.server.start(StartRun(prompt="Go."), caller="", key=f"letta:{agent}:")
        answer = await stage.client.post(f"/v1/agents/{agent}/messages", {"input": "Go."})
        assert answer.status == 409
        assert answer.headers["x-should-retry"] == "false"


# Skills


async def test_skills_of_the_client_are_told_when_they_are_new() -> None:
    skills = [{"name": "tests", "description": "How to test", "location": "skills/tests/SKILL.md"}]
    more = [*skills, {"name": "docs"}]
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        for offered, told in ((skills, True), (skills, False), (more, True), ([], False), (more, True)):
            await stage.send(agent, client_skills=offered)
            assert ("skills/tests/SKILL.md" in "".join(prompted(stage))) == told
        (said, *_) = await stage.messages(agent)
        assert said["content"] == "Go."
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
        body = {"input": [{"type": "image", "source": source}], "client_skills": skills, "streaming": True}
        streamed = await stage.read(f"/v1/agents/{agent}/messages", body)
        assert streamed.error is not None  # this agent takes no images


# Cancelling


async def waits(turn: Turn) -> str:
    turn.say("I begin.")
    await anyio.sleep_forever()
    raise AssertionError


async def test_a_run_is_cancelled() -> None:
    async with letta_served(waits) as stage, anyio.create_task_group() as tasks:
        agent = await stage.agent()
        streams: list[Any] = []

        async def watch() -> None:
            streams.append(await stage.stream(agent, background=True))

        tasks.start_soon(watch)
        with anyio.fail_after(30):
            while not stage.handler.sent.prompts:
                await anyio.lowlevel.checkpoint()
        told = await stage.post(f"/v1/agents/{agent}/messages/cancel")
        (run,) = await stage.get("/v1/runs/")
        assert told == {run["id"]: "cancelled"}
        assert (run["status"], run["stop_reason"]) == ("cancelled", "cancelled")
        while not streams:
            await anyio.lowlevel.checkpoint()
        assert streams[0].stop_reason == "cancelled"
        assert streams[0].done
        assert streams[0].error is None


@pytest.mark.parametrize("body", [None, {}, {"run_ids": []}])
async def test_nothing_to_cancel(body: dict[str, Any] | None) -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        conversation = (await stage.post(f"/v1/conversations/?agent_id={agent}", {}))["id"]
        for path, what in (
            (f"agents/{agent}/messages/cancel", f"agent {agent}"),
            (f"conversations/{conversation}/cancel", f"conversation {conversation}"),
            (f"conversations/default/cancel?agent_id={agent}", "conversation default"),
        ):
            answer = await stage.client.post(f"/v1/{path}", body)
            assert answer.status == 409
            assert answer.headers["x-should-retry"] == "false"
            assert await answer.json() == {"detail": f"CONFLICT: No active runs to cancel for {what}"}


async def test_runs_are_cancelled_by_name() -> None:
    async with letta_served(waits) as stage:
        agent = await stage.agent()
        other = await stage.agent()
        runs = [
            (await stage.post(f"/v1/agents/{one}/messages/async", {"input": "Go."}))["id"]
            for one in (agent, other)
        ]
        body = {"run_ids": [runs[0], runs[1], "run-00ff", "nonsense"]}
        told = await stage.post(f"/v1/agents/{agent}/messages/cancel", body)
        assert told == {runs[0]: "cancelled", runs[1]: "failed", "run-00ff": "failed", "nonsense": "failed"}
        assert (await stage.get(f"/v1/runs/{runs[1]}"))["status"] == "running"
        await stage.post(f"/v1/agents/{agent}/messages/async", {"input": "It is not in the way."})


async def test_a_run_that_waits_for_approval_is_cancelled() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent)
        again = await stage.decide(agent, {"tool_call_id": "t1", "approve": True})
        streamed = await stage.stream(agent)
        told = await stage.post(
            f"/v1/agents/{agent}/messages/cancel", {"run_ids": [streamed.run_id, again.run_id]}
        )
        assert told == {streamed.run_id: "cancelled", again.run_id: "failed"}


async def test_a_conversation_is_cancelled() -> None:
    async with letta_served(waits) as stage:
        agent = await stage.agent()
        conversation = (await stage.post(f"/v1/conversations/?agent_id={agent}", {}))["id"]
        path = f"/v1/conversations/{conversation}"
        async with stage.client.stream("POST", f"{path}/messages", json_body={"input": "Go."}) as answer:
            await anext(Blocks(answer.chunks))
        default = await stage.post(f"/v1/agents/{agent}/messages/async", {"input": "Go."})
        told = await stage.post(f"{path}/cancel")
        assert list(told.values()) == ["cancelled"]
        assert (await stage.get(f"/v1/runs/{default['id']}"))["status"] == "running"
        told = await stage.post(f"/v1/conversations/default/cancel?agent_id={agent}")
        assert told == {default["id"]: "cancelled"}


# Runs


async def test_runs_are_listed() -> None:
    async with letta_served(hello, waits) as stage:
        one, two = await stage.agent(), await stage.agent()
        conversation = (await stage.post(f"/v1/conversations/?agent_id={one}", {}))["id"]
        first = (await stage.stream(one, background=True)).run_id
        second = (await stage.post(f"/v1/agents/{two}/messages/async", {"input": "Go."}))["id"]
        url = f"/v1/conversations/{conversation}/messages"
        async with stage.client.stream("POST", url, json_body={"input": "Go."}) as answer:
            await anext(Blocks(answer.chunks))

        async def listed(query: str) -> list[str]:
            return [run["id"] for run in await stage.get(f"/v1/runs/?order=asc&{query}")]

        (third,) = await listed(f"conversation_id={conversation}")
        assert await listed("") == [first, second, third]
        assert await listed(f"agent_id={one}") == [first, third]
        assert await listed(f"agent_ids={one}&agent_ids={two}") == [first, second, third]
        assert await listed(f"agent_id={one}&conversation_id=default") == [first]
        assert await listed("statuses=completed") == [first]
        assert await listed("statuses=completed&statuses=running") == [first, second, third]
        assert await listed("active=true") == [second, third]
        assert await listed("background=false") == [third]
        assert await listed("stop_reason=end_turn") == [first]
        assert await listed(f"limit=1&after={first}") == [second]
        for cursor in ("nonsense", "run-00ff"):
            assert await listed(f"after={cursor}") == []
            assert await listed(f"before={cursor}") == []
        assert await stage.of("ben").get(f"/v1/runs/?after={first}") == []
        assert await listed(f"before={first}-7") == []  # a part of it is where it is
        assert await listed(f"after={first}-7") == [second, third]
        assert [run["id"] for run in await stage.get("/v1/runs?limit=2")] == [third, second]
        assert await listed(f"active=true&after={second}") == [third]
        async with stage.server.watch(third, caller="") as watcher:
            await stage.server.cancel(third, caller="")
            while await watcher.next():
                pass
        assert await listed(f"active=true&after={third}") == []  # what is behind one that has ended since
