"""`serve`: a bot. What people write to it goes to a router, and the answers come back."""

from __future__ import annotations

import logging
import re
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._conversations.errors import RouterClosed
from thinkwell.channels._calls import may_pass
from thinkwell.channels._errors import DeliveryFailed
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

__all__ = ("CHANNEL_ID", "COMMANDS", "GREETING", "serve")

CHANNEL_ID: Final = "telegram"
"""What the router's events call the channel."""

COMMANDS: Final = (
    BotCommand("new", "Begin a new conversation"),
    BotCommand("stop", "Stop the answer that I am writing"),
    BotCommand("id", "Show your number, and that of this chat"),
    BotCommand("help", "Show what you can do here"),
)
"""The menu of the bot. ``/start`` is not in it: Telegram sends that where a chat is begun."""

GREETING: Final = "Write to me, and an agent answers."

PATIENCE: Final = 5.0
"""Seconds in which the answers that are being written are brought to an end, when the bot ends. A service
manager may kill it after ten."""

LATER: Final = 60.0
"""Seconds until an answer is sent again that could not be delivered, when Telegram may be reached again."""

LATEST: Final = 60
"""How often that is tried."""

ANEW: Final = "What you write next begins a new conversation."
NOTHING_RUNS: Final = "There is nothing to stop."
ENDING: Final = "I am being switched off, and did not get to what you wrote last. Please write again later."
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
    """Answer what people write to a bot, each chat in a conversation of its own, until it is cancelled.

        async with (
            TelegramChannel(allowed=[123456789]) as channel,
            MessageRouter(lambda: open_agent("claude", permissions="ask")) as router,
        ):
            await serve(channel, router)

    The commands of its menu are ``/new``, ``/stop``, ``/id`` and ``/help``. Other commands go to the agent,
    which may have some of its own; one of the same name is written with two slashes: ``//help``.

    What goes wrong with a message is logged, and told to its author. Where this is cancelled, the runs
    are stopped, and what they have written until then is delivered, for bounded time.

    Args:
        channel: The bot. Its block was entered.
        router: Has the conversations. Its block was entered.
        greeting: What ``/start`` and ``/help`` begin with.
        on_delivery: Called with every answer, when it was delivered or could not be.

    Raises:
        TelegramUnauthorized: There is no bot with this token.
        TelegramConflict: A webhook is set, or another program fetches the bot's messages.
        TelegramRefused: Telegram does not give out the bot's messages.
    """
    bot = _Bot(channel, router, greeting, on_delivery)
    raised: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        await tasks.start(bot.answering)
        try:
            await bot.listen()
        except BaseException as exc:  # the group would put it into another exception
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
        """The messages of each chat that have no answer yet, in their order. The first one has its turn."""
        self._scope = anyio.CancelScope(shield=True)
        self._tasks: TaskGroup | None = None

    async def listen(self) -> None:
        """Take what people write, until there is no more."""
        try:
            await self._channel.api.set_my_commands(COMMANDS)
        except TelegramUnauthorized:
            raise
        except TelegramError as exc:
            logger.warning("The menu of the bot was not set: %s", exc)
        async for message in self._channel.messages():
            await self._take(message)

    async def answering(self, *, task_status: TaskStatus[None]) -> None:
        """Have answers written until no more messages are taken, and all have one.

        They are not cancelled from outside, so that they are brought to an end.
        """
        with self._scope:
            async with anyio.create_task_group() as self._tasks:
                task_status.started()
                await self.ended.wait()
        if self._scope.cancelled_caught:
            logger.warning("The bot has ended, and not all of what it had to say was sent in %g s", PATIENCE)

    def stop(self) -> None:
        """Stop what runs, and refuse what waits."""
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
            with anyio.CancelScope(shield=True):  # it takes a moment
                await taken.wait()  # tasks may begin in any order, and messages are answered in theirs

    async def _obey(self, message: IncomingMessage, command: str, rest: str) -> tuple[str, str]:
        """Do what a command says. Return what to say to that, and what the agent is to answer."""
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
        """Deliver the answer to a message, or say why there is none."""
        scope = anyio.CancelScope()
        scopes = self._open.setdefault(user_id, deque())
        scopes.append(scope)
        problem = ""
        try:
            with scope:
                taken.set()  # who waits for that goes on when this does wait
                problem = await self._answer(user_id, text)
        finally:
            scopes.remove(scope)
            if not scopes:
                del self._open[user_id]
        if problem:
            await self._notify(user_id, problem)

    async def _answer(self, user_id: str, text: str) -> str:
        """Deliver the answer to a message, and return what else is to be said; most often nothing."""
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
                logger.exception("What was to be told of a delivery has failed")
        return ""

    async def _deliver_later(self, user_id: str, text: str) -> None:
        """Try again to send an answer, for an hour. It goes on where it was, if nothing was written since."""
        for _ in range(LATEST):
            with anyio.move_on_after(LATER):
                await self.ended.wait()
            if self.ended.is_set():
                return
            if user_id in self._open:
                continue  # what is being written would end with it
            try:
                await self._channel.send(user_id, text)
            except TelegramError as exc:
                if not exc.temporary:
                    break
            else:
                logger.warning("An answer was delivered to %s after all", user_id)
                return
        logger.error("An answer to %s is given up", user_id)

    async def _notify(self, user_id: str, text: str) -> None:
        try:
            await self._channel.notify(user_id, text)
        except TelegramError as exc:
            logger.warning("Something could not be said to %s: %s", user_id, exc)
