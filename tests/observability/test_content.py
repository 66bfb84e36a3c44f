"""What was said gets into spans where the standard switch says so: without secrets, and bounded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from observability.spans import Collected, attributes
from scripted import Turn, scripted

from thinkwell import ThoughtCancelled
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

TOKEN = "q8Xz7Lw2Vb5Nc9Rt4Ks6"
"""A secret that only the agent's environment tells."""

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
ARGUMENTS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"


def said(span: ReadableSpan, name: str) -> Any:
    """What a span says by an attribute, as JSON."""
    value = attributes(span)[name]
    assert isinstance(value, str)
    return json.loads(value)


def note(text: str) -> str:
    """Take a note."""
    return f"{text} with {TOKEN}"


async def busy(turn: Turn) -> None:
    turn.think("Hm. ")
    turn.think("Well.")
    turn.say(f"The token is {TOKEN[:9]}")
    turn.say(f"{TOKEN[9:]}, I see.")
    command = {"command": "deploy", "api_key": "k3yV4lu3Xw9q"}
    turn.update(s.ToolCallStart(tool_call_id="t1", title="x", name="Bash", raw_input=command))
    turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed", raw_output={"out": f"= {TOKEN}"}))
    turn.update(s.ToolCallStart(tool_call_id="t2", title="x", name="Read"))
    turn.update(s.ToolCallProgress(tool_call_id="t2", raw_input={"path": "a.py"}))
    shown = s.Content(content=s.TextContent(text="some text"))
    turn.update(s.ToolCallProgress(tool_call_id="t2", status="completed", content=(shown,)))
    await turn.call("note", {"text": f"pay {TOKEN}"})
    await turn.returns(value=7)


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "true")


@pytest.mark.usefixtures("captured")
async def test_what_was_said_is_in_the_spans_without_secrets(spans: Collected) -> None:
    async with scripted(busy, env={"DEPLOY_TOKEN": TOKEN}) as agent:
        stream = agent.think(int).text(f"Use {TOKEN}.").tool(note).stream()
        await stream.wait()
    root = spans.one("invoke_agent scripted")
    (prompt,) = said(root, INPUT)
    assert prompt["role"] == "user"
    assert prompt["parts"][0]["type"] == "text"
    assert prompt["parts"][0]["content"].startswith("Use [redacted:DEPLOY_TOKEN].")
    assert said(root, OUTPUT) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm. Well."},
                {"type": "text", "content": "The token is [redacted:DEPLOY_TOKEN], I see."},
                {"type": "tool_call", "name": "return_result", "arguments": {"value": 7}},
            ],
            "finish_reason": "end_turn",
        }
    ]
    bash = spans.one("execute_tool Bash")
    assert said(bash, ARGUMENTS) == {"command": "deploy", "api_key": "[redacted]"}
    assert said(bash, RESULT) == {"out": "= [redacted:DEPLOY_TOKEN]"}
    read = spans.one("execute_tool Read")
    assert said(read, ARGUMENTS) == {"path": "a.py"}
    assert said(read, RESULT)[0]["content"]["text"] == "some text"
    own = spans.one("execute_tool note")
    assert said(own, ARGUMENTS) == {"text": "pay [redacted:DEPLOY_TOKEN]"}
    assert "with [redacted:DEPLOY_TOKEN]" in str(said(own, RESULT))
    assert [span.name for span in spans.all if TOKEN in str(span.to_json())] == []


@pytest.mark.parametrize("value", ["SPAN_ONLY", "span_and_event", "EVENT_ONLY", "NO_CONTENT", "false", ""])
async def test_the_switch(spans: Collected, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, value)
    async with scripted(busy) as agent:
        await agent.think(int).text("Go").tool(note).run()
    on = value.lower().startswith("span")
    assert (OUTPUT in attributes(spans.one("invoke_agent scripted"))) is on
    assert (ARGUMENTS in attributes(spans.one("execute_tool note"))) is on


@pytest.mark.usefixtures("captured")
async def test_what_is_long_is_cut_and_no_secret_is_cut_in_two(spans: Collected) -> None:
    secret = "ghp_" + "aB3" * 12
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]

    async def pour(turn: Turn) -> None:
        for _ in range(100):
            turn.say("words " * 500)
        output = {"text": "a " * 8180 + secret + " b" * 1_000_000, "end": 1}
        long = {"deep": deep, "list": list(range(100_000))}
        turn.update(s.ToolCallStart(tool_call_id="t1", title="x", name="Cat", raw_input=long))
        turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed", raw_output=output))

    async with scripted(pour) as agent:
        await agent.think().text("long " * 100_000).run()
    root, tool = spans.one("invoke_agent scripted"), spans.one("execute_tool Cat")
    for span, name in ((root, INPUT), (root, OUTPUT), (tool, RESULT), (tool, ARGUMENTS)):
        assert len(str(attributes(span)[name])) < 20_000
        said(span, name)  # what is cut is JSON all the same
    assert said(root, OUTPUT)[0]["parts"][0]["content"].endswith("…")
    assert "ghp_" not in said(tool, RESULT)["text"]


@pytest.mark.usefixtures("captured")
async def test_a_turn_that_does_not_end_has_said_something(spans: Collected) -> None:
    async def think(turn: Turn) -> None:
        turn.say("Well")
        await anyio.sleep_forever()

    async with scripted(think) as agent:
        stream = agent.think().text("Go").stream()
        await anext(aiter(stream))
    with pytest.raises(ThoughtCancelled):
        await stream.result
    (message,) = said(spans.one("invoke_agent scripted"), OUTPUT)
    assert message["parts"] == [{"type": "text", "content": "Well"}]


@pytest.mark.usefixtures("captured")
async def test_what_is_no_text_is_said_by_its_kind(spans: Collected) -> None:
    async def see(turn: Turn) -> None:
        turn.update(s.AgentMessageChunk(content=s.ImageContent(data="aGk=", mime_type="image/png")))

    async with scripted(see) as agent:
        await agent.think().text("Look: ").resource("https://example.org/plan").run()
    root = spans.one("invoke_agent scripted")
    (prompt,) = said(root, INPUT)
    assert prompt["parts"] == [{"type": "text", "content": "Look: "}, {"type": "resource_link"}]
    assert said(root, OUTPUT)[0]["parts"] == [{"type": "image"}]
