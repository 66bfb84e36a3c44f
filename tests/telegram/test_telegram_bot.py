"""A bot: what people write to it goes to an agent, and the answers come back."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client
from bot_api.values import Trouble
from echoing import Echo
from limits.virtual import Stopwatch
from telegram_stage import PATIENCE, Stage, staged

from thinkwell.channels import Delivery, MessageRouter
from thinkwell.channels.telegram import (
    IncomingMessage,
    Messages,
    TelegramChannel,
    TelegramConflict,
    TelegramUnauthorized,
    serve,
)
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

    from bot_api.values import Chat

    from thinkwell import Agent
    from thinkwell.testing import ScriptedTurn

pytestmark = pytest.mark.virtual_time

MENU = """\
Write to me, and an agent answers.

/new – Start a new conversation
/stop – Stop the answer that I am writing
/id – Show your number, and that of this chat
/help – Show what you can do here"""


class Running:
    """A bot that runs."""

    def __init__(self, stage: Stage, router: MessageRouter) -> None:
        self.stage = stage
        self.router = router
        self.deliveries: list[Delivery] = []
        self.scope = anyio.CancelScope()
        """Around the bot, and nothing else."""
        self.error: Exception | None = None
        self.ended = anyio.Event()

    @property
    def texts(self) -> list[str]:
        """What stands in Ada's chat."""
        return self.stage.chat.texts

    async def run(self, greeting: str) -> None:
        try:
            with self.scope:
                await serve(self.stage.channel, self.router, greeting=greeting, on_delivery=self._delivered)
        except Exception as exc:
            self.error = exc
        self.ended.set()
        self.stage.api.bell.ring()

    def _delivered(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        self.stage.api.bell.ring()

    async def until_said(self, *texts: str, chat: Chat | None = None) -> None:
        """Wait until exactly this stands in a chat, and nothing is being written."""
        chat = self.stage.chat if chat is None else chat
        with anyio.fail_after(PATIENCE):
            await self.stage.api.until(
                lambda: chat.texts == list(texts) and not any(post.buttons for post in chat.messages)
            )

    async def stop(self) -> None:
        """Cancel the bot, and wait until it has ended."""
        self.scope.cancel()
        with anyio.fail_after(PATIENCE):
            await self.ended.wait()


@asynccontextmanager
async def running(
    agent: Callable[[], AbstractAsyncContextManager[Agent]],
    *,
    greeting: str = "Write to me, and an agent answers.",
    prepare: Callable[[Stage], None] = lambda _: None,
    allowed: tuple[int, ...] = (7,),
    max_waiting: int = 8,
    busy: Literal["queue", "steer"] = "queue",
) -> AsyncGenerator[Running]:
    """Run a bot for the time of a block."""
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(staged(allowed=allowed))
        prepare(stage)
        router = await stack.enter_async_context(MessageRouter(agent, max_waiting=max_waiting, busy=busy))
        bot = Running(stage, router)
        stage.tasks.start_soon(bot.run, greeting)
        with anyio.fail_after(PATIENCE):
            await stage.api.until(lambda: stage.api.polled or bot.ended.is_set())
        yield bot
        await bot.stop()


async def test_a_message_is_answered() -> None:
    async with running(Echo().open) as bot:
        bot.stage.ada.says("Hello")
        await bot.until_said("session-1: Hello")
        await bot.stage.until(lambda: len(bot.deliveries) == 1)
        (delivery,) = bot.deliveries
        assert (delivery.user_id, delivery.status) == ("7", "completed")
        bot.stage.bob.says("Let me in")
        await bot.stage.until(lambda: bool(bot.stage.bob.chat.texts))
    assert "8" in bot.stage.bob.chat.texts[0]
    assert bot.stage.api.refused == []


async def test_the_menu_is_set_and_shown() -> None:
    async with running(Echo().open) as bot:
        assert [each["command"] for each in bot.stage.api.commands] == ["new", "stop", "id", "help"]
        bot.stage.ada.says("/start payload")
        await bot.until_said(MENU)
        bot.stage.ada.says(" /help ")
        await bot.until_said(MENU, MENU)
    async with running(Echo().open, greeting="I am Claude.") as bot:
        bot.stage.ada.says("/help")
        await bot.until_said(MENU.replace("Write to me, and an agent answers.", "I am Claude."))


async def test_a_menu_that_cannot_be_set_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def prepare(stage: Stage) -> None:
        stage.api.trouble("setMyCommands", Trouble.error(500))

    async with running(Echo().open, prepare=prepare) as bot:
        bot.stage.ada.says("Hello")
        await bot.until_said("session-1: Hello")
    assert "menu of the bot was not set" in caplog.text


async def test_the_numbers_of_people_and_chats() -> None:
    async with running(Echo().open) as bot:
        group = bot.stage.api.group(-5)
        bot.stage.ada.says("/id@test_bot", chat=group)
        await bot.until_said("Your number is 7. That of this chat is -5.", chat=group)


async def test_a_new_conversation() -> None:
    async with running(Echo().open) as bot:
        bot.stage.ada.says("Hello")
        await bot.until_said("session-1: Hello")
        bot.stage.ada.says("/new")
        await bot.until_said("session-1: Hello", "Your next message starts a new conversation.")
        bot.stage.ada.says("Again")
        await bot.stage.until(lambda: bot.texts[2:] == ["session-2: Again"])
        bot.stage.ada.says("/new\nWith a message")
        await bot.stage.until(lambda: bot.texts[3:] == ["session-3: With a message"])


async def test_stopping() -> None:
    async with running(Echo(60).open) as bot:
        bot.stage.ada.says("/stop")
        await bot.until_said("There is nothing to stop.")
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: len(bot.texts) == 2)
        watch = Stopwatch()
        bot.stage.ada.says("/stop")
        await bot.until_said("There is nothing to stop.", "session-1: \n\n⏹ Stopped.")
        await bot.stage.until(lambda: bool(bot.deliveries))
        assert watch.seconds < 5
        assert [each.status for each in bot.deliveries] == ["cancelled"]


