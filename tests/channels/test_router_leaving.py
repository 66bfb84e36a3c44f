"""Whoever is cancelled, and whatever fails, the next has a turn; and leaving the router ends all of them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import anyio
import pytest
from echoing import Echo
from kept_channels import Notified, Refused, Streamed, Whole
from limits.seeds import noted, seeds

from thinkwell import ThoughtCancelled
from thinkwell.channels import (
    AgentResponded,
    Delivery,
    DeliveryFailed,
    DeliverySettings,
    MessageRouter,
    RouterClosed,
    RouterEvent,
)
from thinkwell.testing import virtual_backend

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskGroup

    from thinkwell import Agent, Session
    from thinkwell.channels import Channel

pytestmark = pytest.mark.virtual_time

Stage = Literal["waiting", "agent", "session", "handler", "middleware", "running", "ending", "handler after"]
"""Where somebody stands who has written a message."""

STAGES: tuple[Stage, ...] = get_args(Stage)
BEFORE: tuple[Stage, ...] = ("agent", "session", "handler", "middleware")
"""Stages in which it is his turn, or about to be, and there is no run."""

FEW = 3
MANY = seeds("THINKWELL_ROUTERS", 60)


class Staged:
    """A router in which a message stands still at a stage, for a hundred seconds, the first time."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.reached = anyio.Event()
        self.echo = Echo(seconds=100 if stage in ("waiting", "running") else 1)
        self.chat = Whole()
        self.events: list[RouterEvent] = []
        self.outcome: Delivery | BaseException | None = None
        self.scope = anyio.CancelScope()
        if stage == "ending":
            self.chat.hangs = {"send"}

    async def pause(self, stage: Stage) -> None:
        if stage == self.stage and not self.reached.is_set():
            self.reached.set()
            await anyio.sleep(100)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Agent]:
        await self.pause("agent")
        async with self.echo.open() as agent:
            yield agent

    @asynccontextmanager
    async def session(self, agent: Agent, user_id: str) -> AsyncGenerator[Session]:
        await self.pause("session")
        async with agent.session() as session:
            yield session

    async def middleware(self, text: str, user_id: str) -> str:
        await self.pause("middleware")
        return text

    async def on_message(self, event: RouterEvent) -> None:
        self.events.append(event)
        await self.pause("handler" if event.type == "user_message" else "handler after")

    @asynccontextmanager
    async def router(self) -> AsyncGenerator[MessageRouter]:
        async with MessageRouter(self.open, session=self.session, middleware=self.middleware) as router:
            router.on("user_message", self.on_message)
            router.on("agent_response", self.on_message)
            yield router

    async def write(self, router: MessageRouter) -> None:
        """Write the message that stands still."""
        try:
            with self.scope:
                self.outcome = await router.handle_user_message("first", "ada", self.chat)
        except (RouterClosed, DeliveryFailed) as exc:
            self.outcome = exc

    async def until_reached(self, router: MessageRouter) -> None:
        match self.stage:
            case "waiting":
                await anyio.sleep(1)
            case "running":
                await self.echo.until_begun("first")
                await anyio.sleep(1)
            case "ending":
                await self.chat.until("send")
            case _:
                await self.reached.wait()


# A caller is cancelled


@pytest.mark.parametrize("stage", STAGES)
async def test_a_cancelled_message_passes_the_turn_on(stage: Stage) -> None:
    staged = Staged(stage)
    async with staged.router() as router, anyio.create_task_group() as tasks:
        if stage == "waiting":
            tasks.start_soon(partial(router.invoke, "before", user_id="ada"))
            await staged.echo.until_begun("before")
        tasks.start_soon(staged.write, router)
        await staged.until_reached(router)
        staged.scope.cancel()
        staged.chat.hangs.clear()
        began = anyio.current_time()
        assert await router.invoke("next", user_id="ada") == "session-1: next"
        assert anyio.current_time() - began < 210
    assert staged.outcome is None
    assert ("first" in staged.echo.begun) == (stage in ("running", "ending", "handler after"))
    assert ("first" in staged.echo.done) == (stage in ("ending", "handler after"))
    assert staged.echo.most == 1


async def test_a_message_that_gives_up_waiting_makes_room() -> None:
    echo = Echo(seconds=10)
    async with MessageRouter(echo.open, max_waiting=1) as router, anyio.create_task_group() as tasks:
        tasks.start_soon(router.invoke, "one")
        await echo.until_begun("one")
        with anyio.move_on_after(1):
            await router.invoke("two")
        assert await router.invoke("three") == "session-1: three"
    assert echo.begun == ["one", "three"]


