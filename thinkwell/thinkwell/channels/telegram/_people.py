"""Users who may talk to the bot, and the messages that are meant for it."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal, cast

import anyio
from msgspec import Struct

from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Collection

    from thinkwell.channels.telegram._values import BotUser, ChatAddress, Message, Person

NAME: Final = 80
"""Most characters of a name."""

HOUR: Final = 3600.0
"""Seconds between two refusals of the same user."""

MINUTE: Final = 60.0
"""Seconds between two refusals in the same chat: answers to allowed users wait behind them there."""

MOST: Final = 1_000
"""Most users that are remembered at once. While there are so many, others get no answer."""

_COMMAND: Final = re.compile(r"/\w+(?:@(?P<bot>\w+))?(?=\s|\Z)")


class Sender(Struct, frozen=True, kw_only=True):
    """The author of a message."""

    id: int
    """The user's number at Telegram, which never changes: the number for the allow list."""
    name: str = ""
    """The name that they chose: a clean line."""


class IncomingMessage(Struct, frozen=True, kw_only=True):
    """A text that an allowed user wrote to the bot."""

    text: str
    """The text, without the bot's name. A command begins with ``/`` and has no ``@``."""
    user_id: str
    """The user id to give to `deliver`: the chat, or the topic of a forum."""
    person: Sender
    chat: Literal["private", "group"]
    message_id: int
    """The message's number in its chat."""


class Seldom:
    """Limits how often something is done for a user, for a bounded number of users.

    Args:
        seconds: Least seconds between two times.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._done: OrderedDict[object, float] = OrderedDict()

    def is_time(self, who: object) -> bool:
        """Return whether it may be done."""
        while self._done and next(iter(self._done.values())) <= anyio.current_time() - self._seconds:
            self._done.popitem(last=False)
        return who not in self._done and len(self._done) < MOST

    def may(self, who: object) -> bool:
        """Return whether it is time, and remember that it was done."""
        if not self.is_time(who):
            return False
        self._done[who] = anyio.current_time()
        return True


class People:
    """The users who may talk to the bot.

    Args:
        allowed: Their numbers at Telegram. An empty list allows no user.

    Raises:
        TypeError: One of them is not a number.
    """

    def __init__(self, allowed: Collection[int]) -> None:
        for each in allowed:
            given = cast("object", each)
            if not isinstance(given, int) or isinstance(given, bool):
                raise TypeError(
                    f"TelegramChannel(allowed=[{given!r:.100}]): give users' numbers, not their names; "
                    "users who write to the bot without being allowed are told their number"
                )
        self._allowed = frozenset(allowed)
        self._refused = Seldom(HOUR)
        self._refused_in = Seldom(MINUTE)

    def allows(self, person: Person | None) -> bool:
        """Return whether a user may talk to the bot."""
        return person is not None and person.id in self._allowed

    def refusal(self, person: Person, where: ChatAddress) -> str | None:
        """Return the answer to a user who is not allowed; ``None`` if there was one recently."""
        if not self._refused.is_time(person.id) or not self._refused_in.may(where):
            return None
        self._refused.may(person.id)
        return (
            "Sorry, I only answer users whom my owner has allowed. "
            f"To become one of them, tell my owner your number: {person.id}"
        )


def sender(person: Person) -> Sender:
    """Return the author of a message, as named in the log."""
    name = f"{person.first_name} {person.last_name}".strip() or person.username
    return Sender(id=person.id, name=line(name, NAME))


def addressed(message: Message, me: BotUser) -> str | None:
    """Return the text of a message that is meant for the bot, or ``None``.

    In groups, only commands, replies to the bot and mentions of it are. The mention is left out.

    Args:
        message: A message. If it has no text, it may have a caption.
        me: The bot.
    """
    text = message.text or message.caption or ""
    command = _COMMAND.match(text)
    if command is not None and command["bot"] is not None:
        if command["bot"].casefold() != me.username.casefold():
            return None
        start, end = command.span("bot")
        text = text[: start - 1] + text[end:]
    if message.chat.type == "private":
        return text
    without = _without_mention(text, me.username)
    return without if command is not None or without != text or _replies_to(message, me) else None


def _replies_to(message: Message, me: BotUser) -> bool:
    replied = message.reply_to_message
    if replied is None or replied.from_ is None or replied.from_.id != me.id:
        return False
    # In a topic, a message that is not a reply refers to the message that opened the topic.
    return not (message.is_topic_message and replied.message_id == message.message_thread_id)


def _without_mention(text: str, name: str) -> str:
    if not name:
        return text
    mention = re.compile(rf"(?<![\w@])@{re.escape(name)}(?!\w)[,:]?[ \t]*", re.IGNORECASE)
    found = mention.sub("", text)
    return found.strip() if found != text else text
