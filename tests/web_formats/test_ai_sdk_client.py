"""The client of the Vercel AI SDK, as `useChat` has it, against a server on the loopback."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from front_end_stage import PNG, Front, Told, asks, form, front, page, text, tool, tool_news, works
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

CHAT = Path(__file__).with_name("ai_sdk_chat.mjs")


@pytest.fixture
def anyio_backend(kind: Any) -> str:
    return backend_of(kind)


@dataclass
class Talk:
    """A chat with an agent."""

    stage: Stage
    chat: Front
    url: str

    async def until(self, status: str, parts: int = 0) -> Told:
        """Wait until the chat has a status, and so many parts in its last message."""
        with anyio.fail_after(30):
            while True:
                told = await self.chat.do("look")
                if told["status"] == status and len(told.message["parts"]) >= parts:
                    return told
                await anyio.sleep(0.02)


@asynccontextmanager
async def talking(
    kind: Any, *scripts: Script, automatic: str = "yes", id_: str = "chat 1/a", **options: Any
) -> AsyncGenerator[Talk]:
    async with served(*scripts, **options) as stage, listening(web_app(stage.server), kind) as where:
        api = f"{where.url}/ai-sdk/scripted"
        async with front(CHAT, api, id_, automatic) as chat:
            yield Talk(stage, chat, api)


def states(told: Any) -> dict[str, str]:
    return {part["toolCallId"]: part["state"] for part in told.parts("dynamic-tool")}


@pytest.mark.quick
async def test_a_message_has_everything_that_a_run_has(kind: Any) -> None:
    async with talking(kind, works) as talk:
        told = await talk.chat.do("send", message={"text": "Look."})

    assert told["status"] == "ready"
    assert told.all("header") == ["v1"]
    assert told.all("finished") == [
        {"isAbort": False, "isDisconnect": False, "isError": False, "finishReason": "stop"}
    ]
    message = told.message
    assert message["role"] == "assistant"
    assert message["id"] == message["metadata"]["run"]
    assert message["metadata"]["status"] == "completed"
    assert [part["type"] for part in message["parts"]] == [
        "step-start",
        "reasoning",
        "text",
        "data-plan",
        "dynamic-tool",
        "dynamic-tool",
        "data-diff",
        "file",
        "dynamic-tool",
        "data-terminal",
        "file",
        "source-url",
        "data-usage",
        "text",
    ]
    assert [part["text"] for part in told.parts("reasoning")] == ["Where is it?"]
    assert [part["text"] for part in told.parts("text")] == ["I look at it.", "It is 2."]
    assert all(part["state"] == "done" for part in (*told.parts("text"), *told.parts("reasoning")))

    read, edit, run = told.parts("dynamic-tool")
    assert (read["state"], read["input"], read["output"]) == (
        "output-available",
        {"path": "a.py"},
        "print(1)",
    )
    assert (read["toolName"], read["title"], read["providerExecuted"]) == ("read", "Do read", True)
    assert (edit["state"], edit["input"], edit["output"]) == ("output-available", {"path": "a.py"}, "Done")
    assert (run["state"], run["errorText"]) == ("output-error", "1 failed")
    assert run["toolMetadata"]["kind"] == "execute"

    (diff,) = told.parts("data-diff")
    assert diff["data"] == {
        "toolCallId": "edit",
        "path": "a.py",
        "oldText": "print(1)\n",
        "newText": "print(2)\n",
    }
    (terminal,) = told.parts("data-terminal")
    assert terminal["data"] == {"toolCallId": "run", "terminalId": "term-1"}
    (shown,) = told.parts("data-plan")
    assert [entry["status"] for entry in shown["data"]["entries"]] == ["completed", "completed"]
    (usage,) = told.parts("data-usage")
    assert (usage["data"]["used"], usage["data"]["cost"]) == (1200, {"amount": 0.5, "currency": "USD"})
    assert {file["url"] for file in told.parts("file")} == {f"data:image/png;base64,{PNG}"}
    assert told.parts("source-url")[0]["url"] == "https://docs.example/a"


@pytest.mark.quick
async def test_a_tool_call_is_approved_and_the_same_message_goes_on(kind: Any) -> None:
    chosen: list[str | None] = []

    async def careful(turn: Turn) -> None:
        turn.say("I have to delete it.")
        chosen.append(await asks(turn, "t1", raw_input={"command": "rm a"}))
        turn.update(tool_news("t1", "completed", content=(text("gone"),)))
        turn.say("Done.")

    async with talking(kind, careful) as talk:
        asked = await talk.chat.do("send", message={"text": "Clean up."})
        assert asked["status"] == "ready"
        assert asked.all("finished")[0]["finishReason"] == "tool-calls"
        (call,) = asked.parts("dynamic-tool")
        assert (call["state"], call["input"]) == ("approval-requested", {"command": "rm a"})
        assert call["approval"]["requestReason"] == "Do t1"
        assert [option["id"] for option in call["approval"]["descriptor"]["options"]] == [
            "yes",
            "always",
            "no",
        ]

        await talk.chat.do("approve", id=call["approval"]["id"], approved=True, reason="fine")
        told = await talk.chat.do("settle")

    assert chosen == ["yes"]
    assert (told["status"], told["posts"]) == ("ready", 2)
    assert told.message["id"] == asked.message["id"]
    assert len(told["messages"]) == 2
    (call,) = told.parts("dynamic-tool")
    assert (call["state"], call["output"]) == ("output-available", "gone")
    assert (call["approval"]["approved"], call["approval"]["reason"]) == (True, "fine")
    assert [part["text"] for part in told.parts("text")] == ["I have to delete it.", "Done."]
    (question,) = told.parts("data-question")
    assert question["data"]["answer"] == {"choice": "allow_once", "by": "human", "why": "fine"}


async def test_a_tool_call_that_is_denied_stays_denied(kind: Any) -> None:
    async def careful(turn: Turn) -> None:
        chosen = await asks(turn, "t1")
        turn.update(tool_news("t1", "failed", content=(text("denied"),)))
        turn.say(f"You said {chosen}.")

    async with talking(kind, careful) as talk:
        await talk.chat.do("send", message={"text": "Clean up."})
        await talk.chat.do("approve", id="q1", approved=False, reason="not now")
        told = await talk.chat.do("settle")

    (call,) = told.parts("dynamic-tool")
    assert (call["state"], call["approval"]["approved"]) == ("output-denied", False)
    assert [part["text"] for part in told.parts("text")] == ["You said no."]
    assert told["posts"] == 2


async def test_one_question_after_the_other_each_is_put_in_the_last_step(kind: Any) -> None:
    chosen: list[str | None] = []

    async def careful(turn: Turn) -> None:
        turn.update(tool("other", status="in_progress"))
        for name in ("t1", "t2", "t2"):
            chosen.append(await asks(turn, name))
            turn.say(f"{name} ")
        turn.update(tool_news("t1", "completed"))

    async with talking(kind, careful) as talk:
        await talk.chat.do("send", message={"text": "Clean up."})
        for number in (1, 2, 3):
            told = await talk.chat.do("settle")
            assert len(chosen) == number - 1
            await talk.chat.do("approve", id=f"q{number}", approved=number != 2)
        told = await talk.chat.do("settle")

    assert chosen == ["yes", "no", "yes"]
    assert (told["posts"], told["status"]) == (4, "ready")
    assert len(told.message["metadata"]["after"]) == 3
    assert [part["text"] for part in told.parts("text")] == ["t1 ", "t2 ", "t2 "]
    assert states(told) == {
        "other": "output-available",
        "t1": "output-available",
        "t2": "output-available",
        "question-q1": "output-available",  # another call was going on beside it
        "question-q3": "output-available",
    }


async def test_questions_that_are_asked_at_once_are_put_at_once(kind: Any) -> None:
    chosen: dict[str, str | None] = {}

    async def careful(turn: Turn) -> None:
        async def one(name: str) -> None:
            chosen[name] = await asks(turn, name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "t1")
            tasks.start_soon(one, "t2")
        turn.say("Done.")

    async with talking(kind, careful) as talk:
        asked = await talk.chat.do("send", message={"text": "Clean up."})
        assert set(states(asked).values()) == {"approval-requested"}
        first = await talk.chat.do("approve", id="q1", approved=True)
        assert first["posts"] == 1  # it is sent when all have their answers
        await talk.chat.do("approve", id="q2", approved=False)
        told = await talk.chat.do("settle")

    assert sorted(chosen.values(), key=str) == ["no", "yes"]
    assert told["posts"] == 2
    assert [part["text"] for part in told.parts("text")] == ["Done."]


async def test_a_form_is_filled_in_as_the_output_of_a_tool(kind: Any) -> None:
    filled: list[Any] = []

    async def asking(turn: Turn) -> None:
        filled.append(await form(turn))
        turn.say("Thanks.")

    async with talking(kind, asking) as talk:
        asked = await talk.chat.do("send", message={"text": "Connect."})
        (call,) = asked.parts("dynamic-tool")
        assert (call["state"], call["toolName"], call["title"]) == ("input-available", "form", "Where to?")
        assert [field["name"] for field in call["input"]["fields"]] == ["host", "port"]

        answer = {"tool": "form", "toolCallId": call["toolCallId"]}
        await talk.chat.do("output", **answer, output={"host": "x"})
        wrong = await talk.chat.do("settle")
        assert wrong["status"] == "error"
        assert not filled
        await talk.chat.do("output", **answer, output={"host": "db.example", "port": 5432})
        told = await talk.chat.do("settle")

    assert filled[0].content == {"host": "db.example", "port": 5432}
    assert told["status"] == "ready"
    assert [part["text"] for part in told.parts("text")] == ["Thanks."]


@pytest.mark.quick
async def test_a_form_may_be_declined_and_a_page_opened(kind: Any) -> None:
    done: list[str] = []

    async def asking(turn: Turn) -> None:
        done.append((await form(turn)).action)
        done.append((await page(turn)).action)
        turn.say("Thanks.")

    async with talking(kind, asking) as talk:
        asked = await talk.chat.do("send", message={"text": "Connect."})
        (call,) = asked.parts("dynamic-tool")
        about = {"tool": "form", "toolCallId": call["toolCallId"]}
        await talk.chat.do("output", **about, state="output-error", errorText="no")
        asked = await talk.chat.do("settle")
        call = asked.parts("dynamic-tool")[-1]
        assert (call["toolName"], call["state"]) == ("open_url", "approval-requested")
        assert call["input"]["url"] == "https://login.example/start"
        await talk.chat.do("approve", id="q2", approved=True)
        told = await talk.chat.do("settle")

    assert done == ["decline", "accept"]
    assert (told["posts"], told["status"]) == (3, "ready")


async def test_stopping_does_not_cancel_and_a_client_comes_back_to_all_of_it(kind: Any) -> None:
    go_on = anyio.Event()

    async def slow(turn: Turn) -> None:
        turn.say("One ")
        turn.update(tool("t1", status="in_progress"))
        await go_on.wait()
        turn.update(tool_news("t1", "completed"))
        turn.say("two.")

    async with talking(kind, slow) as talk:
        await talk.chat.do("send", wait=False, message={"text": "Count."})
        begun = await talk.until("streaming", parts=3)
        stopped = await talk.chat.do("stop")
        assert stopped["status"] == "ready"
        (record,) = await talk.stage.server.runs(caller="")
        assert record.status == "running"

        # Another page, which knows nothing but what the user said.
        await talk.chat.do("reload", messages=begun["messages"][:1])
        await talk.chat.do("resume", wait=False)
        await talk.until("streaming", parts=3)
        go_on.set()
        told = await talk.until("ready", parts=4)

    assert told.message["id"] == record.id
    assert [part["text"] for part in told.parts("text")] == ["One ", "two."]
    assert states(told) == {"t1": "output-available"}


@pytest.mark.parametrize("cut", [1, 700, 1500, 2600])
@pytest.mark.parametrize("ended", [False, True])
async def test_a_connection_that_breaks_off_costs_nothing(kind: Any, cut: int, ended: bool) -> None:
    go_on = anyio.Event()

    async def steps(turn: Turn) -> None:
        await works(turn)
        await go_on.wait()
        turn.say(" All.")

    async with talking(kind, steps) as talk:
        await talk.chat.do("cut", bytes=cut)
        broken = await talk.chat.do("send", message={"text": "Look."})
        assert broken["status"] == "error"
        assert broken.all("finished")[0]["isDisconnect"]
        if ended:
            go_on.set()
            (record,) = await talk.stage.server.runs(caller="")
            await talk.stage.ended(record.id, caller="")
        await talk.chat.do("resume", wait=False)
        if not ended:
            await talk.until("streaming", parts=14)
            go_on.set()
        told = await talk.until("ready", parts=14)

    assert len(told["messages"]) == 2
    assert [part["text"] for part in told.parts("text")] == ["I look at it.", "It is 2. All."]
    assert list(states(told)) == ["read", "edit", "run"]
    assert len(told.message["parts"]) == 14


async def test_where_nothing_runs_there_is_nothing_to_come_back_to(kind: Any) -> None:
    async with talking(kind, works) as talk:
        told = await talk.chat.do("resume")
    assert told.all("status") == [204]
    assert (told["status"], told["messages"]) == ("ready", [])


async def test_a_page_that_is_loaded_again_while_a_question_waits_can_answer_it(kind: Any) -> None:
    async def careful(turn: Turn) -> None:
        turn.say("May I?")
        chosen = await asks(turn)
        turn.say(f"You said {chosen}.")

    async with talking(kind, careful) as talk:
        asked = await talk.chat.do("send", message={"text": "Clean up."})
        await talk.chat.do("reload", messages=asked["messages"][:1])
        again = await talk.chat.do("resume")
        assert again["messages"] == asked["messages"]
        await talk.chat.do("approve", id="q1", approved=True)
        told = await talk.chat.do("settle")
    assert [part["text"] for part in told.parts("text")] == ["May I?", "You said yes."]


async def test_a_run_that_was_started_elsewhere_is_watched(kind: Any) -> None:
    async def careful(turn: Turn) -> None:
        await works(turn)
        turn.say(f" {await asks(turn)}")

    async with talking(kind, careful) as talk:
        record = await talk.stage.start(caller="")
        url = talk.url.replace("/ai-sdk/scripted", f"/api/runs/{record.id}/events?format=ai-sdk")
        await talk.chat.do("reload", messages=[], watched=url)
        await talk.chat.do("resume", wait=False)
        asked = await talk.until("streaming", parts=16)
        assert asked.parts("dynamic-tool")[-1]["state"] == "approval-requested"
        await talk.stage.server.answer(record.id, "q1", "allow", caller="")
        told = await talk.until("ready")
    assert told.all("error") == []
    assert [part["text"] for part in told.parts("text")] == ["I look at it.", "It is 2.", " yes"]
    assert told.parts("dynamic-tool")[-1]["approval"]["approved"]


async def test_a_user_who_says_something_else_denies_what_was_asked(kind: Any) -> None:
    chosen: list[str | None] = []

    async def careful(turn: Turn) -> None:
        chosen.append(await asks(turn))
        turn.say("First.")

    async def second(turn: Turn) -> None:
        turn.say(f"Second: {turn.text}")

    async with talking(kind, careful, second) as talk:
        await talk.chat.do("send", message={"text": "Clean up."})
        told = await talk.chat.do("send", message={"text": "No, wait."})
        assert talk.stage.handler is not None
        assert len(talk.stage.handler.sent.sessions) == 1
    assert chosen == ["no"]
    assert [part["text"] for part in told.parts("text")] == ["Second: No, wait."]


async def test_an_agent_that_fails_is_an_error_and_a_cancelled_run_is_none(kind: Any) -> None:
    begun = anyio.Event()

    async def failing(turn: Turn) -> None:
        turn.say("Oh")
        turn.update(tool("t1", status="in_progress"))
        raise RpcError(-32603, "broken", {"details": "in /secret/place"})

    async def endless(turn: Turn) -> None:
        turn.say("On ")
        begun.set()
        await anyio.sleep_forever()

    async with talking(kind, failing, endless) as talk:
        failed = await talk.chat.do("send", message={"text": "Go."})
        assert failed["status"] == "error"
        assert "/secret" not in failed.all("error")[0]
        assert failed.all("error")[0].startswith("AgentReported: ")
        assert states(failed) == {"t1": "output-error"}

        await talk.chat.do("send", wait=False, message={"text": "Go on."})
        await begun.wait()
        (record, _) = await talk.stage.server.runs(caller="")
        await talk.stage.server.cancel(record.id, caller="")
        told = await talk.chat.do("settle")
    assert told["status"] == "ready"
    assert told.all("finished")[0]["finishReason"] == "other"
    assert [part["text"] for part in told.parts("text")] == ["On "]


async def test_a_result_and_its_schema_and_what_else_is_chosen(kind: Any) -> None:
    async def counting(turn: Turn) -> None:
        await turn.returns(count=3)

    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    body = {"thinkwell": {"output": schema, "title": "Counting", "timeout": 30}}
    async with talking(kind, counting) as talk:
        told = await talk.chat.do("send", message={"text": "Count."}, body=body)
        await talk.chat.do("send", message={"text": "x"}, body={"thinkwell": {"cwd": "/"}})
        refused = await talk.chat.do("look")
        (record,) = await talk.stage.server.runs(caller="")
    (result,) = told.parts("data-result")
    assert result["data"] == {"count": 3}
    assert record.title == "Counting"
    assert refused["status"] == "error"


@pytest.mark.quick
async def test_pictures_reach_the_agent_and_other_files_are_refused(kind: Any) -> None:
    seen: list[Any] = []

    async def looking(turn: Turn) -> None:
        seen.extend(turn.request.prompt)
        turn.say("A pixel.")

    def file(media_type: str, url: str) -> dict[str, str]:
        return {"type": "file", "mediaType": media_type, "filename": "a.txt", "url": url}

    picture = file("image/png", f"data:image/png;base64,{PNG}")
    words = file("text/plain", "data:text/plain,a%20b")
    async with talking(kind, looking) as talk:
        assert talk.stage.handler is not None
        talk.stage.handler.capabilities = replace(
            talk.stage.handler.capabilities, prompt_capabilities=s.PromptCapabilities(image=True)
        )
        await talk.chat.do("send", message={"text": "What is it?", "files": [picture, words]})
        bad = await talk.chat.do("send", message={"files": [file("image/png", "https://a.example/x.png")]})
        worse = await talk.chat.do(
            "send", message={"files": [file("application/pdf", "data:application/pdf;base64,AAAA")]}
        )
    (shown,) = [block for block in seen if isinstance(block, s.ImageContent)]
    assert (shown.mime_type, shown.data) == ("image/png", PNG)
    said = "".join(block.text for block in seen if isinstance(block, s.TextContent))
    assert said == "\na.txt\n<file>\na b\n</file>\nWhat is it?"
    assert "the server fetches nothing" in bad.all("error")[0]
    assert "application/pdf" in worse.all("error")[0]


@pytest.mark.quick
async def test_the_answer_can_be_had_once_more(kind: Any) -> None:
    async def counting(turn: Turn) -> None:
        assert turn.agent.sent.prompts
        turn.say(f"Try {len(turn.agent.sent.prompts)}.")

    async with talking(kind, counting) as talk:
        first = await talk.chat.do("send", message={"text": "Go."})
        named = await talk.chat.do("regenerate", messageId=first.message["id"])
        last = await talk.chat.do("regenerate")
    texts = [told.parts("text")[0]["text"] for told in (first, named, last)]
    assert texts == ["Try 1.", "Try 2.", "Try 3."]
    assert len(last["messages"]) == 2


@pytest.mark.long
@pytest.mark.quick
async def test_hostile_ids_and_huge_texts_arrive_as_they_are(kind: Any) -> None:
    names = ["__proto__", "constructor", "a\nb\u2028\x00", "data: x\n\n", "x" * 5000, "question-q1"]
    long = "läng" * 150_000

    async def hostile(turn: Turn) -> None:
        turn.say(long)
        for name in names:
            turn.update(tool(name, title=name, status="in_progress"))
            turn.update(tool_news(name, "completed", content=(text(name),)))
        turn.update(tool("__proto__", title="again"))
        turn.update(tool_news("__proto__", "completed", content=(text(long + long),)))

    async with talking(kind, hostile) as talk:
        told = await talk.chat.do("send", message={"text": "Go."})
    assert told["status"] == "ready"
    assert told.parts("text")[0]["text"] == long
    calls = told.parts("dynamic-tool")
    assert [call["output"] for call in calls[:-1]] == names
    assert len({call["toolCallId"] for call in calls}) == len(names) + 1
    assert max(len(call["toolCallId"]) for call in calls) <= 200
    assert calls[-1]["output"].endswith(f"… ({2 * len(long) - 1_000_000} more characters)")