# Somebody stops it


@pytest.mark.parametrize("stage", BEFORE)
async def test_what_is_stopped_before_there_is_a_run_is_told_so(stage: Stage) -> None:
    staged = Staged(stage)
    async with staged.router() as router, anyio.create_task_group() as tasks:
        tasks.start_soon(staged.write, router)
        await staged.until_reached(router)
        assert router.cancel("ada")
        assert await router.invoke("next", user_id="ada") == "session-1: next"
    assert isinstance(staged.outcome, Delivery)
    assert (staged.outcome.status, staged.outcome.text) == ("cancelled", "⏹ Stopped.")
    assert type(staged.outcome.error) is ThoughtCancelled
    assert staged.chat.texts == ["⏹ Stopped."]
    assert [event.type for event in staged.events] == ["user_message", "agent_response"]
    assert staged.echo.begun == ["next"]


async def test_a_run_that_is_stopped_is_delivered_as_far_as_it_came_and_those_that_wait_go_on() -> None:
    staged = Staged("running")
    async with staged.router() as router, anyio.create_task_group() as tasks:
        tasks.start_soon(staged.write, router)
        await staged.until_reached(router)
        tasks.start_soon(router.handle_user_message, "second", "ada", staged.chat)
        await anyio.sleep(1)
        assert router.cancel("ada")
    assert staged.chat.texts == ["session-1: \n\n⏹ Stopped.", "session-1: second"]
    assert isinstance(staged.outcome, Delivery)
    assert staged.outcome.status == "cancelled"


async def test_what_has_ended_cannot_be_stopped() -> None:
    staged = Staged("ending")
    async with staged.router() as router, anyio.create_task_group() as tasks:
        assert not router.cancel("ada")
        tasks.start_soon(staged.write, router)
        await staged.until_reached(router)
        assert not router.cancel("ada")
        tasks.cancel_scope.cancel()
    assert not router.cancel("ada")


async def test_an_idle_conversation_has_nothing_to_cancel() -> None:
    async with MessageRouter(Echo().open) as router:
        await router.invoke("one", user_id="ada")
        assert not router.cancel("ada")


async def test_without_a_channel_a_stop_is_raised() -> None:
    staged = Staged("session")
    async with staged.router() as router, anyio.create_task_group() as tasks:

        async def stop() -> None:
            await staged.reached.wait()
            assert router.cancel("ada")
            await staged.echo.until_begun("two")
            assert router.cancel("ada")

        tasks.start_soon(stop)
        with pytest.raises(ThoughtCancelled):
            await router.invoke("one", user_id="ada")
        with pytest.raises(ThoughtCancelled):
            await router.invoke("two", user_id="ada")
        assert await router.invoke("three", user_id="ada") == "session-1: three"


# The router is left


@pytest.mark.parametrize("stage", STAGES)
async def test_leaving_the_router_ends_whatever_goes_on(stage: Stage) -> None:
    staged = Staged(stage)
    async with anyio.create_task_group() as tasks:
        async with staged.router() as router:
            if stage == "waiting":
                tasks.start_soon(router.handle_user_message, "before", "ada", Whole())
                await staged.echo.until_begun("before")
            tasks.start_soon(staged.write, router)
            await staged.until_reached(router)
            began = anyio.current_time()
        assert anyio.current_time() - began < 10
        assert staged.echo.opened_times == staged.echo.closed_times <= 1
        assert len(staged.echo.sent.closed) == len(staged.echo.sent.all("session/new"))
        assert staged.echo.now.total() == 0
        assert router.conversations == ()
        if stage == "ending":
            assert staged.outcome is None  # it goes on, and needs nothing of the router
            staged.scope.cancel()
    if stage in ("waiting", *BEFORE):
        assert isinstance(staged.outcome, RouterClosed)
        assert staged.chat.texts == []
    elif stage == "running":
        assert isinstance(staged.outcome, Delivery)
        assert staged.outcome.status == "cancelled"
        assert staged.chat.texts == ["session-1: \n\n⏹ Stopped."]
    elif stage == "handler after":
        assert isinstance(staged.outcome, Delivery)
        assert staged.outcome.status == "completed"


