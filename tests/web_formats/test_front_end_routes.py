"""Where front ends ask: what is streamed, where streams end and go on, and what is refused."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from front_end_stage import ag_ui_event, asks, form, text, tool, tool_news, works
from kept_runs import keep_run
from scripted import Played, scripted
from web_stage import Client, Sse, Stage, frames_of, scripted_agent, served

from thinkwell import events as ev
from thinkwell.journal import JournalError, MemoryJournal, Retention, RunRecord
from thinkwell.permissions import PermissionPolicy, Rule
from thinkwell.web import Access, RunEnded, ServedAgent, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from scripted import Script, Turn

    from thinkwell.journal import Entry
    from thinkwell.questions import Answer, Question

pytestmark = pytest.mark.virtual_time

FORMATS = ("ai-sdk", "ag-ui")

Chunk = dict[str, Any]


@asynccontextmanager
async def asking(*scripts: Script, **options: Any) -> AsyncGenerator[tuple[Stage, Client]]:
    async with served(*scripts, **options) as stage:
        yield stage, Client(web_app(stage.server))


def chunks_of(frames: Sequence[Sse]) -> list[Chunk]:
    """What frames say, but for the one that closes a stream of the AI SDK's."""
    return [frame.json() for frame in frames if frame.data != "[DONE]"]


# What is posted


def user(text: str = "Go.", id_: str = "m1") -> Chunk:
    return {"id": id_, "role": "user", "parts": [{"type": "text", "text": text}]}


def chat(*messages: Chunk, id_: str = "c1", **more: Any) -> Chunk:
    return {"id": id_, "messages": list(messages), "trigger": "submit-message", **more}


def run(*messages: Chunk, id_: str = "r1", thread: str = "c1", **more: Any) -> Chunk:
    return {"threadId": thread, "runId": id_, "messages": list(messages), **more}


def says(content: object = "Go.", id_: str = "m1") -> Chunk:
    return {"id": id_, "role": "user", "content": content}


async def posted(client: Client, path: str, body: Any, **options: Any) -> list[Chunk]:
    """Post, and return all of the stream that is answered."""
    answer = await client.post(path, body, **options)
    content = (await answer.body()).decode()
    assert answer.status == 200, content
    frames = frames_of(content)
    if path.startswith("/ai-sdk"):
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert frames[-1].data == "[DONE]"
    chunks = chunks_of(frames)
    if path.startswith("/ag-ui"):
        for chunk in chunks:
            ag_ui_event().validate_python(chunk)
    return chunks


async def refused(client: Client, path: str, body: Any, **options: Any) -> tuple[int, str]:
    """Post, and return by what it is refused."""
    answer = await client.post(path, body, **options)
    return answer.status, (await answer.json())["error"]["message"]


def said(chunks: list[Chunk]) -> str:
    kinds = ("text-delta", "TEXT_MESSAGE_CONTENT")
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] in kinds)


def paused(chunks: list[Chunk]) -> bool:
    last = chunks[-1]
    return last.get("finishReason") == "tool-calls" or last.get("outcome", {}).get("type") == "interrupt"


def approval(chunks: list[Chunk], *, approved: bool = True, question: str = "q1") -> Chunk:
    """The assistant's message as its client would send it back, with an answer in it."""
    (start,) = [chunk for chunk in chunks if chunk["type"] == "start"]
    finish = chunks[-1]
    part = {
        "type": "dynamic-tool",
        "toolName": "execute",
        "toolCallId": "t1",
        "state": "approval-responded",
        "input": {},
        "approval": {"id": question, "approved": approved},
    }
    metadata = {**start["messageMetadata"], **finish["messageMetadata"]}
    return {"id": start["messageId"], "role": "assistant", "metadata": metadata, "parts": [part]}


def interrupts(chunks: list[Chunk]) -> list[Chunk]:
    found: list[Chunk] = chunks[-1]["outcome"]["interrupts"]
    return found


def resume(chunks: list[Chunk], payload: Any = True) -> list[Chunk]:
    return [
        {"interruptId": each["id"], "status": "resolved", "payload": payload} for each in interrupts(chunks)
    ]


async def careful(turn: Turn) -> None:
    turn.say("May I? ")
    turn.say(f"{await asks(turn)}.")


# All of a run


