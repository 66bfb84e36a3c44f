"""Approvals both ways: what an agent asks, what its client says to it, and tools that the client runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from letta_stage import LettaStage, allowed, asking, hello, letta_served, tool_done, tool_start
from msgspec.structs import replace
from scripted import Played, scripted

from thinkwell.journal import MemoryJournal
from thinkwell.questions import Question, wait_for_answer
from thinkwell.web import ServedAgent, StartRun
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from scripted import Turn


pytestmark = pytest.mark.virtual_time


def yes(id: str = "t1", **more: Any) -> dict[str, Any]:  # noqa: A002
    return {"type": "approval", "tool_call_id": id, "approve": True, **more}


def no(id: str = "t1", **more: Any) -> dict[str, Any]:  # noqa: A002
    return {"type": "approval", "tool_call_id": id, "approve": False, **more}


def returned(id: str, text: Any, status: str = "success") -> dict[str, Any]:  # noqa: A002
    return {"type": "tool", "tool_call_id": id, "tool_return": text, "status": status}


# Permissions


async def test_a_run_that_waits_is_not_abandoned() -> None:
    async def works_on(turn: Turn) -> None:
        await asking(turn)
        await anyio.sleep(100)

    async with letta_served(works_on, abandoned_after=30) as stage:
        agent = await stage.agent()
        assert (await stage.stream(agent)).stop_reason == "requires_approval"
        await anyio.sleep(200)  # its client has hung up, as all do, and thinks about it
        assert (await stage.decide(agent, yes())).text == "They said yes"
        answer = await stage.send(agent)
        assert answer["stop_reason"]["stop_reason"] == "requires_approval"
        await anyio.sleep(400)  # it is denied after 300 seconds, and then it is nobody's any more
        (run, _) = await stage.server.runs(caller="")
        assert run.status == "cancelled"
        assert run.ended is not None


@pytest.mark.parametrize("tokens", [False, True])
async def test_a_stream_ends_where_the_agent_asks(tokens: bool) -> None:
    async with letta_served(asking) as stage:
        streamed = await stage.stream(await stage.agent(), stream_tokens=tokens)
    assert streamed.kinds[-3:] == ["approval_request_message", "stop_reason", "usage_statistics"]
    assert streamed.stop_reason == "requires_approval"
    assert streamed.text == "May I? "
    (request,) = streamed.of("approval_request_message")
    assert request["tool_call"] == {
        "name": "execute",
        "arguments": '{"command":"ls"}',
        "tool_call_id": "t1",
    }
    assert isinstance(request["tool_calls"], dict) == tokens


async def test_approve_streams_how_it_goes_on() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        first = await stage.stream(agent)
        second = await stage.decide(agent, yes())
        assert second.text == "They said yes"
        assert second.stop_reason == "end_turn"
        assert second.run_id != first.run_id  # Letta's run ends where it waits
        assert second.seqs[0] == 1
        assert second.seqs == sorted(set(second.seqs))


async def test_deny_with_a_reason() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        second = await stage.decide(agent, no(reason="Not on this machine"))
        assert second.text == "They said no"
        messages = await stage.messages(agent)
    (response,) = [m for m in messages if m["message_type"] == "approval_response_message"]
    (request,) = [m for m in messages if m["message_type"] == "approval_request_message"]
    assert (response["approve"], response["reason"]) == (False, "Not on this machine")
    assert response["approval_request_id"] == request["id"]
    assert response["approvals"] == [
        {"type": "approval", "tool_call_id": "t1", "approve": False, "reason": "Not on this machine"}
    ]


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ({"type": "approval", "approve": True, "approval_request_id": "message-1"}, "yes"),
        ({"approve": False, "reason": "no"}, "no"),  # without its type, as older clients send it
        ({"approvals": [{"tool_call_id": "t1", "approve": True}]}, "yes"),
        ({"type": "tool_return", "tool_returns": [returned("t1", "done")]}, "yes"),
        ({"tool_returns": [returned("t1", "broken", "error")]}, "no"),
    ],
)
async def test_other_ways_to_say_it(message: dict[str, Any], outcome: str) -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        second = await stage.stream(agent, None, messages=[message])
        assert second.text == f"They said {outcome}"


async def test_complete_answers_end_there_too() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        answer = await stage.send(agent)
        assert answer["stop_reason"]["stop_reason"] == "requires_approval"
        assert answer["messages"][-1]["message_type"] == "approval_request_message"
        assert isinstance(answer["messages"][-1]["tool_calls"], list)
        body = {"messages": [{"type": "approval", "approvals": [yes()]}]}
        answer = await stage.post(f"/v1/agents/{agent}/messages", body)
        assert answer["messages"][-1]["content"] == "They said yes"


async def test_while_it_waits_that_is_how_things_stand() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent, background=True)
        run = await stage.get(f"/v1/runs/{streamed.run_id}")
        assert (run["status"], run["stop_reason"]) == ("completed", "requires_approval")
        (listed,) = await stage.get("/v1/runs/?stop_reason=requires_approval")
        assert listed == run
        state = await stage.get(f"/v1/agents/{agent}")
        assert state["pending_approval"]["tool_call"]["tool_call_id"] == "t1"
        again = await stage.read(f"/v1/runs/{streamed.run_id}/stream", {"starting_after": 3})
        assert again.kinds == ["approval_request_message", "stop_reason", "usage_statistics"]

        await stage.decide(agent, yes())
        again = await stage.read(f"/v1/runs/{streamed.run_id}/stream", {"starting_after": 3})
        assert again.stop_reason == "requires_approval"  # that part has ended so
        assert "pending_approval" not in await stage.get(f"/v1/agents/{agent}")


async def test_two_questions_one_after_the_other() -> None:
    async def twice(turn: Turn) -> None:
        one = await allowed(turn, "t1")
        two = await allowed(turn, "t2")
        turn.say(f"{one} {two}")

    async with letta_served(twice) as stage:
        agent = await stage.agent()
        runs = [(await stage.stream(agent)).run_id]
        second = await stage.decide(agent, yes("t1"))
        assert second.stop_reason == "requires_approval"
        third = await stage.decide(agent, no("t2"))
        assert third.text == "yes no"
        runs += [second.run_id, third.run_id]
        assert len(set(runs)) == 3
        messages = await stage.messages(agent)
        asked = [m for m in messages if m["message_type"] == "approval_request_message"]
        assert [m["run_id"] for m in asked] == runs[:2]
        assert messages[-1]["run_id"] == runs[2]
        (listed,) = await stage.get("/v1/runs/")
        assert listed["id"] == runs[0]


async def test_two_questions_at_once() -> None:
    async def both(turn: Turn) -> None:
        outcomes: dict[str, str] = {}

        async def ask(id: str) -> None:  # noqa: A002
            outcomes[id] = await allowed(turn, id)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "t1")
            tasks.start_soon(ask, "t2")
        turn.say(f"{outcomes['t1']} {outcomes['t2']}")

    async with letta_served(both, both) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent)
        (request,) = streamed.of("approval_request_message")
        first = request["tool_call"]["tool_call_id"]
        other = "t2" if first == "t1" else "t1"
        url = f"/v1/agents/{agent}/messages"
        body = {"messages": [{"type": "approval", "approvals": [yes(other)]}]}
        refused = await stage.post(url, body, 400)  # the stream has ended with the older one
        assert "Invalid tool call IDs" in refused["detail"]
        assert first in refused["detail"]
        second = await stage.decide(agent, yes(first))
        assert second.of("approval_request_message")[0]["tool_call"]["tool_call_id"] == other
        third = await stage.decide(agent, no(other))
        assert sorted(third.text.split()) == ["no", "yes"]

        await stage.stream(agent)  # and both by one request
        done = await stage.decide(agent, yes("t1"), yes("t2"))
        assert done.text == "yes yes"


# What does not fit


async def test_nothing_is_pending() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        url, body = f"/v1/agents/{agent}/messages", {"messages": [{"type": "approval", "approvals": [yes()]}]}
        for _ in range(2):
            refused = await stage.post(url, body, 400)
            assert "No tool call is currently awaiting approval" in refused["detail"]
            await stage.send(agent)


async def test_nothing_is_asked_by_what_goes_on() -> None:
    async def waits(turn: Turn) -> None:
        await anyio.sleep(60)

    async with letta_served(waits) as stage:
        agent = await stage.agent()
        await stage.post(f"/v1/agents/{agent}/messages/async", {"input": "Go."})
        await stage.post(f"/v1/agents/{agent}/messages", {"messages": [{"approvals": [yes()]}]}, 400)


async def test_another_message_has_to_wait_for_approval() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent)
        answer = await stage.client.post(f"/v1/agents/{agent}/messages", {"input": "And now?"})
        assert answer.status == 409
        assert answer.headers["x-should-retry"] == "false"
        body = await answer.json()
        assert "waiting for approval on a tool call" in body["detail"]
        assert body["run_id"] == streamed.run_id
        await stage.decide(agent, yes())
        assert (await stage.send(agent))["stop_reason"]["stop_reason"] == "requires_approval"


@pytest.mark.parametrize(
    ("approvals", "word"),
    [([yes("t9")], "Invalid tool call IDs"), ([yes(), yes("t9")], "Invalid tool call IDs")],
)
async def test_decisions_about_nothing(approvals: list[dict[str, Any]], word: str) -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        body = {"messages": [{"type": "approval", "approvals": approvals}]}
        refused = await stage.post(f"/v1/agents/{agent}/messages", body, 400)
        assert word in refused["detail"]
        assert (await stage.decide(agent, yes())).text == "They said yes"


async def test_another_caller_has_answered_meanwhile() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent, background=True)
        (question,) = (await stage.server.state(streamed.run_id, caller="")).view.questions
        await stage.server.answer(streamed.run_id, question.id, "deny", caller="")
        # Then it has not ended there: the rest comes under the same name, and behind the same numbers.
        rest = await stage.read(f"/v1/runs/{streamed.run_id}/stream", {"starting_after": streamed.seqs[-1]})
        assert rest.text == "They said no"
        assert rest.seqs == [streamed.seqs[-1] + 1]
        messages = await stage.messages(agent)
        assert {message["run_id"] for message in messages} == {streamed.run_id}
        assert not [m for m in messages if m["message_type"] == "approval_response_message"]


async def test_what_a_program_answers_at_once_ends_nothing() -> None:
    async def reviewer(question: Question) -> bool:
        await anyio.sleep(0.1)
        return "ls" in question.title

    played = Played([asking])

    def opened(permissions: Any) -> Any:
        return scripted(agent=played, permissions=permissions, on_question=[reviewer, wait_for_answer])

    async with letta_served(agents={"reviewed": ServedAgent(open=opened)}) as stage:
        streamed = await stage.stream(await stage.agent(model="reviewed"))
        assert streamed.stop_reason == "end_turn"
        assert streamed.text == "May I? They said yes"
        assert len(streamed.of("approval_request_message")) == 1


async def test_a_question_of_a_dead_server_does_not_wait() -> None:
    async def waiting(turn: Turn) -> None:
        await allowed(turn)

    journal = MemoryJournal()
    async with letta_served(waiting, journal=journal) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent, background=True)
    record = await journal.get(streamed.run_id)
    assert record is not None
    entries = await journal.read(record.id)
    asked = next(entry.seq for entry in entries if b'"question"' in entry.data[:40])
    # As it is left by a process that was killed.
    lost = MemoryJournal()
    await lost.open()
    await lost.create(replace(record, status="running", ended=None, last_seq=0, size=0))
    await lost.append(record.id, entries[:asked])
    await lost.close()
    async with letta_served(hello, journal=lost) as stage:
        again = await stage.read(f"/v1/runs/{record.id}/stream", {})
        assert again.kinds[-2:] == ["approval_request_message", "stop_reason"]
        assert again.error is not None
        assert again.error["error_type"] == "interrupted"


async def test_an_answer_that_comes_too_late() -> None:
    asked, answered = anyio.Event(), anyio.Event()

    class Slow:
        """A server on which somebody else is a little faster."""

        def __init__(self, server: Any) -> None:
            self._answer = server.answer
            server.answer = self.answer

        async def answer(self, run_id: str, question_id: str, answer: Any, **more: Any) -> None:
            asked.set()
            await answered.wait()
            await self._answer(run_id, question_id, answer, **more)

    async with letta_served(asking) as stage, anyio.create_task_group() as tasks:
        agent = await stage.agent()
        streamed = await stage.stream(agent)
        slow = Slow(stage.server)
        refusals: list[Any] = []

        async def decide() -> None:
            body = {"messages": [{"type": "approval", "approvals": [yes()], "otid": "o1"}]}
            refusals.append(await stage.post(f"/v1/agents/{agent}/messages", body, 400))

        tasks.start_soon(decide)
        await asked.wait()
        (question,) = (await stage.server.state(streamed.run_id, caller="")).view.questions
        await slow._answer(streamed.run_id, question.id, "deny", caller="")
        answered.set()
        await anyio.wait_all_tasks_blocked()
        assert "it was just decided elsewhere" in refusals[0]["detail"]


async def test_no_decision_in_time() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent, background=True)
        await anyio.sleep(301)
        body = {"messages": [{"type": "approval", "approvals": [yes()]}]}
        await stage.post(f"/v1/agents/{agent}/messages", body, 400)
        rest = await stage.read(f"/v1/runs/{streamed.run_id}/stream", {})
        assert rest.text == "May I? They said no"


# The same again


async def test_the_same_decision_again_decides_nothing_more() -> None:
    go = anyio.Event()

    async def slowly(turn: Turn) -> None:
        outcome = await allowed(turn)
        turn.say("They said ")
        await go.wait()
        turn.say(outcome)

    async with letta_served(slowly) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        message = {"type": "approval", "approvals": [yes()], "otid": "o1"}
        body = {"messages": [message], "stream_tokens": True, "background": True}
        url = f"/v1/agents/{agent}/messages/stream"
        async with stage.client.stream("POST", url, json_body=body) as answer:
            await anext(answer.chunks)  # and then the connection is lost
        go.set()
        again = await stage.read(url, body)
        assert again.text == "They said yes"
        assert (await stage.read(url, body)).frames[1:] == again.frames[1:]
        resumed = await stage.read(f"/v1/runs/{again.run_id}/stream", {"starting_after": 2})
        assert resumed.text == "yes"
        messages = await stage.messages(agent)
        assert len([m for m in messages if m["message_type"] == "approval_response_message"]) == 1
        await stage.post(url, {"messages": [{**message, "otid": "o2"}]}, 400)


async def test_a_conversation_is_taken_up_behind_its_last_decision() -> None:
    gates = [anyio.Event(), anyio.Event()]

    async def slowly(turn: Turn) -> None:
        await allowed(turn)
        turn.say("One")
        await gates[len(turn.agent.sent.prompts) - 1].wait()
        turn.say(" two")

    async with letta_served(slowly) as stage:
        agent = await stage.agent()
        rests: list[Any] = []
        for gate in gates:
            first = await stage.stream(agent, background=True)
            body = {"messages": [{"type": "approval", "approvals": [yes()]}], "background": True}
            async with stage.client.stream(
                "POST", f"/v1/agents/{agent}/messages/stream", json_body=body
            ) as answer:
                await anext(answer.chunks)

            async def read() -> None:
                path = "/v1/conversations/default/stream"
                rests.append(await stage.read(path, {"agent_id": agent}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                gate.set()
            assert rests[-1].text == "One two"
            assert rests[-1].run_id.startswith(first.run_id + "-")


# A decision, and something else to say


def also(text: str, otid: str | None = None) -> dict[str, Any]:
    return {"role": "user", "content": text, **({"otid": otid} if otid else {})}


async def echoing(turn: Turn) -> None:
    turn.say(f"I heard: {turn.text}")


@pytest.mark.parametrize("tokens", [False, True])
async def test_a_decision_and_another_message(tokens: bool) -> None:
    async with letta_served(asking, echoing) as stage:
        agent = await stage.agent()
        first = await stage.stream(agent)
        url = f"/v1/agents/{agent}/messages/stream"
        body = {
            "messages": [{"approvals": [no()], "otid": "o1"}, also("Then this.", "o2")],
            "background": True,
            "stream_tokens": tokens,
        }
        streamed = await stage.read(url, body)
        assert streamed.text == "They said noI heard: Then this."
        assert streamed.kinds == [
            "assistant_message",
            "assistant_message",
            "stop_reason",
            "usage_statistics",
        ]
        runs = list(dict.fromkeys(frame["run_id"] for frame in streamed.frames if "run_id" in frame))
        assert runs[0].startswith(first.run_id)
        for run in runs:  # each is numbered for itself
            numbers = [frame["seq_id"] for frame in streamed.frames if frame.get("run_id") == run]
            assert numbers == [1, 2]
        assert streamed.of("usage_statistics")[0]["run_ids"] == [runs[1]]

        again = await stage.read(url, body)
        assert again.text == streamed.text
        assert len(stage.handler.sent.prompts) == 2
        resumed = await stage.read(f"/v1/runs/{runs[0]}/stream", {"starting_after": 2})
        assert [frame.get("run_id") for frame in resumed.frames[:-2]] == [runs[1], runs[1]]
        resumed = await stage.read(f"/v1/runs/{runs[1]}/stream", {"starting_after": 1})
        assert resumed.text == "I heard: Then this."
        said = [m["content"] for m in await stage.messages(agent) if m["message_type"] == "user_message"]
        assert said == ["Go.", "Then this."]

        for _ in range(25):  # however much was said since then
            await stage.send(agent)
        resumed = await stage.read(f"/v1/runs/{runs[0]}/stream", {"starting_after": 1})
        assert resumed.text == streamed.text


async def test_a_decision_and_another_message_answered_completely() -> None:
    async with letta_served(asking, echoing) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        body = {"messages": [{"approvals": [yes()]}, also("Then this.")]}
        answer = await stage.post(f"/v1/agents/{agent}/messages", body)
        said = [message["content"] for message in answer["messages"]]
        assert said == ["They said yes", "I heard: Then this."]


async def test_the_other_message_waits_for_more_questions() -> None:
    async def twice(turn: Turn) -> None:
        turn.say(await allowed(turn, "t1"))
        turn.say(await allowed(turn, "t2"))

    async with letta_served(twice, echoing) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        second = await stage.stream(agent, None, messages=[{"approvals": [yes()]}, also("Then this.")])
        assert second.stop_reason == "requires_approval"
        state = await stage.get(f"/v1/agents/{agent}")
        assert state["pending_approval"]["tool_call"]["tool_call_id"] == "t2"
        refused = await stage.post(f"/v1/agents/{agent}/messages", {"input": "And?"}, 409)
        assert "waiting for approval" in refused["detail"]
        third = await stage.decide(agent, no("t2"))
        assert third.text == "noI heard: Then this."
        assert third.stop_reason == "end_turn"


async def test_the_other_message_of_a_run_that_fails() -> None:
    async def fails(turn: Turn) -> None:
        await allowed(turn)
        raise RpcError(-32603, "no")

    async with letta_served(fails, echoing) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        streamed = await stage.stream(agent, None, messages=[{"approvals": [no()]}, also("Then this.")])
        assert streamed.error is not None
        await anyio.sleep(10)  # nobody watches, and it is done all the same
        assert (await stage.messages(agent))[-1]["content"] == "I heard: Then this."


async def test_the_other_message_is_looked_at_before_anything_is_decided() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        url = f"/v1/agents/{agent}/messages"
        for message in (also(" "), {"role": "user"}):
            await stage.post(url, {"messages": [{"approvals": [yes()]}, message]}, 422)
        await stage.post(url, {"messages": [also("First."), {"approvals": [yes()]}]}, 422)
        assert (await stage.decide(agent, yes())).text == "They said yes"


# Tools of the client's


BASH = {
    "name": "Bash",
    "description": "Run a command",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
}


async def calling(turn: Turn) -> None:
    """Call a tool of the client's, as agents do: the call is shown, too."""
    tool_start(turn, "c1", title="mcp__thinkwell__Bash", raw_input={"command": "ls"})
    result = await turn.call("Bash", {"command": "ls"})
    text = result["content"][0]["text"]
    tool_done(turn, "c1", text)
    turn.say(f"{'Failed' if result.get('isError') else 'Got'}: {text}")