async def test_other_commands_are_for_the_agent() -> None:
    async with running(Echo().open) as bot:
        bot.stage.ada.says("/compact now")
        await bot.until_said("session-1: /compact now")
        bot.stage.ada.says("//help")
        await bot.until_said("session-1: /compact now", "session-1: /help")
        bot.stage.ada.says("/newer")
        await bot.stage.until(lambda: bot.texts[2:] == ["session-1: /newer"])


async def test_messages_of_a_chat_are_answered_in_their_order_and_chats_at_once() -> None:
    echo = Echo(10)
    async with running(echo.open, allowed=(7, 8)) as bot:
        for number in range(4):
            bot.stage.ada.says(f"{number}")
        bot.stage.bob.says("Hello")
        await bot.stage.until(lambda: len(bot.deliveries) == 5)
        assert [text.partition(": ")[2] for text in bot.texts] == ["0", "1", "2", "3"]
        assert (echo.most, echo.most_at_all) == (1, 2)
        assert bot.stage.bob.chat.texts[0].endswith(": Hello")
        assert echo.done.index("Hello") <= 1


async def test_too_many_messages() -> None:
    async with running(Echo(10).open, max_waiting=1) as bot:
        for number in range(3):
            bot.stage.ada.says(f"{number}")
        await bot.stage.until(lambda: len(bot.deliveries) == 2)
        assert min(bot.texts).startswith("I am still busy")
        assert [each.run_text for each in bot.deliveries] == ["session-1: 0", "session-1: 1"]


async def test_an_agent_that_has_died_is_started_again() -> None:
    echo = Echo()
    async with running(echo.open) as bot:
        bot.stage.ada.says("One")
        await bot.until_said("session-1: One")
        await echo.die()
        bot.stage.ada.says("Two")
        await bot.stage.until(lambda: bot.texts[-1] == "session-2: Two")
        assert bot.texts[1].startswith("The agent had to be restarted.")
    assert echo.opened_times == 2


async def test_an_agent_that_does_not_start_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def broken() -> AsyncGenerator[Agent]:
        async with Echo().open() as agent:
            if agent.name:
                raise ZeroDivisionError("a mistake in the program")
            yield agent

    async with running(broken) as bot:
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: bool(bot.deliveries))
        assert "went wrong" in bot.texts[0]
        assert "mistake" not in bot.texts[0]
    assert "a mistake in the program" in caplog.text


async def test_an_answer_that_cannot_be_delivered_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Echo().open) as bot:
        bot.stage.ada.says("Hello")
        bot.stage.ada.blocks()
        await bot.stage.until(lambda: bool(bot.deliveries))
        assert (bot.deliveries[0].status, bot.texts) == ("completed", [])
        assert "An answer could not be delivered to 7: " in caplog.text
        bot.stage.ada.unblocks()
        bot.stage.ada.says("Hello again")
        await bot.until_said("session-1: Hello again")


SENDING = ("sendMessage", "editMessageText")
GONE = [(Trouble.unreachable(), 1.0)]


