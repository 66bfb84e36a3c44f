"""What a server of the Bot API has to do with: people, chats, messages, and what became of requests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot_api.world import World

    from thinkwell.events import JsonValue

__all__ = ("Call", "Chat", "ChatKind", "Draft", "Person", "Post", "Query", "Trouble", "Version")

ChatKind = Literal["private", "group", "supergroup"]

PREVIEW: float = 30.0
"""Seconds that a draft shows (Bot API, sendMessageDraft)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """What a message was at some time."""

    at: float
    """`anyio.current_time` of the event loop that the request came to."""
    html: str
    """As the bot wrote it; without ``parse_mode``, its text, escaped."""
    text: str
    """Without marks, cleaned and trimmed as Telegram does."""
    entities: tuple[Mapping[str, JsonValue], ...] = ()
    """As in answers: offsets and lengths are UTF-16 units."""
    markup: Mapping[str, JsonValue] | None = None
    """``reply_markup``."""

    def same_as(self, other: Version) -> bool:
        """Return whether a message that goes from one to the other would not be modified."""
        return (self.text, self.entities, self.markup) == (other.text, other.entities, other.markup)


@dataclass(eq=False, kw_only=True, slots=True)
class Post:
    """A message, of the bot or of a person."""

    id: int
    chat: Chat
    history: list[Version]
    """All that it was; the last one is what it is."""
    by: Person | None = None
    """``None``: the bot."""
    thread: int | None = None
    reply_to: Post | None = None
    deleted: bool = False
    photo: bool = False
    """Its text is the caption of a photo."""

    @property
    def html(self) -> str:
        """What it is, as the bot wrote it."""
        return self.history[-1].html

    @property
    def text(self) -> str:
        """What people read."""
        return self.history[-1].text

    @property
    def entities(self) -> tuple[Mapping[str, JsonValue], ...]:
        """What its text is marked with."""
        return self.history[-1].entities

    @property
    def markup(self) -> Mapping[str, JsonValue] | None:
        """Its ``reply_markup``."""
        return self.history[-1].markup

    @property
    def edits(self) -> int:
        """How often it was edited."""
        return len(self.history) - 1

    @property
    def sent_at(self) -> float:
        """When it was sent."""
        return self.history[0].at

    @property
    def edited_at(self) -> float | None:
        """When it was edited last."""
        return self.history[-1].at if self.edits else None

    @property
    def buttons(self) -> list[list[str]]:
        """The labels of its inline keyboard, row by row."""
        rows: list[list[dict[str, str]]] = (self.markup or {}).get("inline_keyboard", [])
        return [[button["text"] for button in row] for row in rows]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A draft, as it was at some time."""

    chat: Chat
    id: int
    at: float
    html: str
    text: str
    thread: int | None = None


@dataclass(eq=False, kw_only=True, slots=True)
class Query:
    """A callback query: a button was pressed."""

    id: str
    at: float
    answer: Mapping[str, str] | None = None


@dataclass(eq=False, kw_only=True, slots=True)
class Chat:
    """A private chat or a group."""

    world: World = field(repr=False)
    id: int
    kind: ChatKind
    title: str
    forum: bool = False
    everything: list[Post] = field(default_factory=list["Post"], repr=False)
    """All messages: people's, and deleted ones too."""
    threads: dict[int, str] = field(default_factory=dict[int, str])
    """Topics of a forum."""
    closed: str = ""
    """Why the bot may not write, in Telegram's words."""

    @property
    def messages(self) -> list[Post]:
        """The bot's messages that are not deleted, in order."""
        return [post for post in self.everything if post.by is None and not post.deleted]

    @property
    def texts(self) -> list[str]:
        """What the bot's messages say."""
        return [post.text for post in self.messages]

    @property
    def draft(self) -> Draft | None:
        """The draft that shows now."""
        return self.world.draft_of(self)

    def message(self, id: int) -> Post:  # noqa: A002 - as Telegram calls it
        """Return a message by its id."""
        return next(post for post in self.everything if post.id == id)

    def topic(self, name: str) -> int:
        """Open a topic of a forum, and return its ``message_thread_id``."""
        return self.world.open_topic(self, name)

    def throws_out(self) -> None:
        """Remove the bot from the group."""
        self.world.throw_out(self)