@pytest.mark.parametrize("name", FORMATS)
async def test_a_stream_begins_behind_any_number_with_exactly_the_rest(name: str) -> None:
    async def script(turn: Turn) -> None:
        await works(turn)
        turn.say(str(await asks(turn)))

    async with asking(script) as (stage, client):
        record = await stage.start(caller="")
        url = f"/api/runs/{record.id}/events?format={name}"
        answered = False
        async with client.stream("GET", url) as live:
            async for frame in live.events():
                asked = "question" in frame.data and "q1" in frame.data
                if asked and not answered:
                    answered = True
                    await stage.server.answer(record.id, "q1", "allow", caller="")
        last = (await stage.ended(record.id, caller=""))[-1].seq
        whole = await client.events(url)
        for after in range(last):
            seen = max(
                (at for at, frame in enumerate(whole, 1) if int(frame.id or last + 1) <= after), default=0
            )
            assert await client.events(f"{url}&after={after}") == whole[seen:]
            came_back = await client.events(url, headers={"last-event-id": str(after)}) if after else whole
            assert came_back == whole[seen:]
        over = await client.get(f"{url}&after={last}")
    assert over.status == 204
    assert [frame.id for frame in whole if frame.id] == sorted(
        {frame.id for frame in whole if frame.id}, key=int
    )
    if name == "ai-sdk":
        assert whole[-1].data == "[DONE]"


async def test_the_end_of_a_long_run_can_be_had_alone() -> None:
    async def long(turn: Turn) -> None:
        for _ in range(10):
            turn.say("x" * 50_000)

    async with asking(long) as (stage, client):
        record = await stage.start(caller="")
        last = (await stage.ended(record.id, caller=""))[-1].seq
        frames = await client.events(f"/api/runs/{record.id}/events?format=ag-ui&after={last - 1}")
    assert [frame.json()["type"] for frame in frames] == ["RUN_FINISHED"]
    assert [frame.id for frame in frames] == [str(last)]


async def test_watchers_see_questions_and_answers_as_they_come() -> None:
    async with asking(careful) as (stage, client):
        record = await stage.start(caller="")
        url = f"/api/runs/{record.id}/events?format=ai-sdk"
        seen: list[Chunk] = []
        async with client.stream("GET", url) as live:
            assert live.headers["x-vercel-ai-ui-message-stream"] == "v1"
            async for frame in live.events():
                seen += chunks_of([frame])
                if seen[-1]["type"] == "tool-approval-request":
                    body = {"question": seen[-1]["approvalId"], "answer": "deny", "why": "no"}
                    answer = await client.post(f"/api/runs/{record.id}/answer", body)
                    assert answer.status == 204
    kinds = [chunk["type"] for chunk in seen]
    assert kinds.index("tool-approval-request") < kinds.index("tool-approval-response")
    assert seen[kinds.index("tool-approval-response")]["approved"] is False
    assert kinds[-1] == "finish"


# Where a stream ends


def with_handler(answers_after: float, *scripts: Script) -> dict[str, ServedAgent]:
    handler = Played(scripts)

    async def answers(question: Question) -> Answer | None:
        await anyio.sleep(answers_after)
        return "allow"

    return {
        "scripted": ServedAgent(
            open=lambda permissions: scripted(agent=handler, permissions=permissions, on_question=answers)
        )
    }


@pytest.mark.parametrize(("seconds", "ends"), [(0.1, False), (1.0, True)])
async def test_a_stream_does_not_end_where_a_program_answers_at_once(seconds: float, ends: bool) -> None:
    async with asking(agents=with_handler(seconds, careful)) as (stage, client):
        first = await posted(client, "/ai-sdk/scripted", chat(user()))
        assert paused(first) is ends
        if ends:
            assert said(first) == "May I? "
            rest = await posted(client, "/ai-sdk/scripted", chat(user(), approval(first)))
            assert said(rest) == "yes."
        else:
            assert said(first) == "May I? yes."
        (record,) = await stage.server.runs(caller="")
        log = await stage.ended(record.id, caller="")
    assert [entry.by for entry in log if isinstance(entry, ev.QuestionAnswered)] == [
        "human" if ends else "handler"
    ]


async def test_a_stream_ends_at_a_question_though_the_agent_goes_on_talking() -> None:
    async def busy(turn: Turn) -> None:
        async def talk() -> None:
            while True:
                turn.say(".")
                await anyio.sleep(0.05)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk)
            await asks(turn)
            tasks.cancel_scope.cancel()
        turn.say("!")

    async with asking(busy) as (_, client):
        first = await posted(client, "/ai-sdk/scripted", chat(user()))
        assert paused(first)
        assert set(said(first)) == {"."}
        rest = await posted(client, "/ai-sdk/scripted", chat(user(), approval(first)))
    assert said(rest).endswith("!")
    ids = [chunk["id"] for chunk in (*first, *rest) if chunk["type"] == "text-start"]
    assert len(ids) == len(set(ids))