async def test_an_answer_is_delivered_when_the_network_is_back(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Echo().open) as bot:
        bot.stage.api.chaos(1, GONE, methods=SENDING)
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: bool(bot.deliveries))
        assert bot.texts == []
        await anyio.sleep(600)
        bot.stage.api.no_trouble()
        await bot.until_said("session-1: Hello")
        await bot.stage.until(lambda: "An answer was delivered to 7 after all" in caplog.text)


async def test_an_answer_that_was_shown_in_part_goes_on_where_it_was() -> None:
    played = ScriptedAgent(script.says("Half of it").pauses(20).says(" and the rest."))
    async with running(played.open) as bot:
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: bool(bot.texts))
        bot.stage.api.chaos(1, GONE, methods=SENDING)
        await bot.stage.until(lambda: bool(bot.deliveries))
        bot.stage.api.no_trouble()
        await bot.until_said("Half of it and the rest.")


async def test_an_answer_that_comes_later_leaves_the_next_one_alone() -> None:
    played = ScriptedAgent(script.says("First.").stops().says("Second").pauses(90).says(" one."))
    async with running(played.open) as bot:
        bot.stage.api.chaos(1, GONE, methods=SENDING)
        bot.stage.ada.says("One")
        await bot.stage.until(lambda: bool(bot.deliveries))
        bot.stage.api.no_trouble()
        bot.stage.ada.says("Two")
        await bot.until_said("Second one.", "First.")


async def test_an_answer_is_given_up_after_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Echo().open) as bot:
        bot.stage.api.chaos(1, GONE, methods=SENDING)
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: bool(bot.deliveries))
        with anyio.fail_after(20_000):
            while "Giving up an answer to 7" not in caplog.text:
                await bot.stage.api.changed()
                await anyio.sleep(60)


async def test_an_answer_is_given_up_where_the_bot_is_blocked_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(Echo().open) as bot:
        bot.stage.api.chaos(1, GONE, methods=SENDING)
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: bool(bot.deliveries))
        bot.stage.api.no_trouble()
        bot.stage.ada.blocks()
        await anyio.sleep(120)
        assert "Giving up an answer to 7" in caplog.text


async def test_a_bot_that_ends_waits_for_no_network() -> None:
    async with running(Echo().open) as bot:
        bot.stage.api.chaos(1, GONE, methods=SENDING)
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: bool(bot.deliveries))
        watch = Stopwatch()
        await bot.stop()
        assert watch.seconds < 5


async def test_what_a_command_says_and_cannot_be_sent_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Echo().open) as bot:
        bot.stage.ada.says("/id")
        bot.stage.ada.blocks()
        await bot.stage.until(lambda: "A notice could not be sent to 7: " in caplog.text)
        bot.stage.ada.unblocks()
        bot.stage.ada.says("/id")
        await bot.stage.until(lambda: len(bot.texts) == 1)


async def test_a_mistake_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MessageRouter):
        async def handle_user_message(self, *args: object, **options: object) -> None:
            raise ZeroDivisionError("a mistake")

    async with staged() as stage, Broken(Echo().open) as router:
        stage.tasks.start_soon(serve, stage.channel, router)
        stage.ada.says("Hello")
        await stage.until(lambda: len(stage.chat.texts) == 1)
        assert stage.chat.texts[0].startswith("Something went wrong here")
        assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_a_handler_of_deliveries_that_fails_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with staged() as stage, MessageRouter(Echo().open) as router:

        def said(text: str) -> bool:
            return stage.chat.texts[-1:] == [text]

        def fail(_: Delivery) -> None:
            raise ZeroDivisionError("a mistake")

        async def bot() -> None:
            await serve(stage.channel, router, on_delivery=fail)

        stage.tasks.start_soon(bot)
        for number in range(1, 3):
            stage.ada.says(f"{number}")
            await stage.until(partial(said, f"session-1: {number}"))
    assert caplog.text.count("The on_delivery callback failed") == 2


# How it ends


ENDING = "I am shutting down, and could not answer your last message. Please write again later."


async def test_what_is_written_when_it_ends_is_delivered() -> None:
    echo = Echo(3_000)
    async with running(echo.open, allowed=(7, 8)) as bot:
        for person in (bot.stage.ada, bot.stage.bob):
            for number in range(3):
                person.says(f"{number}")
        chats = bot.stage.chat, bot.stage.bob.chat
        await bot.stage.until(lambda: all(len(chat.texts) == 1 for chat in chats))
        watch = Stopwatch()
        await bot.stop()
        assert watch.seconds < 6
        assert echo.begun == ["0", "0"]
        for chat in chats:
            answer, notice = sorted(chat.texts, reverse=True)
            assert answer.endswith(": \n\n⏹ Stopped.")
            assert notice == ENDING
        assert [each.status for each in bot.deliveries] == ["cancelled", "cancelled"]


