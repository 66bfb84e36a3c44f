"""A router has one turn at a time in each conversation, and tells who wants to know."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
import msgspec
import pytest
from echoing import Echo
from kept_channels import Streamed, Whole

from thinkwell import open_agent
from thinkwell.channels import (
    AgentResponded,
    Delivery,
    DeliverySettings,
    MessageRouter,
    RouterClosed,
    RouterEvent,
    UserMessageReceived,
)
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path


pytestmark = pytest.mark.virtual_time


class Room(Streamed):
    """A channel of many chats, that knows whether one answer comes in the midst of another."""

    def __init__(self) -> None:
        super().__init__()
        self.open: set[str] = set()
        self.answers: list[tuple[str, str]] = []

    async def on_stream_start(self, user_id: str) -> None:
        assert user_id not in self.open
        self.open.add(user_id)
        await anyio.sleep(0.1)

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        assert user_id in self.open
        await anyio.sleep(0.1)

    async def on_stream_end(self, user_id: str, full_text: str) -> None:
        await anyio.sleep(5)
        self.open.remove(user_id)
        self.answers.append((user_id, full_text))


# One turn at a time


async def test_a_message_is_answered_and_the_delivery_returned() -> None:
    chat = Whole()
    async with Echo().open() as agent, MessageRouter(agent) as router:
        delivery = await router.handle_user_message("Hello", "ada", chat)
    assert delivery is not None
    assert (delivery.status, delivery.text, delivery.user_id) == ("completed", "session-1: Hello", "ada")
    assert chat.sent == [("ada", "session-1: Hello")]


async def test_messages_of_one_user_are_answered_in_their_order_and_never_at_once() -> None:
    echo, room = Echo(), Room()
    async with echo.open() as agent, MessageRouter(agent) as router, anyio.create_task_group() as tasks:

        async def write(text: str, called: anyio.Event) -> None:
            called.set()
            await router.handle_user_message(text, "ada", room)

        for number in range(6):
            called = anyio.Event()
            tasks.start_soon(write, f"{number}", called)
            await called.wait()
    assert echo.most == 1
    assert room.answers == [("ada", f"session-1: {number}") for number in range(6)]


async def test_conversations_go_on_side_by_side() -> None:
    echo, room = Echo(), Room()
    began = anyio.current_time()
    async with echo.open() as agent, MessageRouter(agent) as router, anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(router.handle_user_message, "a", f"user {number}", room)
        await echo.until_begun("a", times=20)
        for number in range(20):
            tasks.start_soon(router.handle_user_message, "b", f"user {number}", room)
    assert (echo.most, echo.most_at_all, len(echo.sent.sessions)) == (1, 20, 20)
    assert anyio.current_time() - began < 20
    for number in range(20):
        mine = [text for user_id, text in room.answers if user_id == f"user {number}"]
        (session,) = {text.partition(":")[0] for text in mine}
        assert mine == [f"{session}: a", f"{session}: b"]


async def test_the_turn_lasts_until_all_of_the_answer_is_delivered() -> None:
    echo, room = Echo(), Room()
    async with echo.open() as agent, MessageRouter(agent) as router, anyio.create_task_group() as tasks:
        tasks.start_soon(router.handle_user_message, "one", "ada", room)
        await echo.until_begun("one")
        assert await router.invoke("two", user_id="ada") == "session-1: two"
        assert room.answers == [("ada", "session-1: one")]


# Busy


async def test_a_message_to_a_busy_conversation_is_refused_politely_where_that_is_said() -> None:
    echo, chat = Echo(), Whole()
    async with echo.open() as agent, MessageRouter(agent, busy="refuse") as router:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(router.handle_user_message, "one", "ada", chat)
            await echo.until_begun("one")
            assert await router.handle_user_message("two", "ada", chat) is None
            assert chat.texts == [
                "I am still busy with your last message. Please write again when I have answered."
            ]
            await router.handle_user_message("three", "grace", chat)  # another conversation is not busy
        await router.handle_user_message("four", "ada", chat)
        await router.handle_user_message("five", "ada", chat)
    assert echo.begun == ["one", "three", "four", "five"]


async def test_no_more_than_so_many_messages_wait() -> None:
    echo, chat = Echo(), Whole()
    taken: list[Delivery | None] = []

    async with echo.open() as agent, MessageRouter(agent, max_waiting=2) as router:

        async def write(text: str) -> None:
            taken.append(await router.handle_user_message(text, "ada", chat))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(write, f"{number}")
    answered = [delivery for delivery in taken if delivery is not None]
    assert len(answered) == 3
    assert len([text for text in chat.texts if text.startswith("I am still busy")]) == 2
    assert len(echo.begun) == 3


# What is told


async def test_events_tell_of_the_message_and_of_the_whole_answer_however_it_was_delivered() -> None:
    events: list[RouterEvent] = []
    looks = script.says("One ").says("file.").uses("look").says("Fine.").stops()
    whole, streamed = Whole(), Streamed()
    played = ScriptedAgent(looks.says("One ").says("file.").uses("look").says("Fine."))
    async with played.open() as agent, MessageRouter(agent) as router:
        router.on("user_message", events.append)
        router.on("agent_response", events.append)
        await router.handle_user_message("Look!", "ada", whole)
        await router.handle_user_message("Look!", "ada", streamed, channel_id="chat")
    text = "One file.\n\nFine."
    assert whole.texts == streamed.ends == [text]
    assert events == [
        event
        for channel_id in ("Whole", "chat")
        for event in (
            UserMessageReceived(text="Look!", user_id="ada", channel_id=channel_id),
            AgentResponded(
                text=text,
                user_id="ada",
                channel_id=channel_id,
                session_id="session-1",
                agent_id="scripted",
                status="completed",
            ),
        )
    ]


async def test_handlers_may_be_async_are_called_in_order_and_can_be_taken_back() -> None:
    told: list[str] = []

    async def slow(event: RouterEvent) -> None:
        await anyio.sleep(1)
        told.append(f"slow {event.type}")

    def quick(event: RouterEvent) -> None:
        told.append(f"quick {event.type}")

    async with Echo().open() as agent, MessageRouter(agent) as router:
        router.on("user_message", slow)
        forget = router.on("user_message", quick)
        router.on("user_message", quick)
        router.on("agent_response", slow)
        await router.handle_user_message("one", "ada", Whole())
        assert told == ["slow user_message", *["quick user_message"] * 2, "slow agent_response"]
        told.clear()
        forget()
        forget()
        await router.handle_user_message("two", "ada", Whole())
        assert told == ["slow user_message", "quick user_message", "slow agent_response"]


async def test_a_handler_that_fails_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    chat = Whole()
    told: list[RouterEvent] = []

    def fails(event: RouterEvent) -> None:
        raise RuntimeError("the disk is full")

    async def fails_later(event: RouterEvent) -> None:
        await anyio.sleep(1)
        raise RuntimeError("the network is gone")

    async with Echo().open() as agent, MessageRouter(agent) as router:
        router.on("user_message", fails)
        router.on("user_message", told.append)
        router.on("agent_response", fails_later)
        router.on("agent_response", told.append)
        delivery = await router.handle_user_message("Hello", "ada", chat)
    assert delivery is not None
    assert delivery.status == "completed"
    assert [event.type for event in told] == ["user_message", "agent_response"]
    failed = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in failed] == [
        "A handler of user_message failed",
        "A handler of agent_response failed",
    ]
    assert "the disk is full" in str(failed[0].exc_info)


async def test_a_handler_of_answers_may_have_a_turn_in_the_same_conversation() -> None:
    summaries: list[str] = []
    async with Echo().open() as agent, MessageRouter(agent) as router:

        async def summarize(event: AgentResponded) -> None:
            summaries.append(await router.invoke("Sum up.", user_id=event.user_id))

        router.on("agent_response", summarize)
        with anyio.fail_after(60):
            await router.handle_user_message("Hello", "ada", Whole())
    assert summaries == ["session-1: Sum up."]


async def test_there_are_no_other_events() -> None:
    async with Echo().open() as agent:
        router = MessageRouter(agent)
        with pytest.raises(
            ValueError, match=r"on\('answer'\): choose \"user_message\" or \"agent_response\""
        ):
            router.on("answer", print)  # type: ignore[call-overload]


def test_events_survive_json_by_their_type() -> None:
    message = UserMessageReceived(text="Hello", user_id="ada", channel_id="Whole")
    response = AgentResponded(
        text="Hi", user_id="ada", channel_id="Whole", session_id=None, agent_id="", status="failed"
    )
    decoder = msgspec.json.Decoder(UserMessageReceived | AgentResponded)
    for event in (message, response):
        assert decoder.decode(msgspec.json.encode(event)) == event
    assert msgspec.to_builtins(message)["type"] == "user_message"
    with pytest.raises(AttributeError):
        message.text = "other"  # type: ignore[misc]


# What the agent is told


@pytest.mark.parametrize("waits", [False, True], ids=["sync", "async"])
async def test_a_middleware_makes_the_prompt_when_the_turn_has_come(waits: bool) -> None:
    echo, chat = Echo(), Whole()
    asked: list[tuple[str, str, int]] = []
    events: list[RouterEvent] = []

    def remembers(text: str, user_id: str) -> str | Awaitable[str]:
        asked.append((text, user_id, len(echo.done)))

        async def later() -> str:
            await anyio.sleep(1)
            return text.upper()

        return later() if waits else text.upper()

    async with (
        echo.open() as agent,
        MessageRouter(agent, middleware=remembers) as router,
        anyio.create_task_group() as tasks,
    ):
        router.on("user_message", events.append)
        tasks.start_soon(router.handle_user_message, "one", "ada", chat)
        await echo.until_begun("ONE")
        await router.handle_user_message("two", "ada", chat)
        assert await router.invoke("three") == "session-2: THREE"
    assert chat.texts == ["session-1: ONE", "session-1: TWO"]
    assert asked == [("one", "ada", 0), ("two", "ada", 1), ("three", "", 2)]
    assert [event.text for event in events] == ["one", "two"]


async def test_what_is_no_text_or_blank_never_gets_to_the_agent() -> None:
    echo, chat = Echo(), Whole()
    async with echo.open() as agent, MessageRouter(agent) as router:
        with pytest.raises(ValueError, match="the message is blank"):
            await router.handle_user_message(" \n", "ada", chat)
        await router.handle_user_message("half \ud800 a character", "ada", chat)
    assert echo.begun == ["half ? a character"]
    assert router.conversations == ()


# How it is made


async def test_the_folder_may_depend_on_the_user(tmp_path: Path) -> None:
    for name in ("ada", "grace"):
        (tmp_path / name).mkdir()
    echo = Echo()
    async with echo.open() as agent:
        async with MessageRouter(agent, cwd=lambda user_id: tmp_path / user_id) as router:
            await router.invoke("one", user_id="ada")
            await router.invoke("one", user_id="grace")
        async with MessageRouter(agent, cwd=tmp_path) as router:
            await router.invoke("one", user_id="ada")
    assert [session.cwd for session in echo.sent.sessions] == [
        str(tmp_path / "ada"),
        str(tmp_path / "grace"),
        str(tmp_path),
    ]


async def test_the_session_may_be_opened_by_the_caller() -> None:
    echo = Echo()
    async with (
        echo.open() as agent,
        MessageRouter(agent, session=lambda agent, user_id: agent.session(resume=user_id)) as router,
    ):
        assert await router.invoke("one", user_id="old") == "old: one"
    assert echo.asked == ["session/resume", "session/close"]


async def test_settings_say_how_answers_are_delivered() -> None:
    chat = Streamed()
    async with (
        Echo().open() as agent,
        MessageRouter(agent, settings=DeliverySettings(streaming=False)) as router,
    ):
        await router.handle_user_message("Hello", "ada", chat)
    assert chat.told == [("send", "session-1: Hello")]


async def test_runs_have_the_limits_that_are_set() -> None:
    chat = Whole()
    async with Echo(seconds=100).open() as agent, MessageRouter(agent, timeout=5) as router:
        delivery = await router.handle_user_message("Hello", "ada", chat)
    assert delivery is not None
    assert delivery.status == "failed"
    assert delivery.run_text == "session-1: "
    async with Echo(seconds=100).open() as agent, MessageRouter(agent, idle_timeout=5) as router:
        delivery = await router.handle_user_message("Hello", "ada", chat)
    assert delivery is not None
    assert delivery.status == "failed"


async def test_a_router_shows_how_it_stands() -> None:
    async with Echo().open() as agent:
        router = MessageRouter(agent)
        assert repr(router) == "<MessageRouter closed>"
        async with router:
            assert repr(router) == "<MessageRouter 0 conversations>"
            await router.invoke("one", user_id="ada")
            assert repr(router) == "<MessageRouter 1 conversations>"
            assert router.conversations == ("ada",)
        assert repr(router) == "<MessageRouter closed>"


async def test_a_router_is_used_in_its_block_and_once() -> None:
    async with Echo().open() as agent:
        router = MessageRouter(agent)
        with pytest.raises(RouterClosed):
            await router.invoke("one")
        with pytest.raises(RouterClosed):
            await router.reset("ada")
        assert not router.cancel("ada")
        async with router:
            with pytest.raises(RuntimeError, match="has already been entered"):
                await router.__aenter__()
        with pytest.raises(RouterClosed):
            await router.handle_user_message("one", "ada", Whole())
        with pytest.raises(RuntimeError, match="a router can be used only once"):
            await router.__aenter__()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"idle_after": 0}, ValueError, "idle_after=0 must be positive"),
        ({"timeout": "5"}, TypeError, "timeout='5' must be a number of seconds"),
        ({"idle_timeout": -1}, ValueError, "idle_timeout=-1 must be positive"),
        ({"max_waiting": -1}, ValueError, "max_waiting=-1 must not be negative"),
        ({"busy": "drop"}, ValueError, r"busy='drop'\): choose \"queue\", \"steer\" or \"refuse\""),
        ({"cwd": ".", "session": open_agent}, ValueError, "give only one"),
    ],
)
async def test_what_a_router_is_made_with_is_checked(
    options: dict[str, object], error: type[Exception], said: str
) -> None:
    async with Echo().open() as agent:
        with pytest.raises(error, match=said):
            MessageRouter(agent, **options)  # type: ignore[arg-type]


def test_what_is_no_agent_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a function that opens one: MessageRouter\(lambda: open_agent"):
        MessageRouter(open_agent("builtin"))  # type: ignore[arg-type]
