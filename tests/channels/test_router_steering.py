"""Messages that come while another one is answered: an agent that can be steered reads them in its turn."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from kept_channels import Whole
from stream.wire_agent import answer, end_turn, say, wire_agent

from thinkwell.channels import Delivery, MessageRouter, RouterEvent
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import Agent
    from thinkwell.testing import ScriptedTurn

pytestmark = pytest.mark.virtual_time

STEERED = "I read this while I work on what you wrote before."
UNCLEAR = "I may not have read this while I worked. If my answer leaves it out, please write it again."


class Chat(Whole):
    """Takes notices beside its messages."""

    async def notify(self, user_id: str, text: str) -> None:
        await self.call("notify", text)
        self.sent.append((user_id, text))


class Room:
    """A chat with an agent that has begun to answer."""

    def __init__(self, agent: Agent, begun: anyio.Event, **options: Any) -> None:
        self.chat = Chat()
        self.begun = begun
        self.router = MessageRouter(agent, busy="steer", **options)
        self.events: list[RouterEvent] = []
        self.deliveries: list[Delivery | None] = []

    async def hold(self, *written: str, meanwhile: Callable[[], Any] | None = None) -> list[str]:
        """Write messages while the first is answered, and return what the chat shows in the end."""
        async with self.router as router, anyio.create_task_group() as tasks:
            router.on("user_message", self.events.append)
            router.on("agent_response", self.events.append)
            tasks.start_soon(self._write, "Review it")
            await self.begun.wait()
            for text in written:
                called = anyio.Event()
                tasks.start_soon(self._write, text, called)
                await called.wait()  # tasks begin in any order
            if meanwhile is not None:
                await meanwhile()
        return self.chat.texts

    async def _write(self, text: str, called: anyio.Event | None = None) -> None:
        if called is not None:
            called.set()
        self.deliveries.append(await self.router.handle_user_message(text, "ada", self.chat))


def beginning(begun: anyio.Event) -> Any:
    """A script that says something and that it has begun."""

    async def begin(turn: ScriptedTurn) -> None:
        begun.set()

    return script.says("I read it. ").does(begin)


def signed(text: str, user_id: str) -> str:
    return f"user {user_id}: {text}"


async def test_the_agent_reads_it_in_the_turn_that_runs() -> None:
    begun = anyio.Event()
    told = beginning(begun).hears("user ada: login").hears("user ada: tests").says("Both are fine.")
    async with ScriptedAgent(told, steering=True).open() as agent:
        room = Room(agent, begun, middleware=signed)
        shown = await room.hold("login", "tests")
    assert shown == [STEERED, STEERED, "I read it. \n\nBoth are fine."]
    assert [event.text for event in room.events if event.type == "user_message"] == [
        "Review it",
        "login",
        "tests",
    ]
    assert [event.text for event in room.events if event.type == "agent_response"] == shown[2:]
    assert [delivery is None for delivery in room.deliveries] == [True, True, False]


async def test_one_that_cannot_be_steered_answers_it_next() -> None:
    begun, made = anyio.Event(), list[str]()

    def make(text: str, user_id: str) -> str:
        made.append(text)
        return text

    told = beginning(begun).says("Fine.").stops().expects("login").says("The login, too.")
    async with ScriptedAgent(told).open() as agent:
        shown = await Room(agent, begun, middleware=make).hold("login")
    assert shown == ["I read it. Fine.", "The login, too."]
    assert made == ["Review it", "login"]


async def test_the_run_ends_while_the_messages_are_on_their_way() -> None:
    """None is lost, none is used twice, and their order stays."""
    idle = {"outcome": "promptRequired", "reason": "noRunningTurn"}
    begun = anyio.Event()
    async with wire_agent(meta={"steering": {"supported": True}}) as (agent, wire):
        room = Room(agent, begun)

        async def meanwhile() -> None:
            request = await wire.expect("_session/steering")
            await wire.write(say("Done."), end_turn(prompts[0]), answer(request, idle))
            for text in ("login", "tests"):
                prompt = await wire.expect("session/prompt")
                assert prompt["params"]["prompt"] == [{"type": "text", "text": text}]
                await wire.write(say(f"{text} done."), end_turn(prompt))
                if text == "login":
                    break
            prompt = await wire.expect("session/prompt")
            assert prompt["params"]["prompt"] == [{"type": "text", "text": "tests"}]
            await wire.write(say("tests done."), end_turn(prompt))

        prompts: list[Any] = []

        async def begin() -> None:
            prompts.append(await wire.begin())
            begun.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begin)
            await room.hold("login", "tests", meanwhile=meanwhile)
    assert room.chat.texts == ["Done.", "login done.", "tests done."]


async def test_what_the_agent_may_have_read_is_not_sent_again() -> None:
    begun = anyio.Event()
    async with (
        wire_agent(meta={"steering": {"supported": True}}) as (agent, wire),
        anyio.create_task_group() as tasks,
    ):
        room = Room(agent, begun)

        async def begin() -> None:
            prompt = await wire.begin()
            begun.set()
            await wire.expect("_session/steering")
            await wire.write(say("Done, and the login."), end_turn(prompt))

        tasks.start_soon(begin)
        assert await room.hold("login") == ["Done, and the login.", UNCLEAR]
        assert room.deliveries.count(None) == 1


async def test_the_sender_cannot_be_told(caplog: pytest.LogCaptureFixture) -> None:
    begun = anyio.Event()
    told = beginning(begun).hears("login").says("Fine.")
    async with ScriptedAgent(told, steering=True).open() as agent:
        room = Room(agent, begun)
        room.chat.fails["notify"] = 99
        with caplog.at_level(logging.WARNING, "thinkwell"):
            await room.hold("login")
    assert room.chat.texts == ["I read it. \n\nFine."]
    assert "was not notified that the agent reads a message" in caplog.text


async def test_a_middleware_that_fails_answers_in_words() -> None:
    begun = anyio.Event()
    told = beginning(begun).hears("tests").says("Fine.")

    def make(text: str, user_id: str) -> str:
        if text == "login":
            raise RuntimeError(text)
        return text

    async with ScriptedAgent(told, steering=True).open() as agent:
        shown = await Room(agent, begun, middleware=make).hold("login", "tests")
    assert shown == [
        "⚠ Something went wrong, and your message was not answered. Please try again later.",
        STEERED,
        "I read it. \n\nFine.",
    ]
