"""What happens when an agent calls a tool: what it is told, where the function runs, what ends it."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable  # noqa: TC003 - read at run time
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import anyio
import msgspec
import pytest
from pydantic import BaseModel
from scripted import Played, Turn, scripted

from thinkwell import ThoughtCancelled, ToolContext, ToolError, tool
from thinkwell.events import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from thinkwell.tools import ToolResult


class Answer(BaseModel):
    value: int


@dataclass
class Made:
    day: date


class Packed(msgspec.Struct):
    x: int


def text(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    said: str = block["text"]
    return said


async def told(
    *functions: Callable[..., object], name: str | None = None, **arguments: Any
) -> dict[str, Any]:
    """Offer functions, let the agent call the first one, and return what it is told."""
    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        answers.append(await turn.call(name or functions[0].__name__, arguments))
        turn.say("Done")

    async with scripted(script) as agent:
        builder = agent.think().text("Go")
        for function in functions:
            builder = builder.tool(function, name=name)
        with anyio.fail_after(5):
            assert await builder.run() == "Done"
    return answers[0]


RETURNED: list[tuple[object, dict[str, Any], dict[str, Any] | None]] = [
    ("text", {"type": "text", "text": "text"}, None),
    ("", {"type": "text", "text": ""}, None),
    (None, {"type": "text", "text": "null"}, None),
    (3, {"type": "text", "text": "3"}, None),
    ([1, "ä"], {"type": "text", "text": '[1, "ä"]'}, None),
    ([], {"type": "text", "text": "[]"}, None),
    ({"a": Decimal("1.5")}, {"type": "text", "text": '{"a": "1.5"}'}, {"a": "1.5"}),
    (Answer(value=1), {"type": "text", "text": '{"value": 1}'}, {"value": 1}),
    (Made(date(2026, 1, 2)), {"type": "text", "text": '{"day": "2026-01-02"}'}, {"day": "2026-01-02"}),
    (Packed(4), {"type": "text", "text": '{"x": 4}'}, {"x": 4}),
    (TextContent(text="t"), {"type": "text", "text": "t"}, None),
    (
        ImageContent(data="AA==", mime_type="image/png"),
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        None,
    ),
    (
        AudioContent(data="AA==", mime_type="audio/wav"),
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        None,
    ),
    (
        ResourceLink(uri="file:///a", name="a", mime_type="text/plain"),
        {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
        None,
    ),
    (
        EmbeddedResource(uri="file:///a", text="x"),
        {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
        None,
    ),
    (
        EmbeddedResource(uri="file:///a", blob="AA==", mime_type="image/png"),
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "AA==", "mimeType": "image/png"}},
        None,
    ),
]


async def test_what_a_tool_returns() -> None:
    async def give(number: int) -> object:
        return RETURNED[number][0]

    async def script(turn: Turn) -> None:
        for number, (value, content, structured) in enumerate(RETURNED):
            result = await turn.call("give", {"number": number})
            said = (result["isError"], result["content"], result.get("structuredContent"))
            assert said == (False, [content], structured), value

    async with scripted(script) as agent:
        await agent.think().text("Go").tool(give).run()


async def test_several_blocks_and_a_whole_result() -> None:
    def blocks() -> object:
        return (TextContent(text="a"), ImageContent(data="AA==", mime_type="image/png"))

    def whole() -> ToolResult:
        return ToolResult(content=({"type": "text", "text": "no"},), is_error=True)

    assert [block["type"] for block in (await told(blocks))["content"]] == ["text", "image"]
    assert (await told(whole))["isError"] is True


async def test_what_has_no_json_form_is_an_error() -> None:
    def give() -> object:
        return {"lock": threading.Lock()}

    result = await told(give)
    assert result["isError"] is True
    assert text(result).startswith("The tool returned dict, which has no JSON form")


RAISED: list[tuple[Exception, str]] = [
    (ToolError("Ask for a city"), "Ask for a city"),
    (ToolError(), "The tool failed"),
    (KeyError("rome"), "KeyError: 'rome'"),
    (ZeroDivisionError(), "ZeroDivisionError: "),
]


async def test_what_a_tool_raises_is_told_and_ends_nothing() -> None:
    async def fail(number: int) -> None:
        raise RAISED[number][0]

    def fail_in_thread(number: int) -> None:
        raise RAISED[number][0]

    async def script(turn: Turn) -> None:
        for number, (_, message) in enumerate(RAISED):
            for name in ("fail", "fail_in_thread"):
                result = await turn.call(name, {"number": number})
                assert (result["isError"], text(result)) == (True, message), name

    async with scripted(script) as agent:
        await agent.think().text("Go").tool(fail).tool(fail_in_thread).run()


@pytest.mark.parametrize("sync", [True, False])
async def test_a_tool_that_ends_the_program_ends_only_its_call(sync: bool) -> None:
    def parse() -> None:
        argparse.ArgumentParser("prog").parse_args(["--what"])

    async def leave() -> None:
        sys.exit("enough")

    result = await told(parse if sync else leave)
    assert result["isError"] is True
    assert text(result) == f"SystemExit: {2 if sync else 'enough'}"


async def test_an_exit_in_a_task_group_of_a_tool_ends_only_its_call() -> None:
    async def leave() -> None:
        async with anyio.create_task_group():
            sys.exit("enough")

    result = await told(leave)
    assert result["isError"] is True
    assert text(result).startswith("BaseExceptionGroup: ")


async def test_what_ends_the_program_on_purpose_is_let_through() -> None:
    async def group() -> None:
        raise BaseExceptionGroup("two", [KeyboardInterrupt(), ValueError()])

    async def alone() -> None:
        raise KeyboardInterrupt

    def in_thread() -> None:
        raise KeyboardInterrupt

    for function in (group, alone, in_thread):
        with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as caught:
            await tool(function).call({}, ToolContext("s", lambda done, total, message: None))
        assert not isinstance(caught.value, Exception)


async def test_a_sync_tool_runs_in_a_worker_thread() -> None:
    def where() -> str:
        return str(threading.get_ident())

    assert text(await told(where)) != str(threading.get_ident())


async def test_an_async_tool_runs_in_the_event_loop() -> None:
    class Where:
        async def __call__(self) -> str:
            return str(threading.get_ident())

    assert text(await told(Where(), name="where")) == str(threading.get_ident())


async def test_a_sync_function_may_return_an_awaitable() -> None:
    async def inner() -> str:
        return "inner"

    def outer() -> object:
        return inner()

    assert text(await told(outer)) == "inner"


async def test_sync_tools_run_at_the_same_time() -> None:
    barrier = threading.Barrier(3, timeout=5)

    def meet() -> str:
        barrier.wait()
        return "met"

    async def script(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(turn.call, "meet", dict[str, object]())
        turn.say("Done")

    async with scripted(script) as agent:
        assert await agent.think().text("Go").tool(meet).run() == "Done"


@pytest.mark.parametrize("sync", [True, False])
async def test_progress_is_told_from_the_event_loop_and_from_threads(sync: bool) -> None:
    async def work(context: ToolContext) -> str:
        context.progress(1, 2, "half")
        return context.session_id

    def work_in_thread(context: ToolContext) -> str:
        context.progress(1, 2, "half")
        return context.session_id

    async def script(turn: Turn) -> None:
        params: dict[str, Any] = {"name": "work", "arguments": {}, "_meta": {"progressToken": "t"}}
        result = await turn.mcp("tools/call", params)
        assert text(result) == turn.session_id
        turn.say("Done")

    handler = Played([script])
    async with scripted(agent=handler) as agent:
        await agent.think().text("Go").tool(work_in_thread if sync else work, name="work").run()
    notes = [message.params for message in handler.sent.all("mcp/message")]
    (note,) = (note["params"] for note in notes if note["method"] == "notifications/progress")
    assert note == {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}


# Cancelling


async def test_cancelling_the_run_cancels_its_tools() -> None:
    started, cancelled = anyio.Event(), anyio.Event()
    contexts: list[ToolContext] = []

    async def forever(context: ToolContext) -> None:
        contexts.append(context)
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async def script(turn: Turn) -> None:
        await turn.call("forever", {})

    with anyio.fail_after(5):
        async with scripted(script) as agent:
            stream = agent.think().text("Go").tool(forever).stream()
            await started.wait()
            assert not contexts[0].cancelled
            contexts[0].raise_if_cancelled()
            stream.cancel()
            await cancelled.wait()
            with pytest.raises(ThoughtCancelled):
                await stream.result
            await stream.wait()
    assert contexts[0].cancelled


async def test_a_cancelled_tool_is_an_error_for_an_agent_that_goes_on() -> None:
    started = anyio.Event()
    answers: list[dict[str, Any]] = []

    async def forever() -> None:
        started.set()
        await anyio.sleep_forever()

    async def script(turn: Turn) -> None:
        with anyio.CancelScope(shield=True):
            answers.append(await turn.call("forever", {}))

    with anyio.fail_after(5):
        async with scripted(script) as agent:
            stream = agent.think().text("Go").tool(forever).stream()
            await started.wait()
            stream.cancel()
            await stream.wait()
    assert answers[0]["isError"] is True
    assert "cancelled" in text(answers[0])


async def test_a_sync_tool_is_left_behind_and_can_find_out() -> None:
    started, over = threading.Event(), threading.Event()
    outcomes: list[str] = []

    def long(context: ToolContext) -> None:
        started.set()
        try:
            while True:
                context.raise_if_cancelled()
                threading.Event().wait(0.01)
        except ToolError as exc:
            outcomes.append(str(exc))
            context.progress(1)  # nobody hears it, and nothing breaks
        finally:
            over.set()

    async def script(turn: Turn) -> None:
        await turn.call("long", {})

    with anyio.fail_after(5):
        async with scripted(script) as agent:
            stream = agent.think().text("Go").tool(long).stream()
            await anyio.to_thread.run_sync(started.wait)
            stream.cancel()
            await stream.wait()
        await anyio.to_thread.run_sync(over.wait)
    assert outcomes == ["The call was cancelled"]


# In the prompt and the list


def hidden(x: int) -> int:
    """Do it in secret."""
    return x


def shown(x: int) -> int:
    """Do it openly.

    And more.
    """
    return x


async def test_the_prompt_mentions_what_it_should() -> None:
    async with scripted() as agent:
        explained = agent.think(Answer).text("Go").tool(hidden, mention=False).tool(shown).explain()
        quiet = agent.think(Answer).text("Go").tool(tool(hidden, mention=False)).explain()
    (block,) = explained.prompt
    assert "- shown: Do it openly.\n" in block["text"]
    assert "hidden" not in block["text"]
    assert [one["name"] for one in explained.tools] == ["hidden", "shown", "return_result"]
    assert "tools" not in quiet.prompt[0]["text"]


@pytest.mark.virtual_time
async def test_what_explain_says_is_what_is_sent() -> None:
    listed: list[list[dict[str, Any]]] = []

    async def script(turn: Turn) -> None:
        listed.append(await turn.list_tools())
        await turn.returns(result=1, value=1)

    handler = Played([script], relists=True)
    async with scripted(agent=handler) as agent, agent.session() as session:
        for starter in (agent, session):
            for output in (Answer, None):
                builder = starter.think(output).text("Go").code("x = 1").tool(shown)
                explained = builder.explain()
                stream = builder.stream(reminders=0)
                await stream.wait()
                stream.result.exception()
                sent = handler.sent.prompts[-1]
                (server,) = handler.sent.sessions[-1 if starter is agent else 0].mcp_servers
                told = {**explained.prompt[0]}
                told["text"] = told["text"].replace("thinkwell…", server["name"])  # known from the start
                assert (told,) == sent.blocks
                assert list(explained.tools) == listed[-1]
                assert "shown: " in str(explained)
        assert str(agent.think().text("Hi").explain()) == "Hi\n--- tools ---\n(none)"


async def test_two_tools_of_one_name_are_refused_with_both_lines() -> None:
    async with scripted() as agent:
        builder = agent.think().tool(shown)
        with pytest.raises(ValueError, match="another tool is already called 'shown'") as caught:
            builder.tool(hidden, name="shown")
        for function in (shown, hidden):
            assert f"{__file__}:{function.__code__.co_firstlineno}" in str(caught.value)
        assert "name=" in str(caught.value)


async def test_the_name_of_the_result_tool_is_reserved() -> None:
    async with scripted() as agent:
        with pytest.raises(ValueError, match="return_result is the tool for the result") as caught:
            agent.think().tool(shown, name="return_result")
        assert f"{__file__}:{shown.__code__.co_firstlineno}" in str(caught.value)


async def test_a_builder_is_never_changed() -> None:
    async with scripted() as agent:
        first = agent.think(Answer).text("One")
        second = first.text("Two").tool(shown)
        assert [one["name"] for one in first.explain().tools] == ["return_result"]
        assert [one["name"] for one in second.explain().tools] == ["shown", "return_result"]
        assert "Two" not in first.explain().prompt[0]["text"]