async def pending(stage: LettaStage, agent: str, **body: Any) -> dict[str, Any]:
    streamed = await stage.stream(agent, client_tools=[BASH], **body)
    assert streamed.stop_reason == "requires_approval"
    request: dict[str, Any] = streamed.of("approval_request_message")[0]["tool_call"]
    return request


async def test_a_tool_of_the_clients_is_called_by_a_request_for_approval() -> None:
    async with letta_served(calling) as stage:
        agent = await stage.agent()
        call = await pending(stage, agent)
        assert call == {"name": "Bash", "arguments": '{"command": "ls"}', "tool_call_id": "c1"}
        answer = {"type": "tool_return", "tool_returns": [returned("c1", "a.py\nb.py")]}
        second = await stage.stream(agent, None, messages=[answer])
        assert second.text == "Got: a.py\nb.py"
        (done,) = second.of("tool_return_message")
        assert done["tool_call_id"] == "c1"


@pytest.mark.parametrize(
    ("approval", "text"),
    [
        (
            returned("c1", [{"type": "text", "text": "a.py"}, {"type": "text", "text": "b.py"}]),
            "Got: a.py\n\nb.py",
        ),
        (returned("c1", "no such file", "error"), "Failed: no such file"),
        (no("c1", reason="Not now"), "Failed: Not now"),
        (no("c1"), "Failed: The call was denied"),
    ],
)
async def test_what_it_returns_is_what_the_client_sends(approval: dict[str, Any], text: str) -> None:
    async with letta_served(calling) as stage:
        agent = await stage.agent()
        await pending(stage, agent)
        assert (await stage.decide(agent, approval)).text == text