async def test_who_reads_slowly_does_not_stop_at_questions_of_long_ago() -> None:
    async def slow(turn: Turn) -> None:
        turn.say("May I? ")
        await anyio.sleep(1)
        turn.say(f"{await asks(turn)}.")

    frames: list[Sse] = []
    async with (
        asking(slow) as (stage, client),
        client.stream("POST", "/ai-sdk/scripted", json_body=chat(user())) as answer,
    ):
        async for frame in answer.events():
            frames.append(frame)
            if "May I?" in frame.data:
                await anyio.sleep(10)  # the question is asked meanwhile, and waits to be sent
                (record,) = await stage.server.runs(caller="")
                await stage.server.answer(record.id, "q1", "allow", caller="")
                await stage.ended(record.id, caller="")
    chunks = chunks_of(frames)
    assert not paused(chunks)
    assert said(chunks) == "May I? yes."


async def test_a_server_that_closes_says_so() -> None:
    async def endless(turn: Turn) -> None:
        turn.say("On")
        await anyio.sleep_forever()

    for path, body in (("/ai-sdk/scripted", chat(user())), ("/ag-ui/scripted", run(says()))):
        async with asking(endless) as (stage, client), client.stream("POST", path, json_body=body) as answer:
            seen: list[Sse] = []
            async for frame in answer.events():
                seen.append(frame)
                if '"On"' in frame.data:
                    stage.server.close_watchers()
        chunks = chunks_of(seen)
        assert chunks[-1]["type"] in ("error", "RUN_ERROR")
        assert "resume the stream" in json.dumps(chunks[-1])


async def test_a_run_that_is_forgotten_while_it_is_watched_says_so() -> None:
    async def long(turn: Turn) -> None:
        for _ in range(8):
            turn.say("x" * 50_000)

    for path, body in (("/ai-sdk/scripted", chat(user())), ("/ag-ui/scripted", run(says()))):
        async with asking(long) as (stage, client):
            await (await client.post(path, body)).body()
            (record,) = await stage.server.runs(caller="")
            async with client.stream("POST", path, json_body=body) as answer:
                frames = answer.events()
                seen = [await anext(frames)]
                gone = await Retention(max_age=0.0, max_bytes=0).prune(stage.server.journal, time.time() + 1)
                assert gone == [record.id]
                seen += [frame async for frame in frames]
            chunks = chunks_of(seen)
            assert chunks[-1]["type"] in ("error", "RUN_ERROR")
            assert "the run was deleted" in json.dumps(chunks[-1])
            assert (await client.get(f"/api/runs/{record.id}/events")).status == 404


class Unreadable(MemoryJournal):
    broken = False

    async def read(self, run_id: str, after: int = 0, *, most: int = 0) -> list[Entry]:
        if self.broken:
            raise JournalError("the journal", "it is broken")
        return await super().read(run_id, after)


async def test_a_log_that_cannot_be_read_is_told_of() -> None:
    journal = Unreadable()
    async with asking(works, journal=journal) as (_, client):
        await posted(client, "/ai-sdk/scripted", chat(user()))
        journal.broken = True
        answer = await client.get("/ai-sdk/scripted/c1/stream")
        frames = frames_of((await answer.body()).decode())
    assert frames[-1].data == "[DONE]"
    assert frames[-2].json()["errorText"].startswith("ServerUnavailable: ")


# The AI SDK


async def test_the_same_request_again_is_the_same_run_and_the_same_stream() -> None:
    async with asking(careful) as (stage, client):
        first = await posted(client, "/ai-sdk/scripted", chat(user()))
        assert await posted(client, "/ai-sdk/scripted", chat(user())) == first
        answered = chat(user(), approval(first))
        rest = await posted(client, "/ai-sdk/scripted", answered)
        assert said(rest) == "yes."
        assert await posted(client, "/ai-sdk/scripted", answered) == rest
        assert len(await stage.server.runs(caller="")) == 1
        edited = await posted(client, "/ai-sdk/scripted", chat(user("Other."), messageId="m1"))
        assert len(await stage.server.runs(caller="")) == 2
    assert edited[0]["messageId"] != first[0]["messageId"]


