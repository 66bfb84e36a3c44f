"""What comes of events that no agent should send, read by the official clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from front_end_stage import PNG
from kept_runs import keep_run
from node_packages import node_run
from web_stage import Client, served

from thinkwell import events as ev
from thinkwell.journal import RunRecord
from thinkwell.questions import FormField
from thinkwell.web import RunEnded, ShownError, web_app

pytestmark = pytest.mark.xdist_group("odd_runs")  # the clients read all of them at once

SCRIPT = Path(__file__).with_name("read_streams.mjs")
FORMATS = ("ai-sdk", "ag-ui")

END = RunEnded(seq=0, at=0, status="completed", stop_reason="end_turn", result="It is done.")


def content(text: str) -> tuple[ev.ToolContent, ...]:
    return (ev.BlockContent(content=ev.TextContent(text=text)),)


def said(block: ev.ContentBlock) -> ev.Message:
    return ev.Message(content=block)


def question(id_: str = "q1", *, timeout: float | None = 300.0, **fields: Any) -> ev.QuestionAsked:
    return ev.QuestionAsked(id=id_, title=f"{id_}?", timeout=timeout, **fields)


def answer(id_: str = "q1", choice: str | None = "allow_once", by: str = "human") -> ev.QuestionAnswered:
    return ev.QuestionAnswered(id=id_, choice=choice, by=by, why="so")


CALLED = (
    FormField(name="front_end_result", type="string", title="show", description='{"a": 1}'),
    FormField(name="front_end_error", type="string"),
)

RUNS: dict[str, list[ev.ThoughtEvent | RunEnded]] = {
    "nothing": [END],
    "calls that were never announced": [
        ev.ToolUpdate(id="a", title="A", content=content("half")),
        ev.ToolDone(id="b", status="completed", output={"exit": 0}),
        ev.ToolDone(id="c", status="failed"),
        END,
    ],
    "an id that is used again": [
        ev.ToolStart(id="a", title="first"),
        ev.ToolDone(id="a", status="completed", content=content("one")),
        ev.ToolStart(id="a", title="second", input={"n": 2}),
        ev.ToolDone(id="a", status="completed", output="two"),
        END,
    ],
    "a call that is told of too late": [
        ev.ToolStart(id="a", title="A", input={}),
        ev.ToolDone(id="a", status="completed"),
        ev.ToolUpdate(id="a", content=content("late")),
        ev.ToolDone(id="a", status="completed", content=content("later")),
        END,
    ],
    "a call that is announced twice, and never ends": [
        ev.ToolStart(id="a", title="A"),
        ev.ToolStart(id="a", title="B", input={"n": 1}),
        ev.ToolUpdate(id="a", title="C"),
        ev.ToolUpdate(id="a", locations=(ev.Location(path="/x", line=3),), parent="p", output=[1]),
        END,
    ],
    "a history that is repeated": [
        ev.ReplayStarted(),
        ev.Message(text="Long ago."),
        ev.ToolStart(id="a", title="old"),
        ev.ReplayEnded(),
        ev.UserMessage(text="Hi"),
        ev.UserMessage(content=ev.ImageContent(data=PNG, mime_type="image/png")),
        ev.Message(text="Now."),
        END,
    ],
    "empty texts and ids of messages": [
        ev.Message(text=""),
        ev.Message(text="a", message_id="m1"),
        ev.Message(text="b", message_id="m2"),
        ev.Message(text="c"),
        ev.Thought(text="d"),
        ev.Thought(text=""),
        END,
    ],
    "media": [
        said(ev.ImageContent(data=PNG, mime_type="IMAGE/PNG")),
        said(ev.ImageContent(data=PNG, mime_type="image/svg+xml")),
        said(ev.ImageContent(data='"><script>', mime_type="image/png")),
        said(ev.ImageContent(data="A" * 8_000_004, mime_type="image/png")),
        said(ev.AudioContent(data="AAAA", mime_type="audio/mpeg")),
        said(ev.ResourceLink(uri="javascript:alert(1)", name="x")),
        said(ev.ResourceLink(uri="https://a.example", name="x")),
        said(ev.EmbeddedResource(uri="file:///a", text="t")),
        ev.ToolDone(
            id="a",
            status="completed",
            content=tuple(
                ev.BlockContent(content=block)
                for block in (
                    ev.EmbeddedResource(uri="file:///a", text="t"),
                    ev.EmbeddedResource(uri="file:///b", blob="AAAA"),
                    ev.ResourceLink(uri="https://a.example", name="x"),
                    ev.AudioContent(data="AAAA", mime_type="audio/mpeg"),
                )
            ),
        ),
        END,
    ],
    "changes that are told of again and again": [
        ev.ToolStart(id="a", title="A", content=(ev.DiffContent(path="p", new_text="1"),)),
        ev.ToolUpdate(id="a", content=(ev.DiffContent(path="p", new_text="1"),)),
        ev.ToolUpdate(id="a", content=(ev.DiffContent(path="p", old_text="", new_text="2"),)),
        ev.ToolDone(
            id="a", status="completed", content=(ev.DiffContent(path="p", old_text="", new_text="2"),)
        ),
        END,
    ],
    "plans": [
        ev.PlanUpdate(id="a", markdown="# A", uri="file:///plan.md"),
        ev.PlanUpdate(entries=(ev.PlanEntry(content="x"),)),
        ev.PlanUpdate(id="a", removed=True),
        ev.PlanUpdate(id="never", removed=True),
        ev.PlanUpdate(entries=(ev.PlanEntry(content="x"), ev.PlanEntry(content="y"))),
        ev.PlanUpdate(entries=(ev.PlanEntry(content="z"),)),
        END,
    ],
    "turns and tokens": [
        ev.TurnStarted(number=1),
        ev.Message(text="a"),
        ev.TurnEnded(number=1, stop_reason="end_turn", usage=ev.TokenUsage(input=5)),
        ev.TurnStarted(number=2, reminder=True),
        ev.Message(text="b"),
        ev.TurnEnded(number=2, stop_reason="end_turn", usage=ev.TokenUsage()),
        ev.Notice(severity="warning", title="n"),
        ev.Stalled(idle=1.0, limit=2.0),
        ev.SessionOpened(agent="odd", session_id="s", cwd="/secret"),
        ev.UnknownUpdate(kind="k", raw={"a": [1]}),
        ev.ResultAttempt(accepted=True, value="text"),
        ev.ResultAttempt(accepted=False, value="text"),
        END,
    ],
    "questions to nobody": [
        ev.ToolStart(id="a", title="A", input={}),
        question(tool_id="a", timeout=None),
        answer(by="policy"),
        answer("never asked"),
        ev.ToolDone(id="a", status="completed"),
        question("q2", asks="url", url="https://a.example"),
        END,
    ],
    "questions that have their answer": [
        ev.ToolStart(id="a", title="A"),
        question(tool_id="a", options=(ev.QuestionOption(id="o", name="O", kind="allow_once"),)),
        answer(choice="reject_once"),
        ev.ToolDone(id="a", status="failed"),
        ev.ToolStart(id="b", title="B", input={}),
        question("q2", tool_id="b"),
        answer("q2", "reject_once"),
        ev.ToolDone(id="b", status="completed", content=content("did it all the same")),
        question("q3", tool_id="b"),
        answer("q3"),
        question("q4", tool_id="unknown"),
        answer("q4", None, "cancel"),
        question("q5", asks="form", fields=(FormField(name="x", type="string"),)),
        ev.QuestionAnswered(id="q5", choice="accept", by="human", why="", filled=("x",)),
        question("q6", asks="form"),
        answer("q6", "decline"),
        END,
    ],
    "calls of the front end's tools": [
        question(asks="form", fields=CALLED),
        answer(choice="accept"),
        question("q2", asks="form", fields=CALLED),
        END,
    ],
    "a run that is cancelled": [
        ev.ToolStart(id="a", title="A", status="in_progress"),
        question(tool_id="a"),
        ev.Message(text="On"),
        RunEnded(seq=0, at=0, status="cancelled"),
    ],
    "a run that failed": [
        ev.ToolStart(id="a", title="A", status="in_progress"),
        RunEnded(seq=0, at=0, status="failed", error=ShownError(name="AgentExited", message="gone")),
    ],
    "a run that failed without a reason": [RunEnded(seq=0, at=0, status="failed")],
    "a run that was interrupted": [ev.Thought(text="Hm"), RunEnded(seq=0, at=0, status="interrupted")],
    "a result that is no text": [RunEnded(seq=0, at=0, status="completed", result=None)],
    "an odd end": [RunEnded(seq=0, at=0, status="completed", stop_reason="max_tokens", result="")],
}


async def streams() -> dict[str, dict[str, str]]:
    """The runs as they are sent in each format."""
    sent: dict[str, dict[str, str]] = {name: {} for name in FORMATS}
    async with served() as stage:
        client = Client(web_app(stage.server))
        for number, (about, (*log, end)) in enumerate(RUNS.items()):
            assert isinstance(end, RunEnded)
            record = RunRecord(id=f"run-{number:016x}", agent="odd", created=0.0)
            await keep_run(stage.server.journal, record, log, end)  # type: ignore[arg-type]
            for name in FORMATS:
                url = f"/api/runs/{record.id}/events?format={name}"
                text, again = [(await (await client.get(url)).body()).decode() for _ in range(2)]
                retry, _, frames = text.partition("\n\n")
                assert frames == again.partition("\n\n")[2]
                # As after a silence.
                sent[name][about] = f"{retry}\n\n" + frames.replace("\n\n", "\n\n: keep-alive\n\n")
    return sent


@pytest.fixture(scope="module")
def read() -> Any:
    """What the clients make of the runs."""
    return json.loads(node_run(SCRIPT, stdin=json.dumps(anyio.run(streams))))


FAILED = ("a run that failed", "a run that failed without a reason", "a run that was interrupted")


@pytest.mark.parametrize("name", RUNS)
def test_the_clients_find_nothing_wrong(read: Any, name: str) -> None:
    errors = {format_: read[format_][name]["errors"] for format_ in FORMATS}
    if name in FAILED:
        assert len(errors["ai-sdk"]) == 1
        assert read["ag-ui"][name]["events"][-1]["type"] == "RUN_ERROR"
    else:
        assert errors["ai-sdk"] == []
        assert read["ag-ui"][name]["events"][-1]["type"] == "RUN_FINISHED"
    assert errors["ag-ui"] == []


def parts(read: Any, name: str, kind: str = "dynamic-tool") -> list[dict[str, Any]]:
    return [part for part in read["ai-sdk"][name]["message"]["parts"] if part["type"] == kind]


def states(read: Any, name: str) -> dict[str, str]:
    return {part["toolCallId"]: part["state"] for part in parts(read, name)}


def results(read: Any, name: str) -> list[Any]:
    return [message["content"] for message in read["ag-ui"][name]["messages"] if message["role"] == "tool"]


def test_calls_that_were_never_announced_are_calls(read: Any) -> None:
    name = "calls that were never announced"
    assert states(read, name) == {"a": "output-available", "b": "output-available", "c": "output-error"}
    assert [part.get("output", part.get("errorText")) for part in parts(read, name)] == [
        "half",
        '{"exit":0}',
        "the tool call was not successful",
    ]
    assert results(read, name) == ["half", '{"exit":0}', ""]


def test_an_id_that_is_used_again_is_another_call(read: Any) -> None:
    name = "an id that is used again"
    assert [(part["toolCallId"], part["title"], part["output"]) for part in parts(read, name)] == [
        ("a", "first", "one"),
        ("a#2", "second", "two"),
    ]
    assert results(read, name) == ["one", "two"]


def test_late_news_of_a_call_is_shown(read: Any) -> None:
    name = "a call that is told of too late"
    assert [part["output"] for part in parts(read, name)] == ["later"]
    assert results(read, name) == [""]


def test_a_call_without_an_end_ends_with_its_run(read: Any) -> None:
    name = "a call that is announced twice, and never ends"
    (call,) = parts(read, name)
    assert (call["state"], call["title"], call["input"]) == ("output-available", "C", {"n": 1})
    assert call["toolMetadata"]["locations"] == [{"path": "/x", "line": 3}]
    assert call["toolMetadata"]["parent"] == "p"
    assert results(read, name) == ["[1]"]
    assert states(read, "a run that is cancelled") == {"a": "output-error"}
    assert states(read, "a run that failed") == {"a": "output-error"}


def test_a_history_is_not_told_again(read: Any) -> None:
    name = "a history that is repeated"
    assert [part["text"] for part in parts(read, name, "text")] == ["Now."]
    assert [message["content"] for message in read["ag-ui"][name]["messages"]] == ["Now."]


def test_texts_are_told_apart(read: Any) -> None:
    name = "empty texts and ids of messages"
    assert [part["text"] for part in parts(read, name, "text")] == ["a", "b", "c"]
    assert [message["content"] for message in read["ag-ui"][name]["messages"]] == ["a", "b", "c", "d"]


def test_nothing_runs_that_an_agent_shows(read: Any) -> None:
    files = [file["url"] for file in parts(read, "media", "file")]
    assert files == [
        f"data:image/png;base64,{PNG}",
        "data:audio/mpeg;base64,AAAA",
        "data:audio/mpeg;base64,AAAA",
    ]
    assert [link["url"] for link in parts(read, "media", "source-url")] == ["https://a.example"]
    assert [part["data"]["type"] for part in parts(read, "media", "data-content")] == [
        "image",
        "image",
        "image",
        "resource_link",
        "resource",
    ]
    (result,) = results(read, "media")
    assert result[0] == {"type": "text", "text": "t"}
    assert result[1]["type"] == "audio"


def test_a_change_is_told_when_it_changes(read: Any) -> None:
    name = "changes that are told of again and again"
    (diff,) = parts(read, name, "data-diff")
    assert (diff["data"]["oldText"], diff["data"]["newText"]) == ("", "2")
    kinds = [event["type"] for event in read["ag-ui"][name]["events"]]
    assert kinds.count("ACTIVITY_SNAPSHOT") == 2


def test_plans_come_and_go(read: Any) -> None:
    shown = {part["id"]: part["data"] for part in parts(read, "plans", "data-plan")}
    assert shown["plan-a"]["removed"]
    assert [entry["content"] for entry in shown["plan-main"]["entries"]] == ["z"]
    state = read["ag-ui"]["plans"]["state"]
    assert [entry["content"] for entry in state["plan"]] == ["z"]
    assert [plan["id"] for plan in state["plans"]] == ["main"]


def test_turns_are_steps_and_tokens_are_counted(read: Any) -> None:
    name = "turns and tokens"
    assert len(parts(read, name, "step-start")) == 2
    (usage,) = parts(read, name, "data-usage")
    assert usage["data"]["tokens"]["input"] == 5
    assert parts(read, name, "data-result")[0]["data"] == "It is done."
    agent = read["ag-ui"][name]
    assert agent["state"]["tokens"]["input"] == 5
    assert "/secret" not in json.dumps(read)
    names = [event["name"] for event in agent["events"] if event["type"] == "CUSTOM"]
    assert {"thinkwell.notice", "thinkwell.stalled", "thinkwell.unknown"} <= set(names)


def test_what_was_not_asked_waits_for_no_answer(read: Any) -> None:
    name = "questions to nobody"
    assert states(read, name)["a"] == "output-available"
    asked = {part["id"]: part["data"] for part in parts(read, name, "data-question")}
    assert asked["q1"]["answer"]["by"] == "policy"
    assert [each["id"] for each in read["ag-ui"][name]["state"]["questions"]] == ["q1", "q2"]


def test_answers_are_told_where_the_question_stands(read: Any) -> None:
    name = "questions that have their answer"
    assert states(read, name) == {
        "a": "output-denied",
        "b": "output-available",
        "question-q3": "output-available",
        "question-q4": "output-denied",
        "question-q5": "output-available",
        "question-q6": "output-error",
    }
    answers = [each["answer"]["choice"] for each in read["ag-ui"][name]["state"]["questions"]]
    assert answers == ["reject_once", "reject_once", "allow_once", None, "accept", "decline"]


def test_calls_of_the_front_ends_tools_are_calls(read: Any) -> None:
    name = "calls of the front end's tools"
    agent = read["ag-ui"][name]
    assert [m["toolCalls"][0]["function"]["name"] for m in agent["messages"] if "toolCalls" in m] == [
        "show",
        "show",
    ]
    assert results(read, name) == [""]
    assert agent["state"]["questions"] == []


def test_ends_are_told_in_the_clients_words(read: Any) -> None:
    assert "AgentExited: gone" in read["ai-sdk"]["a run that failed"]["errors"][0]
    assert read["ai-sdk"]["nothing"]["message"]["metadata"]["status"] == "completed"
    assert parts(read, "a result that is no text", "data-result")[0]["data"] is None
    assert read["ag-ui"]["a run that is cancelled"]["events"][-1]["outcome"] == {"type": "cancelled"}
    assert read["ag-ui"]["nothing"]["result"]["result"] == "It is done."
