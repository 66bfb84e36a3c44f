"""`serve`: run a bot. Messages go to a router, and the answers come back."""

from __future__ import annotations

import logging
import re
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._conversations.errors import RouterClosed
from thinkwell.channels._calls import may_pass
from thinkwell.channels._outcome import DeliveryFailed
from thinkwell.channels.telegram._errors import (
    TelegramError,
    TelegramUnauthorized,
)
from thinkwell.channels.telegram._values import BotCommand

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup, TaskStatus

    from thinkwell.channels._outcome import Delivery
    from thinkwell.channels._router import MessageRouter
    from thinkwell.channels.telegram._channel import TelegramChannel
    from thinkwell.channels.telegram._people import IncomingMessage

CHANNEL_ID: Final = "telegram"
"""The channel's name in the router's events."""

COMMANDS: Final = (
    BotCommand("new", "Start a new conversation"),
    BotCommand("stop", "Stop the answer that I am writing"),
    BotCommand("id", "Show your number, and that of this chat"),
    BotCommand("help", "Show what you can do here"),
)
"""The bot's menu. ``/start`` is not in it: Telegram sends it when a chat begins."""

GREETING: Final = "Write to me, and an agent answers."

PATIENCE: Final = 5.0
"""Seconds to finish unfinished answers when the bot stops. A service manager may kill it after ten."""

LATER: Final = 60.0
"""Seconds between attempts to deliver an answer after Telegram could not be reached."""

LATEST: Final = 60
"""Most such attempts."""

ANEW: Final = "Your next message starts a new conversation."
NOTHING_RUNS: Final = "There is nothing to stop."
ENDING: Final = "I am shutting down, and could not answer your last message. Please write again later."
FAILED: Final = "Something went wrong here, and your message was not answered. Please try again later."

_COMMAND: Final = re.compile(r"/(?P<name>new|stop|id|help|start)(?:\s+(?P<rest>.*))?", re.DOTALL)

logger = logging.getLogger("thinkwell")


async def serve(
    channel: TelegramChannel,
    router: MessageRouter,
    *,
    greeting: str = GREETING,
    on_delivery: Callable[[Delivery], object] | None = None,
) -> None:
    """Answer messages to a bot, with one conversation for each chat, until this is cancelled.

        async with (
            TelegramChannel(allowed=[123456789]) as channel,
            MessageRouter(lambda: open_agent("claude", permissions="ask")) as router,
        ):
            await serve(channel, router)

    The menu's commands are ``/new``, ``/stop``, ``/id`` and ``/help``. Other commands go to the agent. To
    send the agent a command with one of these names, write two slashes: ``//help``.

    Errors with a message are logged, and reported to its author. On cancellation, runs are stopped and the
    text so far is delivered, for bounded time.

    Args:
        channel: The bot. Its block must be entered.
        router: Has the conversations. Its block must be entered.
        greeting: The beginning of the answer to ``/start`` and ``/help``.
        on_delivery: Called with every delivery, successful or not.

    Raises:
        TelegramUnauthorized: No bot has this token.
        TelegramConflict: A webhook is set, or another program fetches the bot's messages.
        TelegramRefused: Telegram refuses to return the bot's messages.
    """
    bot = _Bot(channel, router, greeting, on_delivery)
    raised: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        await tasks.start(bot.answering)
        try:
            await bot.listen()
        except BaseException as exc:  # the group would wrap it
            raised = exc
            bot.stop()
        finally:
            bot.ended.set()
    if raised is not None:
        raise raised


