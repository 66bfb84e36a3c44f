"""Turns without a channel: by callbacks, by the run itself, or just the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from echoing import Echo
from kept_channels import Whole

from thinkwell import AgentReported, Message, Question, ThoughtCancelled, ToolStart
from thinkwell.channels import ConversationBusy, MessageRouter, RouterEvent
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from thinkwell.testing import Script

pytestmark = pytest.mark.virtual_time


class Heard:
    """What the callbacks were told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    @property
    def chunks(self) -> list[str]:
        return [text for kind, text in self.told if kind == "chunk"]

    async def chunk(self, chunk: str) -> None:
        self.told.append(("chunk", chunk))

    async def call(self, call: str) -> None:
        self.told.append(("call", call))


async def heard(played: Script) -> tuple[str, Heard]:
    listener = Heard()
    async with ScriptedAgent(played).open() as agent, MessageRouter(agent) as router:
        text = await router.invoke_streamed("Go.", listener.chunk, listener.call)
    return text, listener


# The text


async def test_invoke_returns_all_that_the_agent_has_said() -> None:
    played = script.says("I look.").uses("look").says(" \n").uses("look").says("Fine.")
    async with ScriptedAgent(played).open() as agent, MessageRouter(agent) as router:
        assert await router.invoke("Go.") == "I look.\n\nFine."


async def test_who_is_not_named_has_a_conversation_too() -> None:
    echo = Echo()
    async with echo.open() as agent, MessageRouter(agent) as router:
        assert await router.invoke("one") == "session-1: one"
        assert await router.invoke("two", user_id="ada") == "session-2: two"
        assert await router.invoke("three") == "session-1: three"
        assert router.conversations == ("", "ada")


async def test_turns_without_a_channel_are_not_told_of() -> None:
    told: list[RouterEvent] = []
    async with Echo().open() as agent, MessageRouter(agent) as router:
        router.on("user_message", told.append)
        router.on("agent_response", told.append)
        await router.invoke("one")
    assert told == []


async def test_an_error_of_the_agent_is_raised_and_the_conversation_goes_on() -> None:
    played = script.says("I lo").fails(-32603, "overloaded").says("Fine.")
    async with ScriptedAgent(played).open() as agent, MessageRouter(agent) as router:
        with pytest.raises(AgentReported, match="overloaded"):
            await router.invoke("Go.")
        assert await router.invoke("Go.") == "Fine."


# Callbacks


async def test_callbacks_are_told_of_text_and_calls_while_they_come() -> None:
    text, told = await heard(
        script.says("I ").pauses(1)
        .says("look.").pauses(1)
        .uses("look", kind="read", path="/p/a.py").pauses(1)
        .thinks("Hm.").says("Fine.")
    )  # fmt: skip
    assert told.told == [
        ("chunk", "I "),
        ("chunk", "look."),
        ("call", "read /p/a.py"),
        ("chunk", "\n\nFine."),
    ]
    assert text == "I look.\n\nFine."


async def test_chunks_add_up_to_the_text_and_calls_stand_in_their_places() -> None:
    text, told = await heard(script.says("a").says("b").uses("look").says(" ").says("c").says("\n"))
    assert "".join(told.chunks) == text == "ab\n\n c\n"
    place = [kind for kind, _ in told.told].index("call")
    assert "".join(text for _, text in told.told[:place]) == "ab"


async def test_chunks_add_up_where_an_agent_goes_on_with_an_earlier_message() -> None:
    text, told = await heard(
        script.says("a", message_id="1").pauses(1)
        .says("b", message_id="2").pauses(1)
        .says("c", message_id="1")
    )  # fmt: skip
    assert "".join(told.chunks) == text
    assert sorted(text.replace("\n", "")) == ["a", "b", "c"]


async def test_calls_need_not_be_told() -> None:
    listener = Heard()
    played = ScriptedAgent(script.uses("look").says("Fine."))
    async with played.open() as agent, MessageRouter(agent) as router:
        assert await router.invoke_streamed("Go.", listener.chunk) == "Fine."
    assert listener.told == [("chunk", "Fine.")]


async def test_an_agent_that_says_nothing_tells_nothing() -> None:
    text, told = await heard(script.thinks("Hm."))
    assert (text, told.told) == ("", [])


async def test_a_slow_callback_holds_up_nothing_but_the_callbacks() -> None:
    chunks: list[str] = []

    async def slow(chunk: str) -> None:
        chunks.append(chunk)
        await anyio.sleep(10)

    work = script.says("a").pauses(1)
    for _ in range(8):
        work = work.says("b").pauses(1)
    async with ScriptedAgent(work).open() as agent, MessageRouter(agent) as router:
        began = anyio.current_time()
        assert await router.invoke_streamed("Go.", slow) == "abbbbbbbb"
        assert anyio.current_time() - began == pytest.approx(20, abs=1)
    assert chunks == ["a", "bbbbbbbb"]


