"""Who may talk to the bot, and what of what they write is meant for it."""

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

__all__ = ("IncomingMessage", "People", "Seldom", "Sender", "addressed", "sender")

NAME: Final = 80
"""Characters of a name that are kept."""

HOUR: Final = 3600.0
"""Seconds between two refusals of the same person."""

MINUTE: Final = 60.0
"""Seconds between two refusals in the same chat: answers to those who are allowed wait behind them there."""

MOST: Final = 1_000
"""People who are remembered at once. While there are so many, others get no answer at all."""

_COMMAND: Final = re.compile(r"/\w+(?:@(?P<bot>\w+))?(?=\s|\Z)")


class Sender(Struct, frozen=True, kw_only=True):
    """Who wrote a message."""

    id: int
    """The person's number at Telegram, which never changes: what the allow list has."""
    name: str = ""
    """What they call themselves: a clean line."""


class IncomingMessage(Struct, frozen=True, kw_only=True):
    """A text that an allowed person wrote to the bot."""

    text: str
    """What they wrote, without the bot's name. A command begins with ``/`` and has no ``@``."""
    user_id: str
    """Where the answer belongs, and what to give to `deliver`: the chat, or the topic of a forum."""
    person: Sender
    chat: Literal["private", "group"]
    message_id: int
    """The message's number in its chat."""


class Seldom:
    """Says whether something may be done for a person again, for a bounded number of them.

    Args:
        seconds: Time between.
        most: How many are remembered. Where there are more, it is not done for them.
    """

    def __init__(self, seconds: float, most: int = MOST) -> None:
        self._seconds = seconds
        self._most = most
        self._done: OrderedDict[object, float] = OrderedDict()

    def is_time(self, who: object) -> bool:
        """Return whether it may be done."""
        while self._done and next(iter(self._done.values())) <= anyio.current_time() - self._seconds:
            self._done.popitem(last=False)
        return who not in self._done and len(self._done) < self._most

    def may(self, who: object) -> bool:
        """Return whether it is time, and remember that it was done."""
        if not self.is_time(who):
            return False
        self._done[who] = anyio.current_time()
        return True


class People:
    """Those who may talk to the bot.

    Args:
        allowed: Their numbers at Telegram. No one else is; an empty list lets no one in.

    Raises:
        TypeError: One of them is no number.
    """

    def __init__(self, allowed: Collection[int]) -> None:
        for each in allowed:
            given = cast("object", each)
            if not isinstance(given, int) or isinstance(given, bool):
                raise TypeError(
                    f"TelegramChannel(allowed=[{given!r:.100}]): give numbers of people, not their names; "
                    "people who write to the bot and are not allowed are told their number"
                )
        self._allowed = frozenset(allowed)
        self._refused = Seldom(HOUR)
        self._refused_in = Seldom(MINUTE)

    def allows(self, person: Person | None) -> bool:
        """Return whether a person may talk to the bot."""
        return person is not None and person.id in self._allowed

    def refusal(self, person: Person, where: ChatAddress) -> str | None:
        """Return what to tell a person who is not allowed; ``None`` where there was that lately."""
        if not self._refused.is_time(person.id) or not self._refused_in.may(where):
            return None
        self._refused.may(person.id)
        return (
            "Sorry, I answer only to people whom my owner has allowed. "
            f"If you should be one of them, tell my owner your number: {person.id}"
        )


def sender(person: Person) -> Sender:
    """Return how the log names the author of a message."""
    name = f"{person.first_name} {person.last_name}".strip() or person.username
    return Sender(id=person.id, name=line(name, NAME))


def addressed(message: Message, me: BotUser) -> str | None:
    """Return what of a message is meant for the bot: in groups, not everything is.

    There it is commands, replies to the bot, and what mentions it. The mention is left out.

    Args:
        message: A message. One without text may have a caption.
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
    # In a topic, a message that is no reply names the message that has opened the topic.
    return not (message.is_topic_message and replied.message_id == message.message_thread_id)


def _without_mention(text: str, name: str) -> str:
    if not name:
        return text
    mention = re.compile(rf"(?<![\w@])@{re.escape(name)}(?!\w)[,:]?[ \t]*", re.IGNORECASE)
    found = mention.sub("", text)
    return found.strip() if found != text else text