async def test_what_comes_behind_a_pause_does_not_depend_on_how_it_was_read() -> None:
    async def twice(turn: Turn) -> None:
        turn.update(tool("other", status="in_progress"))
        turn.say(f"{await asks(turn, 't1')} ")
        turn.say(f"{await asks(turn, 't2')} ")
        turn.update(tool_news("t2", "completed", content=(text("ok"),)))

    async with asking(twice) as (_, client):
        first = await posted(client, "/ai-sdk/scripted", chat(user()))
        second = await posted(client, "/ai-sdk/scripted", chat(user(), approval(first)))
        # Who comes back gets one message of all that was, and goes on behind that.
        answer = await client.get("/ai-sdk/scripted/c1/stream")
        again = chunks_of(frames_of((await answer.body()).decode()))
        assert said(again) == said(first) + said(second)
        assert again[-1]["messageMetadata"]["after"] == second[-1]["messageMetadata"]["after"][-1:]
        third = await posted(client, "/ai-sdk/scripted", chat(user(), approval(again, question="q2")))
    assert said(third) == "yes "


async def test_what_has_no_answer_yet_is_asked_again() -> None:
    async def two(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asks, turn, "t1")
            tasks.start_soon(asks, turn, "t2")
        turn.say("Done.")

    async with asking(two) as (_, client):
        asked = await posted(client, "/ai-sdk/scripted", chat(user()))
        message = approval(asked)
        waits = {"toolCallId": "t2", "state": "approval-requested", "approval": {"id": "q2"}}
        message["parts"].append({"type": "dynamic-tool", **waits})
        again = await posted(client, "/ai-sdk/scripted", chat(user(), message))
        assert paused(again)
        requests = [chunk["approvalId"] for chunk in again if chunk["type"] == "tool-approval-request"]
        assert requests == ["q2"]
        message = approval(again, question="q2")
        message["metadata"]["after"] = again[-1]["messageMetadata"]["after"]
        rest = await posted(client, "/ai-sdk/scripted", chat(user(), message))
    assert said(rest) == "Done."


async def test_a_message_without_metadata_goes_on_where_the_run_is() -> None:
    async with asking(careful) as (_, client):
        first = await posted(client, "/ai-sdk/scripted", chat(user()))
        message = approval(first)
        del message["metadata"]
        rest = await posted(client, "/ai-sdk/scripted", chat(user(), message))
    assert said(rest) == "yes."


async def test_metadata_that_was_changed_is_refused() -> None:
    async with asking(careful) as (_, client):
        first = await posted(client, "/ai-sdk/scripted", chat(user()))
        for after in ([-1], ["x"], [3, 2], [2, 2], [10_000], 7, list(range(2000))):
            message = approval(first)
            message["metadata"]["after"] = after
            status, why = await refused(client, "/ai-sdk/scripted", chat(user(), message))
            assert (status, "metadata.after" in why) == (422, True), after


async def test_what_is_not_of_the_chat_is_not_continued() -> None:
    async with asking(careful) as (stage, client):
        first = await posted(client, "/ai-sdk/scripted", chat(user()))
        answered = approval(first)
        for body in (
            chat(user(), answered, id_="another chat"),
            chat({"id": "x", "role": "assistant", "parts": []}),
            chat({"id": "x", "role": "system"}),
        ):
            status, why = await refused(client, "/ai-sdk/scripted", body)
            assert status == 422
            assert "neither the user's nor a run" in why
        (record,) = await stage.server.runs(caller="")
        moved = await posted(
            client, "/ai-sdk/scripted", chat(user(), answered, user("On.", "m2"), id_="another chat")
        )
        assert paused(moved)  # it has asked on its own
        await stage.server.answer(record.id, "q1", "allow", caller="")  # which was open all the time


async def test_callers_do_not_meet() -> None:
    ada, bob = "ada-has-this-token-1", "bob-has-this-token-2"
    async with served(careful) as stage:
        app = web_app(stage.server, access=Access({ada: "ada", bob: "bob"}))
        clients = [Client(app, headers={"authorization": f"Bearer {token}"}) for token in (ada, bob)]
        first = await posted(clients[0], "/ai-sdk/scripted", chat(user()))
        status, _ = await refused(clients[1], "/ai-sdk/scripted", chat(user(), approval(first)))
        assert status == 422
        nothing = await clients[1].get("/ai-sdk/scripted/c1/stream")
        assert nothing.status == 204
        other = await posted(clients[1], "/ai-sdk/scripted", chat(user()))
        assert other[0]["messageId"] != first[0]["messageId"]
        asked = await posted(clients[0], "/ag-ui/scripted", run(says(), thread="c2"))
        error = (await posted(clients[1], "/ag-ui/scripted", run(thread="c2", resume=resume(asked))))[-1]
        assert error["code"] == "interrupt_unknown"