async def test_it_ends_in_bounded_time_where_telegram_is_gone() -> None:
    async with running(Echo(3_000).open) as bot:
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: len(bot.texts) == 1)
        bot.stage.api.chaos(0, [(Trouble.unreachable(), 1.0)])
        watch = Stopwatch()
        await bot.stop()
        assert watch.seconds < 7
        bot.stage.api.no_trouble()


async def test_everything_is_cancelled_at_once() -> None:
    echo = Echo(3_000)
    async with staged() as stage:
        with anyio.CancelScope() as scope:
            async with MessageRouter(echo.open) as router, anyio.create_task_group() as tasks:
                tasks.start_soon(serve, stage.channel, router)
                stage.ada.says("Hello")
                await stage.until(lambda: len(stage.chat.texts) == 1)
                scope.cancel()
        assert stage.chat.texts == ["session-1: \n\n⏹ Stopped."]


async def test_an_unknown_token() -> None:
    def prepare(stage: Stage) -> None:
        stage.api.token = "42:another-token-of-the-tests-and-so-on"

    async with running(Echo().open, prepare=prepare) as bot:
        assert isinstance(bot.error, TelegramUnauthorized)


async def test_another_program_gets_the_messages() -> None:
    async with running(Echo(3_000).open) as bot:
        bot.stage.ada.says("Hello")
        await bot.stage.until(lambda: len(bot.texts) == 1)
        bot.stage.api.webhook = "https://elsewhere.example/"
        bot.stage.ada.says("Is somebody there?")
        with anyio.fail_after(PATIENCE):
            await bot.ended.wait()
        assert isinstance(bot.error, TelegramConflict)
        assert sorted(bot.texts) == [ENDING, "session-1: \n\n⏹ Stopped."]


async def test_when_there_are_no_more_messages_all_are_answered() -> None:
    class Few(Messages):
        left = 2

        async def __anext__(self) -> IncomingMessage:
            if not self.left:
                raise StopAsyncIteration
            self.left -= 1
            return await super().__anext__()

    class Brief(TelegramChannel):
        def messages(self) -> Messages:
            return Few(super().messages()._incoming)

    api = BotApi()
    ada = api.user(7, "Ada")
    for number in range(3):
        ada.says(f"{number}")
    async with (
        client(api) as http,
        Brief(TOKEN, allowed=[7], client=http) as channel,
        MessageRouter(Echo(30).open) as router,
    ):
        with anyio.fail_after(PATIENCE):
            await serve(channel, router)
    assert ada.chat.texts == ["session-1: 0", "session-1: 1"]


async def test_a_router_that_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async with staged() as stage:
        stage.tasks.start_soon(serve, stage.channel, MessageRouter(Echo().open))
        stage.ada.says("Hello")
        await stage.until(lambda: stage.chat.texts == [ENDING])
    assert "A message from 7 was not answered: the router is closed" in caplog.text


async def test_questions_are_answered_by_buttons() -> None:
    played = ScriptedAgent(script.asks("rm -rf build", kind="execute").says("Done."))
    async with running(lambda: played.open(permissions="ask")) as bot:
        bot.stage.ada.says("Clean up.")
        await bot.stage.until(lambda: bool(bot.texts) and len(bot.stage.post.buttons) > 0)
        bot.stage.api.press(bot.stage.post, "once")
        await bot.stage.until(lambda: bool(bot.deliveries))
        assert bot.texts[-1] == "Done."


async def test_a_message_that_comes_meanwhile_is_read_in_the_turn_that_runs() -> None:
    begun = anyio.Event()

    async def begin(turn: ScriptedTurn) -> None:
        begun.set()

    told = script.says("I read it.").does(begin).hears("login").says("The login is fine, too.")
    told = told.stops().expects("tests").says("They pass.")
    agent = ScriptedAgent(told, steering=True)
    async with running(agent.open, busy="steer") as bot:
        bot.stage.ada.says("Review it")
        await begun.wait()
        bot.stage.ada.says("Also the login")
        steered = "I read this while I work on what you wrote before."
        await bot.stage.until(lambda: steered in bot.texts and len(bot.deliveries) == 1)
        assert "The login is fine, too." in bot.deliveries[0].text
        bot.stage.ada.says("And the tests")
        await bot.stage.until(lambda: len(bot.deliveries) == 2)
        assert bot.deliveries[1].text == "They pass."