async def test_an_approval_alone_is_no_result() -> None:
    async with letta_served(calling) as stage:
        agent = await stage.agent()
        await pending(stage, agent)
        body = {"messages": [{"type": "approval", "approvals": [yes("c1")]}]}
        refused = await stage.post(f"/v1/agents/{agent}/messages", body, 400)
        assert "send what it has returned" in refused["detail"]
        assert (await stage.decide(agent, returned("c1", "ok"))).text == "Got: ok"


async def test_a_tool_that_the_client_never_runs() -> None:
    async with letta_served(calling) as stage:
        agent = await stage.agent()
        await pending(stage, agent)
        await anyio.sleep(301)
        messages = await stage.messages(agent)
        assert messages[-1]["content"] == "Failed: The front end has not answered the call of Bash"


@pytest.mark.parametrize("permissions", ["deny", "allow"])
async def test_a_tool_of_the_clients_waits_whatever_the_agent_may(permissions: Any) -> None:
    async with letta_served(calling, agent={"permissions": {"only": permissions}}) as stage:
        agent = await stage.agent()
        await pending(stage, agent)
        assert (await stage.decide(agent, returned("c1", "ok"))).text == "Got: ok"


async def test_other_turns_may_have_other_tools() -> None:
    async with letta_served(calling, hello, calling) as stage:
        agent = await stage.agent()
        await pending(stage, agent)
        await stage.decide(agent, returned("c1", "ok"))
        await stage.stream(agent)
        await pending(stage, agent)


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "with space"}],
        [{"name": ""}],
        [{"name": "return_result"}],
        [BASH, BASH],
        [{"name": f"t{number}"} for number in range(65)],
        [{"name": "t", "parameters": {"type": "array"}}],
        [{"name": "t", "parameters": {"type": "object", "properties": 5}}],
        [{"name": "t", "parameters": json.loads('{"not":' * 80 + "{}" + "}" * 80)}],
        [{"description": "without a name"}],
    ],
)
async def test_tools_that_cannot_be_offered(tools: list[dict[str, Any]]) -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        body = {"input": "Go.", "client_tools": tools}
        await stage.post(f"/v1/agents/{agent}/messages", body, 422)
        assert not stage.handler.sent.prompts


