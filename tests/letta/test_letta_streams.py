"""Streams as Letta's clients read them: frames, numbers, ends, errors, signs of life, taking up again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from letta_stage import Blocks, LettaStage, hello, letta_served, tool_done, tool_start

from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from scripted import Turn


pytestmark = pytest.mark.virtual_time


async def working(turn: Turn) -> str:
    """Think, use a tool, and say something."""
    turn.think("Let me see.")
    tool_start(turn, raw_input={"path": "a.py"})
    tool_done(turn)
    turn.say("It is ")
    turn.say("one.")
    return "end_turn"


# Frames


async def test_whole_messages() -> None:
    async with letta_served(working) as stage:
        streamed = await stage.stream(await stage.agent())
    assert streamed.kinds == [
        "reasoning_message",
        "tool_call_message",
        "tool_return_message",
        "assistant_message",
        "stop_reason",
        "usage_statistics",
    ]
    assert streamed.done
    assert streamed.stop_reason == "end_turn"
    assert streamed.text == "It is one."
    (usage,) = streamed.of("usage_statistics")
    assert (usage["step_count"], usage["run_ids"]) == (2, [streamed.run_id])


async def test_tokens_come_one_by_one() -> None:
    async with letta_served(hello) as stage:
        streamed = await stage.stream(await stage.agent(), stream_tokens=True)
    assert [frame["content"] for frame in streamed.of("assistant_message")] == ["Hello ", "Ada."]
    assert [frame["reasoning"] for frame in streamed.of("reasoning_message")] == ["Who is ", "there?"]


async def test_a_token_is_there_before_the_next_one() -> None:
    go = anyio.Event()

    async def slowly(turn: Turn) -> None:
        turn.say("One")
        await go.wait()
        turn.say(" two")

    async with letta_served(slowly) as stage:
        agent = await stage.agent()
        body = {"input": "Go.", "stream_tokens": True}
        async with stage.client.stream(
            "POST", f"/v1/agents/{agent}/messages/stream", json_body=body
        ) as answer:
            blocks = Blocks(answer.chunks)
            assert json.loads((await anext(blocks)).removeprefix("data: "))["message_type"] == "ping"
            assert json.loads((await anext(blocks)).removeprefix("data: "))["content"] == "One"
            go.set()
            rest = [block async for block in blocks]
    assert json.loads(rest[0].removeprefix("data: "))["content"] == " two"
    assert rest[-1] == "data: [DONE]"


async def test_numbers_begin_with_one_and_have_no_gaps() -> None:
    async with letta_served(working) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent, stream_tokens=True)
        assert streamed.seqs == list(range(1, 7))
        assert streamed.frames[0]["message_type"] == "ping"
        quiet = await stage.stream(agent, include_pings=False)
        assert quiet.seqs == list(range(1, 5))
        assert not quiet.of("ping")


async def test_every_frame_of_content_says_where_it_belongs() -> None:
    async with letta_served(working) as stage:
        streamed = await stage.stream(await stage.agent(), stream_tokens=True)
    for frame in streamed.frames:
        if frame["message_type"] in ("stop_reason", "usage_statistics"):
            continue
        assert frame["run_id"] == streamed.run_id
        assert frame["date"]
        if frame["message_type"] != "ping":
            assert frame["otid"]
            assert frame["step_id"]


async def test_only_the_types_that_are_wanted_come() -> None:
    async with letta_served(working) as stage:
        agent = await stage.agent()
        only = ["assistant_message", "tool_return_message"]
        streamed = await stage.stream(agent, include_return_message_types=only, background=True)
        assert streamed.kinds == [
            "tool_return_message",
            "assistant_message",
            "stop_reason",
            "usage_statistics",
        ]
        assert streamed.seqs == [1, 2, 3]
        resumed = await stage.read(f"/v1/runs/{streamed.run_id}/stream", {"starting_after": 2})
        assert resumed.kinds == ["assistant_message", "stop_reason", "usage_statistics"]


async def test_streaming_is_asked_for_in_the_body_too() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        streamed = await stage.read(f"/v1/agents/{agent}/messages", {"input": "Go.", "streaming": True})
        assert streamed.text == "Hello Ada."


async def test_what_a_browser_or_a_proxy_must_not_keep() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        url = f"/v1/agents/{agent}/messages/stream"
        # What the client in Python says it accepts, even for streams.
        headers = {"accept": "application/json"}
        async with stage.client.stream("POST", url, json_body={"input": "Go."}, headers=headers) as answer:
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert "no-store" in answer.headers["cache-control"]
            assert answer.headers["x-accel-buffering"] == "no"


# Ends


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("end_turn", "end_turn"),
        ("max_tokens", "max_tokens_exceeded"),
        ("max_turn_requests", "max_steps"),
        ("whatever", "error"),
    ],
)
async def test_stop_reasons(reason: str, told: str) -> None:
    async def stops(turn: Turn) -> str:
        turn.say("Some of it.")
        return reason

    async with letta_served(stops) as stage:
        streamed = await stage.stream(await stage.agent())
    assert streamed.stop_reason == told
    assert streamed.text == "Some of it."
    assert (streamed.error is not None) == (told == "error")
    assert streamed.done


async def test_usage_is_what_the_agent_tells() -> None:
    async def counts(turn: Turn) -> None:
        turn.update(s.UsageUpdate(used=50, size=100))
        turn.say("Fine.")

    async with letta_served(counts) as stage:
        streamed = await stage.stream(await stage.agent())
        answer = await stage.send(await stage.agent())
    (usage,) = streamed.of("usage_statistics")
    assert usage["context_tokens"] == 50
    assert answer["usage"]["context_tokens"] == 50


async def test_an_error_in_the_middle() -> None:
    async def fails(turn: Turn) -> None:
        turn.say("I be")
        raise RpcError(-32603, "the model is gone: sk-1234567890abcdefghij at /home/someone")

    async with letta_served(fails) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent)
        assert streamed.text == "I be"
        assert streamed.kinds[-1] == "stop_reason"
        assert streamed.stop_reason == "llm_api_error"
        assert streamed.error is not None
        assert streamed.error["error_type"] == "agent_reported"
        assert streamed.error["run_id"] == streamed.run_id
        assert streamed.error["message"] in streamed.error["detail"]
        assert "sk-" not in json.dumps(streamed.error)
        assert "/home" not in json.dumps(streamed.error)
        assert streamed.done
        run = await stage.get(f"/v1/runs/{streamed.run_id}")
        assert (run["status"], run["stop_reason"]) == ("failed", "llm_api_error")


async def test_a_refusal_is_an_error_that_says_so() -> None:
    async def refuses(turn: Turn) -> str:
        turn.say("No.")
        return "refusal"

    async with letta_served(refuses) as stage:
        streamed = await stage.stream(await stage.agent())
    assert streamed.stop_reason == "error"
    assert streamed.error is not None
    assert streamed.error["error_type"] == "result_refused"


async def test_a_server_that_closes_cuts_a_stream_off_without_an_end() -> None:
    said = anyio.Event()

    async def waits(turn: Turn) -> None:
        turn.say("I begin.")
        said.set()
        await anyio.sleep_forever()

    streams: list[str] = []
    async with anyio.create_task_group() as tasks, letta_served(waits) as stage:
        agent = await stage.agent()

        async def watch() -> None:
            url = f"/v1/agents/{agent}/messages/stream"
            async with stage.client.stream("POST", url, json_body={"input": "Go."}) as answer:
                streams.append((await answer.body()).decode())

        tasks.start_soon(watch)
        with anyio.fail_after(5):
            await said.wait()
    assert "stop_reason" not in streams[0]
    assert "[DONE]" not in streams[0]


async def test_an_interrupted_run_is_told_of_as_an_error() -> None:
    from thinkwell.journal import MemoryJournal

    journal = MemoryJournal()
    said = anyio.Event()

    async def waits(turn: Turn) -> None:
        said.set()
        await anyio.sleep_forever()

    body = {"messages": [{"role": "user", "content": "Go.", "otid": "o1"}], "background": True}
    async with letta_served(waits, journal=journal) as stage:
        agent = await stage.agent()
        run = await stage.post(f"/v1/agents/{agent}/messages/async", body)
        with anyio.fail_after(5):
            await said.wait()
    async with letta_served(hello, journal=journal) as stage:
        again = await stage.read(f"/v1/agents/{agent}/messages/stream", body)
        assert again.stop_reason == "error"
        assert again.error is not None
        assert again.error["error_type"] == "interrupted"
        assert "under another otid" in again.error["message"]  # for this one is that run's
        assert again.error["run_id"] == run["id"]
        assert not stage.handler.sent.prompts


# Signs of life


async def test_a_silence_is_broken_every_twenty_seconds() -> None:
    async def slowly(turn: Turn) -> None:
        turn.say("One")
        await anyio.sleep(65)
        turn.say(" two")

    async with letta_served(slowly) as stage:
        streamed = await stage.stream(await stage.agent(), stream_tokens=True)
    shown = [(frame["message_type"], frame.get("seq_id")) for frame in streamed.frames[:-2]]
    assert shown == [
        ("ping", 1),
        ("assistant_message", 2),
        ("ping", 2),  # the number of what is known: from there on it is taken up again
        ("ping", 2),
        ("ping", 2),
        ("assistant_message", 3),
    ]


async def test_no_signs_of_life_where_none_are_wanted() -> None:
    async def slowly(turn: Turn) -> None:
        await anyio.sleep(65)
        turn.say("Now.")

    async with letta_served(slowly) as stage:
        streamed = await stage.stream(await stage.agent(), include_pings=False)
    assert streamed.kinds == ["assistant_message", "stop_reason", "usage_statistics"]
    assert not streamed.of("ping")


# Taking up again


async def test_a_stream_is_taken_up_at_every_number() -> None:
    async with letta_served(working) as stage:
        agent = await stage.agent()
        for tokens in (False, True):
            whole = await stage.stream(agent, stream_tokens=tokens, background=True)
            for after in range(8):
                body = {"starting_after": after, "batch_size": 1}
                rest = await stage.read(f"/v1/runs/{whole.run_id}/stream", body)
                wanted = [
                    frame for frame in whole.frames if frame.get("seq_id", 99) > after
                ]  # the end has no number
                if not after:
                    wanted[0]["date"] = rest.frames[0]["date"]  # that of a ping is when it is sent
                assert rest.frames == wanted
                assert rest.done


async def test_a_stream_that_was_cut_off_goes_on() -> None:
    go = anyio.Event()

    async def slowly(turn: Turn) -> None:
        turn.say("One")
        await go.wait()
        turn.say(" two")

    async with letta_served(slowly) as stage:
        agent = await stage.agent()
        body = {"input": "Go.", "stream_tokens": True, "background": True}
        async with stage.client.stream(
            "POST", f"/v1/agents/{agent}/messages/stream", json_body=body
        ) as answer:
            blocks = Blocks(answer.chunks)
            ping = json.loads((await anext(blocks)).removeprefix("data: "))
            one = json.loads((await anext(blocks)).removeprefix("data: "))
        run = await stage.get(f"/v1/runs/{ping['run_id']}")
        assert run["status"] == "running"  # that somebody hangs up means nothing
        go.set()
        rest = await stage.read(f"/v1/runs/{ping['run_id']}/stream", {"starting_after": one["seq_id"]})
        assert [frame["content"] for frame in rest.of("assistant_message")] == [" two"]
        assert rest.frames[0]["id"] == one["id"]
        assert rest.seqs == [3]


async def test_only_what_is_in_the_background_can_be_taken_up_again() -> None:
    async with letta_served(hello) as stage:
        streamed = await stage.stream(await stage.agent())
        refused = await stage.post(f"/v1/runs/{streamed.run_id}/stream", {"starting_after": 0}, 400)
        assert "background" in refused["detail"]


async def test_pings_may_be_left_out_when_it_is_taken_up() -> None:
    async with letta_served(hello) as stage:
        streamed = await stage.stream(await stage.agent(), background=True)
        quiet = await stage.read(f"/v1/runs/{streamed.run_id}/stream", {"include_pings": False})
        assert quiet.seqs == streamed.seqs[1:]
        assert not quiet.of("ping")
        empty = await stage.client.post(f"/v1/runs/{streamed.run_id}/stream")
        assert empty.status == 200


async def test_runs_that_are_none() -> None:
    async with letta_served(hello) as stage:
        for run in ("run-00ff", "run-00ff-7", "run-xyz", "nonsense", "run-"):
            refused = await stage.post(f"/v1/runs/{run}/stream", {}, 404)
            assert "Run not found" in refused["detail"]
        other = await _native_run(stage)
        await stage.post(f"/v1/runs/{other}/stream", {}, 404)


async def _native_run(stage: LettaStage) -> str:
    from thinkwell.web import StartRun

    return (await stage.server.start(StartRun(prompt="Go."), caller="")).id


# Conversations that go on


async def test_the_rest_of_a_conversations_run() -> None:
    go = anyio.Event()

    async def slowly(turn: Turn) -> None:
        turn.say("One")
        await go.wait()
        turn.say(" two")

    async with letta_served(slowly, hello) as stage:
        agent = await stage.agent()
        made = await stage.post(f"/v1/conversations/?agent_id={agent}", {})
        path = f"/v1/conversations/{made['id']}"
        refused = await stage.post(f"{path}/stream", {}, 400)
        assert "No active runs" in refused["detail"]
        message = {"role": "user", "content": "Go.", "otid": "o1"}
        body = {"messages": [message], "background": True, "stream_tokens": True}
        async with stage.client.stream("POST", f"{path}/messages", json_body=body) as answer:
            ping = json.loads((await anext(Blocks(answer.chunks))).removeprefix("data: "))
        rests: list[Any] = []

        async def read(more: dict[str, Any]) -> None:
            rests.append(await stage.read(f"{path}/stream", more))

        async with anyio.create_task_group() as tasks:
            for more in ({"starting_after": 1}, {"otid": "o1"}, {"run_id": ping["run_id"]}):
                tasks.start_soon(read, more)
            await anyio.wait_all_tasks_blocked()
            go.set()
        assert {rest.text for rest in rests} == {"One two"}
        refused = await stage.post(f"{path}/stream", {"otid": "o2"}, 404)
        assert "otid" in refused["detail"]


# Complete answers


async def test_a_complete_answer() -> None:
    async with letta_served(working) as stage:
        answer = await stage.send(await stage.agent(), stream_tokens=True, background=True)
    assert [message["message_type"] for message in answer["messages"]] == [
        "reasoning_message",
        "tool_call_message",
        "tool_return_message",
        "assistant_message",
    ]
    assert answer["messages"][-1]["content"] == "It is one."
    assert answer["stop_reason"]["stop_reason"] == "end_turn"
    assert answer["usage"]["step_count"] == 2


async def test_a_complete_answer_that_takes_long_keeps_its_client() -> None:
    async def slowly(turn: Turn) -> None:
        await anyio.sleep(70)
        turn.say("At last.")

    async with letta_served(slowly) as stage:
        agent = await stage.agent()
        body = {"input": "Go."}
        began = anyio.current_time()
        async with stage.client.stream("POST", f"/v1/agents/{agent}/messages", json_body=body) as answer:
            assert anyio.current_time() - began == pytest.approx(20, abs=1)
            assert answer.headers["content-type"] == "application/json"
            said = b"".join([chunk async for chunk in answer.chunks])
    assert said.startswith(b"\n\n\n{")
    assert json.loads(said)["messages"][0]["content"] == "At last."


async def test_a_complete_answer_of_a_run_that_fails() -> None:
    async def fails(turn: Turn) -> None:
        raise RpcError(-32603, "no")

    async def fails_late(turn: Turn) -> None:
        await anyio.sleep(30)
        raise RpcError(-32603, "no")

    async with letta_served(fails, fails_late) as stage:
        agent = await stage.agent()
        answer = await stage.client.post(f"/v1/agents/{agent}/messages", {"input": "Go."})
        assert answer.status == 502
        assert answer.headers["x-should-retry"] == "false"
        assert "the agent has answered with an error" in (await answer.json())["detail"]
        late = await stage.send(agent)  # the status was out already
        assert late["stop_reason"]["stop_reason"] == "llm_api_error"
        assert late["error"]["error_type"] == "agent_reported"


async def test_a_complete_answer_of_a_server_that_closes() -> None:
    begun = anyio.Event()

    async def waits(turn: Turn) -> None:
        begun.set()
        await anyio.sleep_forever()

    statuses: list[int] = []
    async with anyio.create_task_group() as tasks, letta_served(waits) as stage:
        agent = await stage.agent()

        async def ask() -> None:
            answer = await stage.client.post(f"/v1/agents/{agent}/messages", {"input": "Go."})
            statuses.append(answer.status)

        tasks.start_soon(ask)
        with anyio.fail_after(5):
            await begun.wait()
            await anyio.wait_all_tasks_blocked()
    assert statuses == [503]


async def test_a_run_is_begun_and_looked_at_later() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        run = await stage.post(f"/v1/agents/{agent}/messages/async", {"input": "Go."})
        assert (run["agent_id"], run["background"]) == (agent, True)
        rest = await stage.read(f"/v1/runs/{run['id']}/stream", {})
        assert rest.text == "Hello Ada."
        done = await stage.get(f"/v1/runs/{run['id']}")
        assert (done["status"], done["stop_reason"]) == ("completed", "end_turn")
        assert done["completed_at"] > done["created_at"]
        messages = await stage.get(f"/v1/runs/{run['id']}/messages?order=asc")
        assert [m["message_type"] for m in messages] == [
            "user_message",
            "reasoning_message",
            "assistant_message",
        ]
        usage = await stage.get(f"/v1/runs/{run['id']}/usage")
        assert usage["step_count"] == 1