async def test_turns_without_a_channel_learn_that_the_router_was_left() -> None:
    echo = Echo(seconds=100)
    raised: list[BaseException] = []

    async with anyio.create_task_group() as tasks, MessageRouter(echo.open) as router:

        async def ask(prompt: str) -> None:
            try:
                await router.invoke(prompt)
            except RouterClosed as exc:
                raised.append(exc)

        tasks.start_soon(ask, "one")
        await echo.until_begun("one")
        tasks.start_soon(ask, "two")
        await anyio.sleep(1)
    assert [type(error) for error in raised] == [RouterClosed, RouterClosed]
    assert sorted(str(type(error.__cause__).__name__) for error in raised) == ["NoneType", "ThoughtCancelled"]


async def test_waiting_messages_learn_at_once_that_the_router_is_left() -> None:
    echo = Echo(seconds=100)
    at: list[float] = []
    left = 0.0
    async with anyio.create_task_group() as tasks, MessageRouter(echo.open) as router:

        async def ask() -> None:
            with pytest.raises(RouterClosed):
                await router.invoke("two", user_id="ada")
            at.append(anyio.current_time())

        tasks.start_soon(router.handle_user_message, "be deaf", "ada", Whole())
        await echo.until_begun("be deaf")
        tasks.start_soon(ask)
        await anyio.sleep(1)
        left = anyio.current_time()
    assert at[0] == pytest.approx(left, abs=0.1)
    assert anyio.current_time() > left + 1


async def test_an_exception_of_the_block_passes_as_it_is_when_all_is_closed() -> None:
    echo = Echo(seconds=100)

    async def use(tasks: TaskGroup) -> None:
        async with MessageRouter(echo.open) as router:
            tasks.start_soon(router.handle_user_message, "one", "ada", Whole())
            await echo.until_begun("one")
            raise KeyError("of the block")

    async with anyio.create_task_group() as tasks:
        with pytest.raises(KeyError, match="of the block"):
            await use(tasks)
    assert (echo.opened_times, echo.closed_times) == (1, 1)


async def test_a_cancellation_from_outside_lets_the_block_end_well_before_the_sessions_are_closed() -> None:
    echo = Echo()
    last: list[str] = []
    with anyio.CancelScope() as scope:
        async with MessageRouter(echo.open) as router:
            await router.invoke("one")
            scope.cancel()
            try:
                await anyio.sleep(1)
            finally:
                with anyio.CancelScope(shield=True):
                    last.append(await router.invoke("goodbye"))
    assert scope.cancelled_caught
    assert last == ["session-1: goodbye"]
    assert echo.sent.closed == ("session-1",)
    assert (echo.opened_times, echo.closed_times) == (1, 1)


async def test_leaving_waits_for_contexts_of_the_caller_and_can_be_cancelled() -> None:
    echo = Echo()
    saved: list[str] = []

    @asynccontextmanager
    async def saves(agent: Agent, user_id: str) -> AsyncGenerator[Session]:
        async with agent.session() as session:
            yield session
            await anyio.sleep(50)
            saved.append(user_id)

    async with MessageRouter(echo.open, session=saves) as router:
        await router.invoke("one", user_id="ada")
    assert saved == ["ada"]
    with anyio.move_on_after(20) as limit:
        async with MessageRouter(echo.open, session=saves) as router:
            await router.invoke("one", user_id="grace")
    assert limit.cancelled_caught
    assert saved == ["ada"]


async def test_closing_the_agent_can_be_cancelled_too() -> None:
    echo = Echo()

    @asynccontextmanager
    async def takes_its_time() -> AsyncGenerator[Agent]:
        async with echo.open() as agent:
            yield agent
            await anyio.sleep(50)

    with anyio.move_on_after(20) as limit:
        async with MessageRouter(takes_its_time) as router:
            await router.invoke("one")
    assert limit.cancelled_caught
    assert (echo.opened_times, echo.closed_times) == (1, 1)


# The channel fails


async def test_a_channel_that_fails_passes_the_turn_on() -> None:
    echo = Echo()
    responses: list[AgentResponded] = []
    chat = Streamed(fails={"chunk": 1, "send": 4}, error=Refused("blocked"))
    async with MessageRouter(echo.open) as router:
        router.on("agent_response", responses.append)
        with pytest.raises(DeliveryFailed) as raised:
            await router.handle_user_message("one", "ada", chat)
        delivery = await router.handle_user_message("two", "ada", chat)
    assert raised.value.text == "session-1: one"
    assert [(event.text, event.status) for event in responses] == [
        ("session-1: one", "completed"),
        ("session-1: two", "completed"),
    ]
    assert delivery is not None
    assert delivery.streamed