@pytest.mark.parametrize("which", ["chunk", "call"])
async def test_a_callback_that_raises_ends_the_run_and_raises_to_the_caller(which: str) -> None:
    listener = Heard()

    async def fails(text: str) -> None:
        raise RuntimeError(f"cannot show {text}")

    played = ScriptedAgent(script.says("I look.").uses("look").hangs().stops().says("Fine."), complete=False)
    async with played.open() as agent, MessageRouter(agent) as router:
        callbacks = (fails, listener.call) if which == "chunk" else (listener.chunk, fails)
        with pytest.raises(RuntimeError, match="cannot show"), anyio.fail_after(60):
            await router.invoke_streamed("Go.", *callbacks)
        assert len(played.sent.cancelled) == 1
        with anyio.fail_after(60):
            assert await router.invoke("Go.") == "Fine."


async def test_an_error_in_mid_stream_is_raised_behind_what_was_said() -> None:
    listener = Heard()
    played = ScriptedAgent(script.says("I lo").fails(-32603, "overloaded"))
    async with played.open() as agent, MessageRouter(agent) as router:
        with pytest.raises(AgentReported, match="overloaded"):
            await router.invoke_streamed("Go.", listener.chunk)
    assert listener.chunks == ["I lo"]


# The run itself


async def test_the_run_is_had_for_the_time_of_a_block() -> None:
    played = ScriptedAgent(script.says("I look.").uses("look").says("Fine."))
    async with (
        played.open() as agent,
        MessageRouter(agent) as router,
        router.streaming("Go.", user_id="ada") as stream,
    ):
        events = [event async for event in stream]
        assert await stream.result == "Fine."
    assert [event.text for event in events if isinstance(event, Message)] == ["I look.", "Fine."]
    assert [event.title for event in events if isinstance(event, ToolStart)] == ["look"]


async def test_the_turn_is_held_for_the_block_and_leaving_it_early_cancels_the_run() -> None:
    played = ScriptedAgent(script.says("I look.").hangs().stops().says("Fine."))
    texts: list[str] = []
    async with played.open() as agent, MessageRouter(agent) as router, anyio.create_task_group() as tasks:

        async def ask() -> None:
            texts.append(await router.invoke("Go on."))

        async with router.streaming("Go.") as stream:
            tasks.start_soon(ask)
            await anyio.sleep(1000)
            assert texts == []
            assert len(played.sent.prompts) == 1
        assert isinstance(stream.result.exception(), ThoughtCancelled)
    assert texts == ["Fine."]


async def test_what_the_block_raises_ends_the_run() -> None:
    played = ScriptedAgent(script.says("I look.").hangs().stops().says("Fine."), complete=False)
    async with played.open() as agent, MessageRouter(agent) as router:

        async def look() -> None:
            async with router.streaming("Go.") as stream:
                async for event in stream:
                    if isinstance(event, Message):
                        raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            await look()
        assert await router.invoke("Go.") == "Fine."


# Busy


async def test_a_busy_conversation_is_an_error_where_waiting_is_off() -> None:
    echo = Echo()
    async with echo.open() as agent, MessageRouter(agent, busy="refuse") as router:
        async with router.streaming("one", user_id="ada") as stream:
            with pytest.raises(ConversationBusy) as raised:
                await router.invoke("two", user_id="ada")
            assert (raised.value.user_id, raised.value.waiting) == ("ada", 0)
            assert await router.invoke("three", user_id="grace") == "session-2: three"
            await stream.result
        assert await router.invoke("four", user_id="ada") == "session-1: four"


async def test_those_that_wait_are_counted() -> None:
    echo = Echo()
    async with (
        echo.open() as agent,
        MessageRouter(agent, max_waiting=1) as router,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(router.handle_user_message, "one", "ada", Whole())
        await echo.until_begun("one")
        tasks.start_soon(router.handle_user_message, "two", "ada", Whole())
        await anyio.sleep(0.5)
        with pytest.raises(ConversationBusy) as raised:
            await router.invoke("three", user_id="ada")
        assert raised.value.waiting == 1
    assert echo.begun == ["one", "two"]


async def test_a_call_that_was_allowed_at_last_is_told_of() -> None:
    asks = ScriptedAgent(script.says("I clean up.").asks("rm -rf build", kind="execute"))
    told: list[str] = []

    async def add(text: str) -> None:
        told.append(text)

    async def allow(_question: Question) -> bool:
        await anyio.sleep(5)
        return True

    async with asks.open(permissions="ask", on_question=allow) as agent, MessageRouter(agent) as router:
        await router.invoke_streamed("Go.", add, add)
    assert told == ["I clean up.", "run rm -rf build"]