async def test_a_form_is_left_when_the_user_moves_on() -> None:
    actions: list[str] = []

    async def asking_form(turn: Turn) -> None:
        actions.append((await form(turn)).action)

    async def hello(turn: Turn) -> None:
        turn.say("Hello.")

    async with asking(asking_form, hello) as (_, client):
        first = await posted(client, "/ai-sdk/scripted", chat(user()))
        message = approval(first)
        message["parts"] = [
            {"type": "text", "text": "Hm", "state": "done"},
            {"type": "dynamic-tool", "toolCallId": "question-q1", "state": "input-available", "input": {}},
            {"type": "dynamic-tool", "toolCallId": "question-q2", "state": "input-streaming"},
            {
                "type": "dynamic-tool",
                "toolCallId": "x",
                "state": "output-available",
                "approval": {"id": "q0"},
            },
        ]
        bad = {**message, "parts": [{**message["parts"][1], "state": "output-available", "output": 3}]}
        status, why = await refused(client, "/ai-sdk/scripted", chat(user(), bad))
        assert (status, "of its fields by name" in why) == (422, True)
        rest = await posted(client, "/ai-sdk/scripted", chat(user(), message, user("Hi.", "m2")))
    assert actions == ["decline"]
    assert said(rest) == "Hello."


async def test_an_answered_form_is_not_the_last_step_on_coming_back() -> None:
    go_on = anyio.Event()

    async def asking_form(turn: Turn) -> None:
        await form(turn)
        await go_on.wait()

    async with asking(asking_form) as (stage, client):
        asked = await posted(client, "/ai-sdk/scripted", chat(user()))
        await stage.server.answer(asked[0]["messageId"], "q1", {"host": "db.example"}, caller="")
        frames: list[Sse] = []
        async with client.stream("GET", "/ai-sdk/scripted/c1/stream") as answer:
            async for frame in answer.events():
                frames.append(frame)
                go_on.set()
    kinds = [chunk["type"] for chunk in chunks_of(frames)]
    assert "start-step" in kinds[kinds.index("tool-output-available") :]


async def test_a_chat_gets_its_last_run_while_it_may_have_missed_some_of_it() -> None:
    journal = MemoryJournal()
    async with asking(works, journal=journal) as (_, client):
        record = RunRecord(
            id="run-00000000000000000000000000000001", agent="scripted", created=1.0, thread="old"
        )
        end = RunEnded(seq=0, at=time.time() - 62, status="completed", result="Long ago.")
        await keep_run(journal, record, (), end)
        late = await client.get("/ai-sdk/scripted/old/stream")
        named = await client.get(f"/ai-sdk/scripted/old/stream?run={record.id}")
        other = await client.get(f"/ai-sdk/scripted/new/stream?run={record.id}")
        chunks = chunks_of(frames_of((await named.body()).decode()))

        whole = await posted(client, "/ai-sdk/scripted", chat(user(), id_="a/b c"))
        again = await client.get("/ai-sdk/scripted/a/b c/stream")
        same = chunks_of(frames_of((await again.body()).decode()))
    assert (late.status, named.status, other.status) == (204, 200, 204)
    assert chunks[-1]["messageMetadata"]["status"] == "completed"
    assert same == whole


async def test_a_chat_that_cannot_be_is_refused() -> None:
    async with asking(works) as (stage, client):
        for body, why in (
            ({"id": "c"}, "messages"),
            (chat(), "messages"),
            (chat(user(), id_=""), "id"),
            (chat(user(), id_="x" * 201), "id"),
            (chat(user(), trigger="else"), "trigger"),
            (chat({"id": "m", "role": "user", "parts": [{"type": "text", "text": 3}]}), "a text has a text"),
            (chat({"id": "m", "role": "user", "parts": [{"type": "data-x"}]}), "neither text nor pictures"),
            (chat({"id": "m", "role": "user", "parts": [{"type": "text", "text": ""}]}), "neither text"),
            (chat({"id": "m", "role": "user", "parts": [{"type": "file"}]}), "data: address"),
            (
                chat(
                    {"id": "m", "role": "user", "parts": [{"type": "file", "url": "data:image/png;base64,%"}]}
                ),
                "base64",
            ),
            (
                chat({"id": "m", "role": "user", "parts": [{"type": "file", "url": "data:;base64,AAAA"}]}),
                "other files",
            ),
            (chat(user(), thinkwell={"agent": "x"}), "agent"),
            (chat(user(), thinkwell={"folder": "x"}), "folder"),
        ):
            status, words = await refused(client, "/ai-sdk/scripted", body)
            assert (status, why in words) == (422, True), (body, words)
        assert await stage.server.runs(caller="") == []


