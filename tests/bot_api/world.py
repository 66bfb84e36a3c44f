"""Who there is, and what was said: what Telegram knows of a bot, and what people do."""

from __future__ import annotations

import threading
import time
from html import escape
from typing import TYPE_CHECKING, Final

import anyio
from bot_api import wire
from bot_api.bell import Bell
from bot_api.feed import Feed
from bot_api.limits import Limits
from bot_api.values import PREVIEW, Chat, ChatKind, Draft, Person, Post, Query, Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.events import JsonValue

__all__ = ("World",)

SUPERGROUPS: Final = -1_000_000_000_000
"""Ids of supergroups are below."""

SHORT_WAIT: Final = 15.0
"""Seconds in which a callback query can be answered. Telegram does not tell; bots report little more."""


class World:
    """Telegram, as far as it concerns one bot.

    People may act from any thread. What a request finds and does is one step for all others.

    Args:
        token: The bot's.
        name: The bot's.
        username: The bot's.
        limits: Whether there are any: see `bot_api.limits`.
        reads_all: Whether the bot gets all texts in groups; if not, only commands and answers to its own.
    """

    def __init__(self, token: str, *, name: str, username: str, limits: bool, reads_all: bool) -> None:
        self.token = token
        self.name = name
        self.username = username
        self.reads_all = reads_all
        self.webhook = ""
        """The address that updates are sent to; while there is one, they cannot be fetched."""
        self.commands: list[dict[str, str]] = []
        """The bot's menu."""
        self.sent: list[Post] = []
        """Every message of the bot's, over all chats, in order; deleted ones too."""
        self.drafts: list[Draft] = []
        """Every version of every draft."""
        self.limits = Limits(enforced=limits)
        self.feed = Feed()
        self.bell = Bell()
        self.lock = threading.RLock()
        self._people: dict[int, Person] = {}
        self._chats: dict[int, Chat] = {}
        self._queries: dict[str, Query] = {}
        self._last_ids: dict[int, int] = {}
        self._shown_drafts: dict[int, Draft] = {}

    @property
    def bot_id(self) -> int:
        """The first part of the token."""
        return int(self.token.partition(":")[0])

    def now(self) -> float:
        """Return the time: of the event loop, where one runs."""
        try:
            return anyio.current_time()
        except anyio.NoEventLoopError:
            return time.monotonic()

    # Who there is

    def user(
        self,
        id: int,  # noqa: A002 - as Telegram calls it
        name: str = "Ada",
        *,
        username: str | None = None,
        started: bool = True,
    ) -> Person:
        """Return the person of this id, whose private chat with the bot is `Person.chat`.

        Args:
            id: Above 0.
            name: For a person who is new.
            username: For a person who is new.
            started: Whether the person has written to the bot before, which may write only then.
        """
        assert id > 0, "ids of people are above 0"
        with self.lock:
            if id not in self._people:
                self._people[id] = Person(world=self, id=id, name=name, username=username, started=started)
                self._chats[id] = Chat(world=self, id=id, kind="private", title=name)
            return self._people[id]

    def group(self, id: int, title: str = "Group", *, forum: bool = False) -> Chat:  # noqa: A002 - likewise
        """Return the group of this id: below 0; below -1,000,000,000,000 it is a supergroup."""
        assert id < 0, "ids of groups are below 0"
        with self.lock:
            if id not in self._chats:
                kind: ChatKind = "supergroup" if id < SUPERGROUPS else "group"
                self._chats[id] = Chat(world=self, id=id, kind=kind, title=title, forum=forum)
            return self._chats[id]

    def chat(self, id: int) -> Chat:  # noqa: A002 - likewise
        """Return a chat that there is.

        Raises:
            KeyError: There is none.
        """
        return self._chats[id]

    def known_chat(self, id: int) -> Chat | None:  # noqa: A002 - likewise
        """Return a chat, where there is one."""
        return self._chats.get(id)

    def person_of(self, chat: Chat) -> Person | None:
        """Return whose private chat it is."""
        return self._people.get(chat.id)

    # What people do

    def hear(
        self,
        by: Person,
        text: str,
        *,
        chat: Chat | None = None,
        thread: int | None = None,
        reply_to: Post | None = None,
        photo: bool = False,
    ) -> Post:
        """Let a person send a message."""
        with self.lock:
            chat = by.chat if chat is None else chat
            if chat is by.chat:
                assert not chat.closed, f"{by.name} has blocked the bot"
                by.started = True
            said = Version(
                at=self.now(), html=escape(text, quote=False), text=text, entities=wire.commands(text)
            )
            post = self._keep(chat, said, by=by, thread=thread, reply_to=reply_to, photo=photo)
            if self._shown_to_bot(post):
                self.add_update({"message": wire.post(self, post)})
            self.bell.ring()
            return post

    def _shown_to_bot(self, post: Post) -> bool:
        """Return whether the bot's privacy mode lets it read a message (Bots, Privacy mode)."""
        answers = post.reply_to is not None and post.reply_to.by is None
        named = f"@{self.username}".lower() in post.text.lower()
        return post.chat.kind == "private" or self.reads_all or answers or named or post.text.startswith("/")

    def change(self, post: Post, text: str) -> None:
        """Let a person edit a message."""
        with self.lock:
            assert post.by is not None, "people cannot edit the bot's messages"
            said = Version(
                at=self.now(), html=escape(text, quote=False), text=text, entities=wire.commands(text)
            )
            post.history.append(said)
            self.add_update({"edited_message": wire.post(self, post)})
            self.bell.ring()

    def remove(self, post: Post) -> None:
        """Delete a message."""
        with self.lock:
            post.deleted = True
            self.bell.ring()

    def block(self, person: Person, *, blocked: bool) -> None:
        """Let a person block the bot, or start it again."""
        with self.lock:
            person.chat.closed = "Forbidden: bot was blocked by the user" if blocked else ""
            person.started = True
            self._tell_membership(person.chat, "kicked" if blocked else "member", person)

    def throw_out(self, chat: Chat) -> None:
        """Let somebody remove the bot from a group."""
        with self.lock:
            chat.closed = f"Forbidden: bot was kicked from the {chat.kind} chat"
            self._tell_membership(chat, "kicked", self.user(777_000, "Admin"))

    def _tell_membership(self, chat: Chat, status: str, by: Person) -> None:
        self.add_update({"my_chat_member": wire.membership(self, chat, status, by)})
        self.bell.ring()

    def open_topic(self, chat: Chat, name: str) -> int:
        """Let somebody open a topic in a forum."""
        with self.lock:
            assert chat.forum, f"{chat.title} has no topics"
            thread = self._new_id(chat)
            chat.threads[thread] = name
            return thread

    def press(self, message: Post, button: str, *, by: Person | None = None) -> str:
        """Press an inline button, and return the id of the callback query.

        A button that an edit took away can still be pressed: the person's device may not know of it yet.

        Args:
            message: The bot's.
            button: The button's label, or else its data.
            by: Who presses; ``None``: the person of the private chat.

        Raises:
            ValueError: There is no such button, or it does something else.
        """
        with self.lock:
            by = by or self.person_of(message.chat)
            assert by is not None, "say by whom, in a group"
            data = wire.data_of(message, button)
            query = Query(id=str(4_100_000_000_000_000_000 + len(self._queries)), at=self.now())
            self._queries[query.id] = query
            self.add_update({"callback_query": wire.callback_query(self, query, message, by, data)})
            self.bell.ring()
            return query.id

    def update(self, body: Mapping[str, JsonValue]) -> int | None:
        """Add an update of any kind, as it is: ``{"poll": {…}}``. Return its id; ``None``: not wanted."""
        with self.lock:
            number = self.add_update(body)
            self.bell.ring()
            return number

    def add_update(self, body: Mapping[str, JsonValue]) -> int | None:
        """Add an update, unless updates of its kind are not wanted."""
        ((kind, value),) = body.items()
        return self.feed.add(kind, value)

    # What is there

    def query(self, id: str) -> Query | None:  # noqa: A002 - as Telegram calls it
        """Return a callback query that can be answered still."""
        query = self._queries.get(id)
        in_time = query is not None and query.answer is None and self.now() - query.at <= SHORT_WAIT
        return query if in_time else None

    def query_answer(self, id: str) -> Mapping[str, str] | None:  # noqa: A002 - likewise
        """Return with which parameters a callback query was answered; ``None``: it was not, or too late."""
        return self._queries[id].answer

    def draft_of(self, chat: Chat) -> Draft | None:
        """Return the draft that shows now in a chat: until it ends, or the bot sends a message."""
        draft = self._shown_drafts.get(chat.id)
        return draft if draft is not None and self.now() - draft.at < PREVIEW else None

    # What the bot does

    def say(self, chat: Chat, said: Version, *, thread: int | None, reply_to: Post | None) -> Post:
        """Send a message of the bot's."""
        post = self._keep(chat, said, by=None, thread=thread, reply_to=reply_to, photo=False)
        self.sent.append(post)
        self._shown_drafts.pop(chat.id, None)
        return post

    def show_draft(self, draft: Draft) -> None:
        """Show a draft of the bot's instead of the last one."""
        self.drafts.append(draft)
        self._shown_drafts[draft.chat.id] = draft

    def _keep(
        self,
        chat: Chat,
        said: Version,
        *,
        by: Person | None,
        thread: int | None,
        reply_to: Post | None,
        photo: bool,
    ) -> Post:
        post = Post(
            id=self._new_id(chat),
            chat=chat,
            history=[said],
            by=by,
            thread=thread,
            reply_to=reply_to,
            photo=photo,
        )
        chat.everything.append(post)
        return post

    def _new_id(self, chat: Chat) -> int:
        """Return the next id of a message: a supergroup counts its own, other chats are counted together."""
        counter = chat.id if chat.kind == "supergroup" else 0
        self._last_ids[counter] = self._last_ids.get(counter, 0) + 1
        return self._last_ids[counter]
