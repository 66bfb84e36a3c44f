"""What a server of the Bot API has to do with: people, chats, messages, and what became of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.events import JsonValue


class Version(Struct, frozen=True, kw_only=True):
    """What a message was at some time."""

    at: float
    """`anyio.current_time`."""
    html: str
    """As the bot wrote it; without ``parse_mode``, its text, escaped."""
    text: str
    """Entities parsed, cleaned and trimmed as Telegram does."""
    entities: tuple[Mapping[str, JsonValue], ...] = ()
    """Offsets and lengths are UTF-16 units."""
    markup: Mapping[str, JsonValue] | None = None


class Post(Struct, kw_only=True, eq=False):
    """A message: of the bot or of a person."""

    id: int
    chat: Chat
    history: list[Version]
    by: Person | None = None
    """``None``: the bot."""
    thread: int | None = None
    reply_to: Post | None = None
    deleted: bool = False

    # properties, those of the last version:
    #   html, text, entities, markup, sent_at (of the first), edited_at, edits (how many),
    #   buttons (labels: list of rows of str)


class Draft(Struct, frozen=True, kw_only=True):
    """A draft, as it was at some time."""

    chat: Chat
    id: int
    at: float
    text: str
    html: str
    thread: int | None = None


class Call(Struct, kw_only=True, eq=False):
    """A request."""

    method: str
    """As in the documentation: ``sendMessage``."""
    parameters: Mapping[str, str]
    """As they came; objects are JSON."""
    at: float
    """When it came: `anyio.current_time`."""
    ended: float | None = None
    """When it was answered; ``None``: it runs, or was given up by the client."""
    status: int | None = None
    """Of HTTP; ``None``: not answered."""
    answer: JsonValue = None
    trouble: Trouble | None = None

    # def json(name) -> JsonValue; properties: chat_id: int | None, description: str | None


class Trouble(Struct, frozen=True, kw_only=True):
    """What goes wrong with a call. See the constructors."""

    kind: Literal["unreachable", "lost", "error", "garbage", "throttled", "slow"]
    status: int = 0
    seconds: float = 0.0
    done: bool = False

    # @classmethod constructors:
    #   unreachable()              the connection fails before anything is done (httpx.ConnectError)
    #   lost()                     done, and the connection fails before the answer (httpx.ReadError or RemoteProtocolError)
    #   error(status, done=False)  500: JSON; 502, 503, 504: HTML of a proxy. done: it was done all the same
    #   garbage()                  done, and the answer is no JSON
    #   throttled(seconds)         429 with this retry_after, not done
    #   slow(seconds)              done at once, the answer comes later (a client may give up: httpx.ReadTimeout)


class Person(Struct, kw_only=True, eq=False):
    """Somebody who uses Telegram. Made by `BotApi.user`."""

    id: int
    name: str
    username: str | None = None

    # chat -> Chat (the private one)
    # says(text, *, chat: Chat | None = None, thread: int | None = None, reply_to: Post | None = None) -> Post
    # edits(post, text) -> None          an edited_message update
    # sends_photo(caption="", *, chat=None) -> Post       a message without text
    # blocks() / unblocks()              403 from then on; a my_chat_member update
    # deletes(post) -> None               nobody is told of it


class Chat(Struct, kw_only=True, eq=False):
    """A private chat or a group."""

    id: int
    kind: Literal["private", "group", "supergroup"]
    title: str
    forum: bool = False

    # messages -> list[Post]: the bot's messages that are not deleted, in order
    # everything -> list[Post]: people's and deleted ones too
    # texts -> list[str]: texts of `messages`
    # message(id) -> Post
    # draft -> Draft | None: what shows now
    # topic(name) -> int: a new message_thread_id (forum only)
    # throws_out() : the bot is no member any more (403)