@pytest.mark.parametrize("path", ["/ai-sdk/x", "/ag-ui/x", "/ai-sdk/x/c/stream"])
async def test_only_agents_of_the_operators_are_served(path: str) -> None:
    async with asking(works) as (_, client):
        answer = await client.ask("GET" if path.endswith("stream") else "POST", path, json_body={})
        assert answer.status == 404
        assert "there is no agent 'x'; the server has scripted" in (await answer.json())["error"]["message"]


# AG-UI


async def test_a_run_of_ag_ui_that_is_asked_for_again_is_the_same() -> None:
    async with asking(careful) as (stage, client):
        first = await posted(client, "/ag-ui/scripted", run(says()))
        assert await posted(client, "/ag-ui/scripted", run(says())) == first
        again = run(says(), id_="r2", resume=resume(first))
        rest = await posted(client, "/ag-ui/scripted", again)
        assert said(rest) == "yes."
        assert await posted(client, "/ag-ui/scripted", again) == rest
        assert len(await stage.server.runs(caller="")) == 1


async def test_an_interrupt_that_is_cancelled_is_denied() -> None:
    async with asking(careful) as (_, client):
        (asked,) = interrupts(await posted(client, "/ag-ui/scripted", run(says())))
        cancelled = [{"interruptId": asked["id"], "status": "cancelled"}]
        rest = await posted(client, "/ag-ui/scripted", run(says(), id_="r2", resume=cancelled))
    assert said(rest) == "no."


async def test_a_tool_that_is_not_run_fails_when_the_user_says_something_else() -> None:
    got: list[Any] = []

    async def guide(turn: Turn) -> None:
        got.append(await turn.call("show", {}))

    async def other(turn: Turn) -> None:
        turn.say("As you like.")

    async with asking(guide, other) as (_, client):
        tools = [{"name": "show"}]
        await posted(client, "/ag-ui/scripted", run(says(), tools=tools))
        more = run(says(), says("Never mind.", "m2"), id_="r2", tools=tools)
        told = await posted(client, "/ag-ui/scripted", more)
    assert got[0]["isError"]
    assert "has not answered" in got[0]["content"][0]["text"]
    assert said(told) == "As you like."


async def test_messages_of_an_answer_that_broke_off_are_forgotten_first() -> None:
    async def thinks(turn: Turn) -> None:
        turn.think("Hm.")
        turn.say("Yes.")

    async with asking(thinks) as (_, client):
        first = await posted(client, "/ag-ui/scripted", run(says()))
        ids = [chunk["messageId"] for chunk in first if "messageId" in chunk and "delta" in chunk]
        known = [
            says(),
            {"id": ids[0], "role": "reasoning", "content": "Hm."},
            {"id": ids[1], "role": "assistant", "content": "Ye"},
            {"id": f"{first[0]['metadata']['run']}/1/q1", "role": "assistant", "content": "asked"},
            {"id": "run-00000000-3", "role": "assistant", "content": "of another"},
            {"id": "mine", "role": "assistant", "content": "else"},
        ]
        again = await posted(client, "/ag-ui/scripted", run(*known))
    (snapshot,) = [chunk for chunk in again if chunk["type"] == "MESSAGES_SNAPSHOT"]
    assert snapshot["messages"] == [known[0], {**known[1], "content": ""}, *known[4:]]
    assert [chunk for chunk in again if chunk is not snapshot] == first


async def test_a_conversation_that_waits_for_an_answer_wants_that_first() -> None:
    async with asking(careful) as (stage, client):
        asked = await posted(client, "/ag-ui/scripted", run(says()))
        error = (await posted(client, "/ag-ui/scripted", run(says(id_="m2"), id_="r2")))[-1]
        assert (error["type"], error["code"]) == ("RUN_ERROR", "interrupts_pending")
        assert "Do t1" in error["message"]
        assert len(await stage.server.runs(caller="")) == 1

        # Who answers and says something else gets an answer to that.
        both = run(says(), says("And?", "m2"), id_="r3", resume=resume(asked, payload=False))
        moved = await posted(client, "/ag-ui/scripted", both)
        assert paused(moved)
        assert len(await stage.server.runs(caller="")) == 2