# Forms, and web pages


def form(**properties: Any) -> Any:
    schema = s.ElicitationSchema(properties=properties, required=tuple(properties))

    async def script(turn: Turn) -> None:
        answer = await turn.client.create_elicitation(
            s.ElicitationFormMode(session_id=turn.session_id, message="Who?", requested_schema=schema)
        )
        turn.say(f"{answer.action} {json.dumps(answer.content)}")

    return script


NAME = s.StringPropertySchema()


async def asked_form(stage: LettaStage, agent: str) -> str:
    streamed = await stage.stream(agent)
    (request,) = streamed.of("approval_request_message")
    assert request["tool_call"]["name"] == "fill_in_form"
    call: str = request["tool_call"]["tool_call_id"]
    return call


@pytest.mark.parametrize(
    ("text", "told"),
    [('{"name": "Ada"}', 'accept {"name": "Ada"}'), ("Ada", 'accept {"name": "Ada"}')],
)
async def test_a_form_is_filled_in_by_what_a_tool_would_return(text: str, told: str) -> None:
    async with letta_served(form(name=NAME)) as stage:
        agent = await stage.agent()
        call = await asked_form(stage, agent)
        assert (await stage.decide(agent, returned(call, text))).text == told


async def test_a_form_is_declined() -> None:
    async with letta_served(form(name=NAME)) as stage:
        agent = await stage.agent()
        call = await asked_form(stage, agent)
        assert (await stage.decide(agent, no(call))).text == "decline null"
        call = await asked_form(stage, agent)
        said = returned(call, "Nobody knows", "error")
        assert (await stage.decide(agent, said)).text == "decline null"