class _Bot:
    def __init__(
        self,
        channel: TelegramChannel,
        router: MessageRouter,
        greeting: str,
        on_delivery: Callable[[Delivery], object] | None,
    ) -> None:
        self.ended = anyio.Event()
        """Set when no more messages are taken."""
        self._channel = channel
        self._router = router
        self._greeting = greeting
        self._on_delivery = on_delivery
        self._open: dict[str, deque[anyio.CancelScope]] = {}
        """The unanswered messages of each chat, in order. The first one has its turn."""
        self._scope = anyio.CancelScope(shield=True)
        self._tasks: TaskGroup | None = None

    async def listen(self) -> None:
        """Take messages until there are no more."""
        try:
            await self._channel.api.set_my_commands(COMMANDS)
        except TelegramUnauthorized:
            raise
        except TelegramError as exc:
            logger.warning("The menu of the bot was not set: %s", exc)
        async for message in self._channel.messages():
            await self._take(message)

    async def answering(self, *, task_status: TaskStatus[None]) -> None:
        """Write answers until no more messages are taken, and all are answered.

        Answers are not cancelled from outside, so that they can be finished.
        """
        with self._scope:
            async with anyio.create_task_group() as self._tasks:
                task_status.started()
                await self.ended.wait()
        if self._scope.cancelled_caught:
            logger.warning("The bot has stopped, and could not send everything within %g s", PATIENCE)

    def stop(self) -> None:
        """Stop running turns, and refuse waiting messages."""
        assert self._tasks is not None
        for user_id, (_, *waiting) in self._open.items():
            self._router.cancel(user_id)
            for scope in waiting:
                scope.cancel()
            if waiting:
                self._tasks.start_soon(self._notify, user_id, ENDING)
        self._scope.deadline = anyio.current_time() + PATIENCE

    async def _take(self, message: IncomingMessage) -> None:
        assert self._tasks is not None
        text = message.text
        command = _COMMAND.fullmatch(text.strip())
        if command is not None:
            reply, text = await self._obey(message, command["name"], command["rest"] or "")
            if reply:
                self._tasks.start_soon(self._notify, message.user_id, reply)
        elif text.startswith("//"):
            text = text[1:]
        if text.strip():
            taken = anyio.Event()
            self._tasks.start_soon(self._deliver, message.user_id, text, taken)
            with anyio.CancelScope(shield=True):  # this wait is short
                await taken.wait()  # tasks may begin in any order, but messages are answered in order

    async def _obey(self, message: IncomingMessage, command: str, rest: str) -> tuple[str, str]:
        """Run a command. Return the bot's answer, and the prompt for the agent."""
        match command:
            case "new":
                await self._router.reset(message.user_id)
                return "" if rest.strip() else ANEW, rest
            case "stop":
                return "" if self._router.cancel(message.user_id) else NOTHING_RUNS, ""
            case "id":
                return f"Your number is {message.person.id}. That of this chat is {message.user_id}.", ""
            case _:
                menu = (f"/{each.command} – {each.description}" for each in COMMANDS)
                return "\n".join((self._greeting, "", *menu)), ""

    async def _deliver(self, user_id: str, text: str, taken: anyio.Event) -> None:
        """Deliver the answer to a message, or explain why it has none."""
        scope = anyio.CancelScope()
        scopes = self._open.setdefault(user_id, deque())
        scopes.append(scope)
        problem = ""
        try:
            with scope:
                taken.set()  # the waiting task continues at our next wait
                problem = await self._answer(user_id, text)
        finally:
            scopes.remove(scope)
            if not scopes:
                del self._open[user_id]
        if problem:
            await self._notify(user_id, problem)

    async def _answer(self, user_id: str, text: str) -> str:
        """Deliver the answer to a message, and return a further notice, mostly empty."""
        try:
            delivery = await self._router.handle_user_message(
                text, user_id, self._channel, channel_id=CHANNEL_ID
            )
        except RouterClosed as exc:
            logger.warning("A message from %s was not answered: %s", user_id, exc)
            return ENDING
        except DeliveryFailed as exc:
            logger.error("An answer could not be delivered to %s: %s", user_id, exc.reason)
            delivery = exc.delivery
            if may_pass(exc.__cause__):
                assert self._tasks is not None
                self._tasks.start_soon(self._deliver_later, user_id, exc.text)
        except Exception:
            logger.exception("A message from %s was not answered", user_id)
            return FAILED
        if delivery is not None and self._on_delivery is not None:
            try:
                self._on_delivery(delivery)
            except Exception:
                logger.exception("The on_delivery callback failed")
        return ""

    async def _deliver_later(self, user_id: str, text: str) -> None:
        """Retry an answer for an hour. It continues where it stopped, if nothing was written in between."""
        for _ in range(LATEST):
            with anyio.move_on_after(LATER):
                await self.ended.wait()
            if self.ended.is_set():
                return
            if user_id in self._open:
                continue  # it would end the answer that is being written
            try:
                await self._channel.send(user_id, text)
            except TelegramError as exc:
                if not exc.temporary:
                    break
            else:
                logger.warning("An answer was delivered to %s after all", user_id)
                return
        logger.error("Giving up an answer to %s", user_id)

    async def _notify(self, user_id: str, text: str) -> None:
        try:
            await self._channel.notify(user_id, text)
        except TelegramError as exc:
            logger.warning("A notice could not be sent to %s: %s", user_id, exc)