async def test_answers_that_do_not_fit_what_was_asked_are_errors_of_the_run() -> None:
    async def two(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asks, turn, "t1")
            tasks.start_soon(asks, turn, "t2")

    async with asking(two) as (_, client):
        asked = await posted(client, "/ag-ui/scripted", run(says()))
        one, other = resume(asked)
        run_id, seq, _ = one["interruptId"].split("/")

        def to(interrupt: str, **more: Any) -> list[Chunk]:
            return [{"interruptId": interrupt, "status": "resolved", "payload": True, **more}]

        tries = {
            "interrupts_pending": [[one], [other]],
            "interrupt_unknown": [
                to(f"{run_id}/{seq}/q9"),
                to(f"{run_id}/99999/q1"),
                to(f"run-00000000000000000000000000000000/{seq}/q1"),
                [one, *to(f"run-00000000000000000000000000000000/{seq}/q2")],
            ],
            "answer_invalid": [
                [{**one, "payload": payload}, other] for payload in ("yes", None, {"approved": 1}, {})
            ]
            + [[{**one, "payload": {"option": "never offered"}}, other]],
        }
        for code, resumes in tries.items():
            for given in resumes:
                error = (await posted(client, "/ag-ui/scripted", run(says(), resume=given)))[-1]
                assert (error["type"], error["code"]) == ("RUN_ERROR", code)
        call = {"id": "x", "role": "tool", "toolCallId": one["interruptId"], "content": "y"}
        error = (await posted(client, "/ag-ui/scripted", run(says(), call)))[-1]
        assert error["code"] == "interrupt_unknown"  # it is no call of the front end's
        status, why = await refused(client, "/ag-ui/scripted", run(says(), resume=to("else")))
        assert (status, "no interrupt" in why) == (422, True)
        rest = await posted(client, "/ag-ui/scripted", run(says(), id_="r2", resume=[one, other]))
        assert rest[-1]["outcome"] == {"type": "success"}
        late = await posted(client, "/ag-ui/scripted", run(says(), id_="r3", resume=[one, other]))
        assert [chunk["type"] for chunk in late] == [chunk["type"] for chunk in rest]