async def test_a_message_is_refused_beside_the_answer_that_is_written() -> None:
    echo, chat = Echo(), Notified()
    async with (
        echo.open() as agent,
        MessageRouter(agent, busy="refuse") as router,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(router.handle_user_message, "one", "ada", chat)
        await echo.until_begun("one")
        assert await router.handle_user_message("two", "ada", chat) is None
    assert chat.notices == [
        ("ada", "I am still busy with your last message. Please write again when I have answered.")
    ]
    assert chat.ends == ["session-1: one"]


async def test_a_refusal_that_cannot_be_told_is_a_failed_delivery() -> None:
    echo, chat = Echo(seconds=100), Whole(fails={"send": 100})
    settings = DeliverySettings(attempts=2)
    async with (
        echo.open() as agent,
        MessageRouter(agent, busy="refuse", settings=settings) as router,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(partial(router.invoke, "one", user_id="ada"))
        await echo.until_begun("one")
        with pytest.raises(DeliveryFailed, match="in 2 attempts"):
            await router.handle_user_message("two", "ada", chat)


async def test_what_is_no_channel_harms_no_other() -> None:
    async with MessageRouter(Echo().open) as router:
        with pytest.raises(TypeError, match="a channel has a method"):
            await router.handle_user_message("one", "ada", object())  # type: ignore[arg-type]
        assert await router.invoke("two", user_id="ada") == "session-1: two"


# Everything at once


class Crowd:
    """People who write, stop, start again, give up, and whose channels fail."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.echo = Echo()
        self.open: set[str] = set()
        self.answered = 0

    async def pause(self) -> None:
        await anyio.sleep(self.dice.choice((0, 0, 0.1, 0.7, 1, 1.5, 3)))

    def channel(self) -> Channel:
        fails = {"chunk": self.dice.choice((0, 0, 1)), "send": self.dice.choice((0, 0, 0, 5))}
        return self.dice.choice((Whole, Streamed))(fails=fails, error=Refused("blocked"))

    async def person(self, router: MessageRouter, user_id: str) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(self.dice.randint(3, 8)):
                await self.pause()
                tasks.start_soon(self.message, router, user_id, f"{user_id} {number}")
                await self.act(router, user_id)

    async def act(self, router: MessageRouter, user_id: str) -> None:
        match self.dice.randint(0, 12):
            case 0:
                await router.reset(user_id)
            case 1:
                router.cancel(user_id)
            case 2 if self.echo.opened_times:
                await self.echo.die()
            case _:
                pass

    async def message(self, router: MessageRouter, user_id: str, text: str) -> None:
        patience = self.dice.choice((0, 0.5, 2, 5, 1000, 1000, 1000))
        with anyio.move_on_after(patience):
            if self.dice.random() < 0.3:
                await self.alone(partial(router.invoke, text, user_id=user_id))
            else:
                await self.alone(partial(router.handle_user_message, text, user_id, self.channel()))

    async def alone(self, turn: Callable[[], Awaitable[object]]) -> None:
        try:
            await turn()
        except Exception as exc:
            assert type(exc).__module__.startswith("thinkwell"), exc  # noqa: PT017
        else:
            self.answered += 1


async def live(dice: random.Random) -> None:
    crowd = Crowd(dice)
    people = [f"user {number}" for number in range(4)]
    with anyio.fail_after(50_000):
        async with MessageRouter(crowd.echo.open, max_waiting=3, idle_after=20) as router:
            async with anyio.create_task_group() as tasks:
                for user_id in people:
                    tasks.start_soon(crowd.person, router, user_id)
            for user_id in people:
                assert (await router.invoke("still there?", user_id=user_id)).endswith(": still there?")
            await anyio.sleep(60)
            assert router.conversations == ()
            assert crowd.echo.opened_times - crowd.echo.closed_times in (0, 1)
    assert crowd.echo.most == 1
    assert crowd.echo.opened_times == crowd.echo.closed_times
    assert crowd.answered


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    "seed", [*MANY[:FEW], *(pytest.param(seed, marks=pytest.mark.long) for seed in MANY[FEW:])]
)
def test_a_crowd_leaves_a_router_that_still_answers(seed: int, backend: str) -> None:
    """In any order of tasks. ``THINKWELL_ROUTERS=1000`` tries a thousand on each event loop."""
    name, options = virtual_backend(backend, seed)
    with noted(seed) as dice:
        anyio.run(live, dice, backend=name, backend_options=options)
