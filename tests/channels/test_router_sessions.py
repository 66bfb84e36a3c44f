"""When a conversation gets another session: after some time, on demand, and when the agent has died."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from echoing import Echo
from kept_channels import Notified, Refused, Streamed, Whole

from thinkwell import AgentExited, AgentNotFound, SessionNotOpened
from thinkwell.channels import AgentResponded, DeliveryFailed, MessageRouter
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import RpcError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent, Session

pytestmark = pytest.mark.virtual_time

ANEW = "The agent had to be restarted. It does not remember what was said before."


# Idle


async def test_a_session_is_closed_after_some_time_without_a_message_and_the_next_begins_anew() -> None:
    echo = Echo()
    async with echo.open() as agent, MessageRouter(agent, idle_after=600) as router:
        assert await router.invoke("one", user_id="ada") == "session-1: one"
        await anyio.sleep(599)
        assert await router.invoke("two", user_id="ada") == "session-1: two"
        await anyio.sleep(599)
        assert (list(echo.sent.closed), router.conversations) == ([], ("ada",))
        await anyio.sleep(2)
        assert (list(echo.sent.closed), router.conversations) == (["session-1"], ())
        assert await router.invoke("three", user_id="ada") == "session-2: three"


async def test_a_long_turn_is_no_idle_time() -> None:
    echo = Echo(seconds=10_000)
    async with echo.open() as agent, MessageRouter(agent, idle_after=600) as router:
        assert await router.invoke("one") == "session-1: one"
        await anyio.sleep(599)
        assert await router.invoke("two") == "session-1: two"


async def test_sessions_may_be_kept_for_ever() -> None:
    echo = Echo()
    async with echo.open() as agent, MessageRouter(agent, idle_after=None) as router:
        await router.invoke("one")
        await anyio.sleep(80_000)
        assert await router.invoke("two") == "session-1: two"


async def test_a_message_that_comes_while_the_session_is_closed_waits_for_the_next() -> None:
    """The old one is closed by then: it may be the same that the next one goes on with."""
    echo = Echo()
    open_now: list[str] = []
    closing = anyio.Event()

    @asynccontextmanager
    async def slow_to_close(agent: Agent, user_id: str) -> AsyncGenerator[Session]:
        assert open_now == []
        async with agent.session(resume=user_id) as session:
            open_now.append(user_id)
            yield session
            closing.set()
            await anyio.sleep(100)
        open_now.remove(user_id)

    async with echo.open() as agent, MessageRouter(agent, session=slow_to_close, idle_after=10) as router:
        assert await router.invoke("one", user_id="ada") == "ada: one"
        await closing.wait()
        assert await router.invoke("two", user_id="ada") == "ada: two"
    assert echo.asked == ["session/resume", "session/close"] * 2


async def test_a_session_that_cannot_be_closed_is_logged_and_harms_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @asynccontextmanager
    async def fails_to_close(agent: Agent, user_id: str) -> AsyncGenerator[Session]:
        async with agent.session() as session:
            yield session
        raise OSError("the disk is full")

    async with Echo().open() as agent, MessageRouter(agent, session=fails_to_close) as router:
        await router.invoke("one", user_id="ada")
        await router.reset("ada")
        assert await router.invoke("two", user_id="ada") == "session-2: two"
    logged = "The session of 'ada' could not be closed: OSError: the disk is full"
    assert [record.getMessage() for record in caplog.records] == [logged, logged]


# Reset


async def test_a_reset_gives_the_next_message_a_new_session() -> None:
    echo = Echo()
    async with echo.open() as agent, MessageRouter(agent) as router:
        await router.reset("ada")  # there is nothing to reset
        await router.invoke("one", user_id="ada")
        await router.reset("ada")
        await router.reset("ada")
        await anyio.sleep(1)
        assert (list(echo.sent.closed), router.conversations) == (["session-1"], ())
        assert await router.invoke("two", user_id="ada") == "session-2: two"


async def test_what_was_asked_before_a_reset_is_answered_before_it() -> None:
    echo, chat = Echo(), Whole()
    async with echo.open() as agent, MessageRouter(agent) as router, anyio.create_task_group() as tasks:
        for number, text in enumerate(("one", "two")):
            tasks.start_soon(router.handle_user_message, text, "ada", chat)
            await echo.until_begun("one")
            await anyio.sleep(0.1 * number)
        await router.reset("ada")
        await router.reset("ada")
        tasks.start_soon(router.handle_user_message, "three", "ada", chat)
    assert chat.texts == ["session-1: one", "session-1: two", "session-2: three"]


# The agent dies


async def test_an_agent_from_a_function_is_opened_with_the_first_message_and_closed_at_the_end() -> None:
    echo = Echo()
    async with MessageRouter(echo.open) as router:
        await anyio.sleep(10)
        assert echo.opened_times == 0
        async with anyio.create_task_group() as tasks:
            for user_id in ("ada", "grace", "alan"):
                tasks.start_soon(invoke, router, user_id)
        assert (echo.opened_times, echo.closed_times) == (1, 0)
    assert (echo.opened_times, echo.closed_times) == (1, 1)
    assert len(echo.sent.closed) == 3


async def invoke(router: MessageRouter, user_id: str) -> None:
    await router.invoke("one", user_id=user_id)


async def test_who_talks_while_the_agent_dies_is_told_and_the_next_message_opens_it_again() -> None:
    played = ScriptedAgent(script.says("I lo").crashes().says("Fine.").stops().says("Yes?"))
    chat = Whole()
    responses: list[AgentResponded] = []
    async with MessageRouter(played.open) as router:
        router.on("agent_response", responses.append)
        first = await router.handle_user_message("Go.", "ada", chat)
        second = await router.handle_user_message("Are you there?", "ada", chat)
        third = await router.handle_user_message("Well?", "ada", chat)
    assert first is not None
    assert second is not None
    assert third is not None
    assert isinstance(first.error, AgentExited)
    assert chat.texts[0].startswith("I lo\n\n⚠ ")
    assert chat.texts[1:] == [ANEW, "Fine.", "Yes?"]
    assert (second.text, third.text) == ("Fine.", "Yes?")
    assert [(event.text, event.status) for event in responses] == [
        ("I lo", "failed"),
        ("Fine.", "completed"),
        ("Yes?", "completed"),
    ]


async def test_an_agent_that_has_died_meanwhile_is_opened_again_for_the_same_message() -> None:
    echo, chat = Echo(), Notified()
    async with MessageRouter(echo.open) as router:
        await router.handle_user_message("one", "ada", chat)
        await router.handle_user_message("one", "grace", chat)
        await echo.die()
        await anyio.sleep(10)
        delivery = await router.handle_user_message("two", "ada", chat)
        assert delivery is not None
        assert (delivery.status, delivery.text) == ("completed", "session-3: two")
        assert chat.notices == [("ada", ANEW)]
        await anyio.sleep(10)
        assert (echo.opened_times, echo.closed_times) == (
            2,
            1,
        )  # nobody has a session of the old one any more
        await router.handle_user_message("two", "grace", chat)
        await router.handle_user_message("three", "grace", chat)
        assert chat.notices == [("ada", ANEW), ("grace", ANEW)]
        assert chat.ends[-2:] == ["session-4: two", "session-4: three"]


async def test_a_conversation_that_begins_with_a_dead_agent_notices_nothing() -> None:
    echo, chat = Echo(), Whole()
    async with MessageRouter(echo.open) as router:
        await router.invoke("one", user_id="ada")
        await echo.die()
        await router.handle_user_message("one", "grace", chat)
    assert chat.texts == ["session-2: one"]
    assert (echo.opened_times, echo.closed_times) == (2, 2)


async def test_a_dead_agent_is_closed_without_a_new_message() -> None:
    echo, chat = Echo(seconds=10), Whole()
    async with MessageRouter(echo.open) as router:
        await router.handle_user_message("one", "grace", chat)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(router.handle_user_message, "two", "ada", chat)
            await echo.until_begun("two")
            await echo.die()
        await anyio.sleep(1)
        assert (echo.opened_times, echo.closed_times) == (1, 1)


async def test_a_dead_agent_without_sessions_is_closed() -> None:
    echo = Echo()
    async with MessageRouter(echo.open, idle_after=10) as router:
        await router.invoke("one")
        await anyio.sleep(20)
        await echo.die()
        assert await router.invoke("two") == "session-2: two"
        assert (echo.opened_times, echo.closed_times) == (2, 1)


@pytest.mark.parametrize("known", [True, False], ids=["known", "found out"])
async def test_who_gives_up_while_a_lost_conversation_begins_anew_takes_nothing_of_the_next(
    known: bool,
) -> None:
    echo, chat = Echo(), Whole()

    @asynccontextmanager
    async def slow(agent: Agent, user_id: str) -> AsyncGenerator[Session]:
        await anyio.sleep(5)
        async with agent.session() as session:
            yield session

    async with MessageRouter(echo.open, session=slow) as router:
        await router.invoke("one", user_id="ada")
        await router.invoke("one", user_id="grace")
        await echo.die()
        if known:
            await router.invoke("two", user_id="grace")
        with anyio.move_on_after(1):
            await router.handle_user_message("two", "ada", chat)
        await router.handle_user_message("three", "ada", chat)
        assert echo.opened_times == 2
    opened = len(echo.sent.all("session/new"))
    assert chat.texts == [ANEW, f"session-{opened}: three"]
    assert opened == 3 + known


async def test_that_a_conversation_was_lost_is_remembered_only_as_long_as_a_session() -> None:
    echo, chat = Echo(), Whole()
    async with MessageRouter(echo.open, idle_after=600) as router:
        for user_id in ("ada", "grace"):
            await router.invoke("one", user_id=user_id)
        await echo.die()
        await router.invoke("two", user_id="ada")
        assert router.conversations == ("ada", "grace")
        await anyio.sleep(598)
        assert "grace" in router.conversations
        await anyio.sleep(3)
        assert "grace" not in router.conversations
        await router.handle_user_message("two", "grace", chat)
    assert chat.texts == ["session-4: two"]


async def test_who_has_reset_a_lost_conversation_knows_that_it_begins_anew() -> None:
    echo, chat = Echo(), Whole()
    async with MessageRouter(echo.open) as router:
        for user_id in ("ada", "grace"):
            await router.invoke("one", user_id=user_id)
        await echo.die()
        await router.invoke("two", user_id="ada")
        await router.reset("grace")
        await router.handle_user_message("two", "grace", chat)
    assert chat.texts == ["session-4: two"]


async def test_the_answer_comes_though_it_could_not_be_said_that_it_begins_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    played = ScriptedAgent(script.crashes().says("Fine."))
    chat = Whole()
    async with MessageRouter(played.open) as router:
        await router.handle_user_message("Go.", "ada", chat)
        chat.fails["send"] = 4
        delivery = await router.handle_user_message("Go.", "ada", chat)
    assert delivery is not None
    assert delivery.status == "completed"
    assert chat.texts[1:] == ["Fine."]
    assert "A user was not notified that the conversation started over: send" in caplog.text


async def test_a_given_agent_is_not_opened_again() -> None:
    echo, chat = Echo(), Whole()
    async with echo.open() as agent, MessageRouter(agent) as router:
        await router.handle_user_message("one", "ada", chat)
        await echo.die()
        for user_id in ("ada", "ada", "grace"):
            delivery = await router.handle_user_message("two", user_id, chat)
            assert delivery is not None
            assert isinstance(delivery.error, AgentExited)
    assert [text.splitlines()[0] for text in chat.texts[1:]] == [
        "⚠ Agent 'echo' closed the connection before it had finished"
    ] * 3


async def test_an_agent_that_dies_whenever_a_session_is_opened_is_tried_once_for_a_message() -> None:
    echo, chat = Echo(), Whole()

    @asynccontextmanager
    async def dies(agent: Agent, user_id: str) -> AsyncGenerator[Session]:
        await echo.die()
        async with agent.session() as session:
            yield session

    async with MessageRouter(echo.open, session=dies) as router:
        for _ in range(2):
            delivery = await router.handle_user_message("one", "ada", chat)
            assert delivery is not None
            assert isinstance(delivery.error, AgentExited)
    assert (echo.opened_times, echo.closed_times) == (2, 2)


async def test_a_session_whose_last_turn_never_ended_is_replaced_for_the_same_message() -> None:
    """The agent is not ended, because another conversation needs it."""
    echo, chat = Echo(seconds=500), Whole()
    async with echo.open() as agent, MessageRouter(agent) as router, anyio.create_task_group() as tasks:
        tasks.start_soon(router.handle_user_message, "be deaf", "ada", chat)
        await echo.until_begun("be deaf")
        tasks.start_soon(router.invoke, "long")
        await echo.until_begun("long")
        assert router.cancel("ada")
        await anyio.sleep(60)
        assert chat.texts == ["session-1: \n\n⏹ Stopped."]
        echo.seconds = 1
        await router.handle_user_message("two", "ada", chat)
    assert chat.texts[1:] == [ANEW, "session-3: two"]


async def test_an_agent_that_cannot_be_closed_ends_the_block_by_its_error() -> None:
    echo = Echo()

    @asynccontextmanager
    async def fails_to_close() -> AsyncGenerator[Agent]:
        async with echo.open() as agent:
            yield agent
        raise OSError("it does not end")

    with pytest.raises(OSError, match="it does not end"):
        async with MessageRouter(fails_to_close) as router:
            await router.invoke("one")


async def test_what_the_block_raises_says_more_than_that_the_agent_cannot_be_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    echo = Echo()

    @asynccontextmanager
    async def fails_to_close() -> AsyncGenerator[Agent]:
        async with echo.open() as agent:
            yield agent
        raise OSError("it does not end")

    async def use() -> None:
        async with MessageRouter(fails_to_close) as router:
            await router.invoke("one")
            raise RuntimeError("of the block")

    with pytest.raises(RuntimeError, match="of the block"):
        await use()
    assert "An agent could not be closed: OSError: it does not end" in caplog.text


async def test_a_dead_agent_that_cannot_be_closed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    echo = Echo()

    @asynccontextmanager
    async def fails_to_close() -> AsyncGenerator[Agent]:
        async with echo.open() as agent:
            first = echo.opened_times == 1
            yield agent
        if first:
            raise OSError("it does not end")

    async with MessageRouter(fails_to_close) as router:
        await router.invoke("one")
        await echo.die()
        assert await router.invoke("two") == "session-2: two"
        await anyio.sleep(10)
    assert "An agent could not be closed: OSError: it does not end" in caplog.text


# There is no agent, or no session


async def test_an_agent_that_cannot_be_opened_is_told_in_words_and_tried_again() -> None:
    echo, chat = Echo(), Whole()
    tried = 0

    @asynccontextmanager
    async def fails_once() -> AsyncGenerator[Agent]:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise AgentNotFound("claude", "it is not installed")
        async with echo.open() as agent:
            yield agent

    responses: list[AgentResponded] = []
    async with MessageRouter(fails_once) as router:
        router.on("agent_response", responses.append)
        failed = await router.handle_user_message("one", "ada", chat)
        await router.handle_user_message("two", "ada", chat)
    assert failed is not None
    assert isinstance(failed.error, AgentNotFound)
    assert (failed.status, failed.run_text, failed.streamed) == ("failed", "", False)
    assert failed.metrics.attempts == 1
    assert chat.texts == ["⚠ Agent 'claude' was not found: it is not installed", "session-1: two"]
    assert responses[0] == AgentResponded(
        text="", user_id="ada", channel_id="Whole", session_id=None, agent_id="", status="failed"
    )


async def test_a_session_that_does_not_open_is_told_in_words_and_raised_without_a_channel() -> None:
    played = ScriptedAgent(
        script.says("Fine."), fails_at={"session/new": RpcError(-32603, "too many sessions")}, complete=False
    )
    chat = Streamed()
    async with played.open() as agent, MessageRouter(agent) as router:
        delivery = await router.handle_user_message("Go.", "ada", chat)
        with pytest.raises(SessionNotOpened):
            await router.invoke("Go.", user_id="ada")
    assert delivery is not None
    assert isinstance(delivery.error, SessionNotOpened)
    assert [method for method, _ in chat.told] == ["send"]
    assert "too many sessions" in chat.texts[0]


@pytest.mark.parametrize("had_one", [False, True], ids=["never", "no more"])
async def test_the_next_message_has_its_turn_after_a_dead_session_was_reported(had_one: bool) -> None:
    echo, slow, quick = Echo(), Whole(), Whole()
    slow.hangs = {"send"}
    async with echo.open() as agent, MessageRouter(agent) as router, anyio.create_task_group() as tasks:
        if had_one:
            await router.invoke("one", user_id="ada")
        await echo.die()
        tasks.start_soon(router.handle_user_message, "two", "ada", slow)
        await slow.until("send")
        tasks.start_soon(router.handle_user_message, "three", "ada", quick)
        await anyio.sleep(60)
        assert slow.told[0][1].startswith("⚠ Agent 'echo' closed the connection")
        assert quick.told == []
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("where", ["session", "cwd", "middleware"])
async def test_what_is_wrong_with_the_program_is_logged_and_not_shown_to_people(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*arguments: object) -> str:
        raise KeyError("/home/ada/secret")

    echo, chat = Echo(), Whole()
    async with echo.open() as agent, MessageRouter(agent, **{where: fails}) as router:  # type: ignore[arg-type]
        delivery = await router.handle_user_message("one", "ada", chat)
        with pytest.raises(KeyError):
            await router.invoke("one", user_id="ada")
    assert delivery is not None
    assert isinstance(delivery.error, KeyError)
    assert chat.texts == [
        "⚠ Something went wrong, and your message was not answered. Please try again later."
    ]
    assert "A message was not answered: KeyError" in caplog.text


async def test_what_cannot_be_told_is_a_failed_delivery() -> None:
    played = ScriptedAgent(
        script.says("Fine."), fails_at={"session/new": RpcError(-32603, "too many sessions")}, complete=False
    )
    chat = Whole(fails={"send": 100}, error=Refused("blocked"))
    responses: list[AgentResponded] = []
    async with played.open() as agent, MessageRouter(agent) as router:
        router.on("agent_response", responses.append)
        with pytest.raises(DeliveryFailed, match="in 4 attempts: blocked") as raised:
            await router.handle_user_message("Go.", "ada", chat)
    assert "too many sessions" in raised.value.text
    assert raised.value.delivery.metrics.retries == 3
    assert len(raised.value.delivery.channel_errors) == 4
    assert [event.status for event in responses] == ["failed"]