@dataclass(eq=False, kw_only=True, slots=True)
class Person:
    """Somebody who uses Telegram."""

    world: World = field(repr=False)
    id: int
    name: str
    username: str | None = None
    started: bool = True
    """Whether the person has ever written to the bot, which may not write first."""

    @property
    def chat(self) -> Chat:
        """The person's chat with the bot."""
        return self.world.chat(self.id)

    def says(
        self,
        text: str,
        *,
        chat: Chat | None = None,
        thread: int | None = None,
        reply_to: Post | None = None,
    ) -> Post:
        """Send a text: to the bot, or to a group."""
        return self.world.hear(self, text, chat=chat, thread=thread, reply_to=reply_to)

    def sends_photo(self, caption: str = "", *, chat: Chat | None = None) -> Post:
        """Send a photo, which is a message without a text."""
        return self.world.hear(self, caption, chat=chat, photo=True)

    def edits(self, post: Post, text: str) -> None:
        """Edit a message of the person's."""
        self.world.change(post, text)

    def deletes(self, post: Post) -> None:
        """Delete a message. The bot is not told."""
        self.world.remove(post)

    def blocks(self) -> None:
        """Block the bot."""
        self.world.block(self, blocked=True)

    def unblocks(self) -> None:
        """Start the bot again."""
        self.world.block(self, blocked=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """Something that goes wrong with a request."""

    kind: Literal["unreachable", "lost", "error", "garbage", "throttled", "slow"]
    status: int = 0
    seconds: float = 0.0
    done: bool = True
    """Whether what was asked for happens all the same."""

    @classmethod
    def unreachable(cls) -> Trouble:
        """Fail to connect; in memory an `httpx.ConnectError`, on a port the answer is cut off."""
        return cls(kind="unreachable", done=False)

    @classmethod
    def lost(cls) -> Trouble:
        """Do it, and lose the connection: in memory an `httpx.ReadError`, on a port the answer is cut off."""
        return cls(kind="lost")

    @classmethod
    def error(cls, status: int, *, done: bool = False) -> Trouble:
        """Answer with an error of the server: 500 is JSON, what is above the HTML page of a proxy."""
        return cls(kind="error", status=status, done=done)

    @classmethod
    def garbage(cls) -> Trouble:
        """Do it, and answer with half of a JSON value."""
        return cls(kind="garbage")

    @classmethod
    def throttled(cls, seconds: int) -> Trouble:
        """Answer 429 with this ``retry_after``. What counts for limits is not taken before, in this chat."""
        return cls(kind="throttled", seconds=seconds, done=False)

    @classmethod
    def slow(cls, seconds: float) -> Trouble:
        """Do it at once, and answer later."""
        return cls(kind="slow", seconds=seconds)


@dataclass(eq=False, kw_only=True, slots=True)
class Call:
    """A request."""

    method: str
    """As in the documentation: ``sendMessage``. An unknown one: as it came."""
    parameters: Mapping[str, str]
    """As they came, from wherever in the request; objects are JSON."""
    at: float
    """When it came: `anyio.current_time`."""
    ended: float | None = None
    """When it was answered; ``None``: it runs, or was given up by the client."""
    status: int | None = None
    """The answer's, in HTTP; ``None``: there was none."""
    answer: dict[str, JsonValue] | None = None
    """The answer's body; ``None``: it was no JSON, or there was none."""
    trouble: Trouble | None = None
    """What was made to go wrong."""

    def json(self, name: str) -> JsonValue:
        """Return what a parameter says that is JSON; ``None`` where it is not given."""
        value = self.parameters.get(name)
        return None if value is None else json.loads(value)

    @property
    def chat_id(self) -> int | None:
        """To which chat it was."""
        value = self.parameters.get("chat_id")
        return None if value is None else int(value)

    @property
    def description(self) -> str | None:
        """What the error of the answer says."""
        description: str | None = (self.answer or {}).get("description")
        return description