async def test_a_form_with_what_does_not_fit_stays_open() -> None:
    async with letta_served(form(name=NAME, town=NAME)) as stage:
        agent = await stage.agent()
        call = await asked_form(stage, agent)
        for text, status in (
            ("Ada", 400),  # which of the two?
            ('{"name": {"deep": 1}}', 400),
            ('{"name": "Ada"}', 422),
        ):
            body = {"messages": [{"approvals": [returned(call, text)], "otid": "o1"}]}
            await stage.post(f"/v1/agents/{agent}/messages", body, status)
        await stage.post(f"/v1/agents/{agent}/messages", {"messages": [{"approve": True}]}, 422)
        done = await stage.decide(agent, returned(call, '{"name": "Ada", "town": "London"}'))
        assert done.text == 'accept {"name": "Ada", "town": "London"}'


async def test_a_form_that_is_all_right_as_it_is() -> None:
    async with letta_served(form()) as stage:
        agent = await stage.agent()
        call = await asked_form(stage, agent)
        assert (await stage.decide(agent, yes(call))).text.startswith("accept")


async def test_a_web_page() -> None:
    async def script(turn: Turn) -> None:
        answer = await turn.client.create_elicitation(
            s.ElicitationUrlMode(
                session_id=turn.session_id, message="Log in", elicitation_id="e1", url="https://example.org/"
            )
        )
        turn.say(answer.action)

    async with letta_served(script) as stage:
        agent = await stage.agent()
        for decide, told in ((yes, "accept"), (no, "decline")):
            streamed = await stage.stream(agent)
            (request,) = streamed.of("approval_request_message")
            assert request["tool_call"]["name"] == "open_url"
            call = request["tool_call"]["tool_call_id"]
            assert (await stage.decide(agent, decide(call))).text == told


async def test_a_run_of_another_kind_in_the_same_conversation() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        record = await stage.server.start(StartRun(prompt="Go.", thread=agent), caller="")
        async with stage.server.watch(record.id, caller="") as watcher:
            while not (await stage.server.state(record.id, caller="")).view.questions:
                await watcher.next()
        second = await stage.decide(agent, yes())  # whoever has started it
        assert second.text == "They said yes"
        (said, *_) = await stage.messages(agent)
        assert (said["message_type"], said["content"]) == ("user_message", "Go.")