async def test_tools_of_the_front_end_and_questions_wait_beside_each_other() -> None:
    got: list[Any] = []

    async def both(turn: Turn) -> None:
        got.append(await asks(turn, "t0", kind="fetch"))  # which nobody has to be asked

        async def call() -> None:
            got.append((await turn.call("show", {}))["content"][0]["text"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            got.append(await asks(turn, "t1"))
        turn.say("Done.")

    policy = PermissionPolicy(rules=(Rule("deny", kind="fetch"),), otherwise="ask")
    agent, _ = scripted_agent(both, permissions={"careful": policy})
    tools = [{"name": "show", "description": "Show it"}]
    async with asking(agents={"scripted": agent}) as (_, client):
        asked = await posted(client, "/ag-ui/scripted", run(says(), tools=tools))
        (interrupt,) = interrupts(asked)
        (start,) = [chunk for chunk in asked if chunk.get("toolCallName") == "show"]

        error = (await posted(client, "/ag-ui/scripted", run(says(id_="m2"), id_="r2")))[-1]
        assert error["code"] == "interrupts_pending"
        part = await posted(client, "/ag-ui/scripted", run(says(), id_="r3", resume=resume(asked)))
        assert part[-1]["outcome"]["pendingToolCallIds"] == [start["toolCallId"]]  # which has no answer yet
        assert "TOOL_CALL_START" not in [chunk["type"] for chunk in part]
        content = [{"type": "text", "text": "a map"}]
        result = {"id": "x", "role": "tool", "toolCallId": start["toolCallId"], "content": content}
        rest = await posted(client, "/ag-ui/scripted", run(says(), result, id_="r4"))
    assert interrupt["reason"] == "tool_call"
    assert sorted(got) == ["a map", "no", "yes"]
    assert said(rest) == "Done."


async def test_several_tools_of_the_front_end_are_answered_together_and_apart() -> None:
    got: dict[str, str] = {}

    async def guide(turn: Turn) -> None:
        async def call(name: str) -> None:
            got[name] = (await turn.call("show", {"name": name}))["content"][0]["text"]
            turn.say(f"{name} ")

        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(call, name)

    async with asking(guide) as (_, client):
        tools = [{"name": "show", "parameters": {"type": "object"}}]
        first = await posted(client, "/ag-ui/scripted", run(says(), tools=tools))
        names = {
            chunk["toolCallId"]: json.loads(chunk["delta"])["name"]
            for chunk in first
            if chunk["type"] == "TOOL_CALL_ARGS"
        }
        assert first[-1]["outcome"]["pendingToolCallIds"] == list(names)
        results = [
            {"id": f"of-{name}", "role": "tool", "toolCallId": id_, "content": f"shown {name}"}
            for id_, name in names.items()
        ]
        second = await posted(client, "/ag-ui/scripted", run(says(), *results[:2], id_="r2"))
        assert second[-1]["outcome"]["pendingToolCallIds"] == [results[2]["toolCallId"]]
        both = [chunk for chunk in second if chunk["type"] == "TEXT_MESSAGE_START"]
        third = await posted(client, "/ag-ui/scripted", run(says(), *results, id_="r3"))
        again = await posted(client, "/ag-ui/scripted", run(says(), *results, id_="r3"))
        stray = {**results[0], "toolCallId": f"run-{2:032}/3/q1"}
        same = await posted(client, "/ag-ui/scripted", run(says(), stray, *results, id_="r3"))
    assert got == {name: f"shown {name}" for name in "abc"}
    assert both
    assert third[-1]["outcome"] == {"type": "success"}
    assert said(third).endswith("c ") or sorted(said(third).split()) == ["a", "b", "c"]
    assert again == third
    assert same == third


async def test_a_run_of_ag_ui_that_cannot_be_is_refused() -> None:
    async with asking(works) as (stage, client):
        for body, why in (
            (run(), "has to be the user's"),
            (run({"id": "a", "role": "assistant", "content": "x"}), "has to be the user's"),
            (run(says(3)), "a text or a list"),
            (run(says([3])), "part 1"),
            (run(says([{"type": "audio"}])), "texts, pictures and text files"),
            (run(says("")), "neither text"),
            (run(says([{"type": "text", "text": ""}])), "neither text"),
            (run(says([{"type": "image", "source": {"type": "data", "value": "%"}}])), "base64"),
            (run(says([{"type": "file", "source": {"type": "file", "value": "f-1"}}])), "data: address"),
            (run(says(), tools=[{"name": "a b"}]), "tools"),
            (run(says(), tools=[{"name": "a"}] * 65), "64 may be"),
            (run(says(), tools=[{"name": "a", "parameters": {"type": "array"}}]), "not object"),
            (run(says(), tools=[{"name": "a", "parameters": {"required": 3}}]), "cannot be used"),
            (run(says(), tools=[{"name": "a"}, {"name": "a"}]), "several named"),
            (run(says(), forwardedProps={"thinkwell": 3}), "forwardedProps"),
            (run(says(), thread=""), "threadId"),
            (run(says(), resume=[{"interruptId": "x", "status": "else"}]), "resume"),
        ):
            status, words = await refused(client, "/ag-ui/scripted", body)
            assert (status, why in words) == (422, True), (body, words)
        assert await stage.server.runs(caller="") == []


async def test_what_is_nested_too_deep_is_not_sent_back() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    async with asking(works) as (_, client):
        chunks = await posted(
            client, "/ag-ui/scripted", run({**says(), "metadata": {"x": deep}}, state={"x": deep})
        )
        again = await posted(
            client, "/ag-ui/scripted", run({**says(), "metadata": {"x": deep}}, state={"x": 1})
        )
        parts = [{"type": "data-x", "data": deep}, {"type": "text", "text": "Go.", "x": deep}]
        await posted(client, "/ai-sdk/scripted", chat({"id": "m", "role": "user", "parts": parts}, id_="c2"))
        status, _ = await refused(client, "/ag-ui/scripted", run(says(), forwardedProps=deep))
    assert "x" not in chunks[1]["snapshot"]
    assert again[1]["snapshot"]["x"] == 1
    assert status == 422


async def test_nulls_of_old_clients_mean_nothing() -> None:
    body = run(says(), tools=None, context=None, state=None, forwardedProps=None, resume=None)
    async with asking(works) as (_, client):
        chunks = await posted(client, "/ag-ui/scripted", body)
    assert chunks[-1]["type"] == "RUN_FINISHED"
