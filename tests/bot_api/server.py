"""A server of the Telegram Bot API for tests: see `BotApi`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot_api.values import Call, Chat, Draft, Person, Post, Trouble

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from thinkwell.events import JsonValue

TOKEN = "42:test-token-that-nobody-may-see"


class BotApi:
    """One bot's Bot API, as an ASGI application: with `bot_api.serving.client` in memory, on either event loop and
    in virtual time, or with `bot_api.serving.serving` on a loopback port.

    ::

        api = BotApi()
        ada = api.user(7, "Ada")
        async with client(api) as http:       # httpx.AsyncClient, base_url "https://api.telegram.org"
            ada.says("hello")                 # an update
            ...
            await api.until(lambda: len(ada.chat.texts) == 1)
        api.press(ada.chat.messages[-1], "Allow")
    """

    def __init__(
        self,
        token: str = TOKEN,
        *,
        name: str = "Test bot",
        username: str = "test_bot",
        limits: bool = True,
        reads_all: bool = True,
    ) -> None:
        """Args: limits: whether there are 429s; reads_all: False is the bot's privacy mode in groups."""
        self.token = token
        self.calls: list[Call] = []
        """Every request, in the order of their arrival; `getUpdates` too."""
        raise NotImplementedError

    # People and chats

    def user(
        self,
        id: int,
        name: str = "Ada",
        *,
        username: str | None = None,
        started: bool = True,  # noqa: A002
    ) -> Person:
        """Return the person of this id, whose private chat is `Person.chat`. Not started: the bot may not write."""
        raise NotImplementedError

    def group(self, id: int, title: str = "Group", *, forum: bool = False) -> Chat:  # noqa: A002
        """Return the group of this id, which is below 0 (below -1000000000000: a supergroup)."""
        raise NotImplementedError

    def chat(self, id: int) -> Chat:  # noqa: A002
        """Return a chat that there is."""
        raise NotImplementedError

    def press(self, message: Post, button: str, *, by: Person | None = None) -> str:
        """Press an inline button, by its label or else its data. Return the id of the callback query.

        In a private chat it is its person who does, unless ``by`` says otherwise.
        """
        raise NotImplementedError

    def update(self, body: Mapping[str, JsonValue]) -> int:
        """Add an update of any kind, ``{"poll": …}``, as it is. Return its ``update_id``."""
        raise NotImplementedError

    # What the bot did

    @property
    def sent(self) -> list[Post]:
        """Every message of the bot's, over all chats, in order; deleted ones too."""
        raise NotImplementedError

    def calls_of(self, *methods: str) -> list[Call]:
        """Return the calls of methods such as ``"sendMessage"``."""
        raise NotImplementedError

    @property
    def throttled(self) -> int:
        """How often the answer was 429."""
        raise NotImplementedError

    @property
    def refused(self) -> list[Call]:
        """The calls that ended with an error of another kind than 429: 400, 401, 403, 404, 409."""
        raise NotImplementedError

    @property
    def typing(self) -> list[Call]:
        """The chat actions."""
        raise NotImplementedError

    @property
    def drafts(self) -> list[Draft]:
        """Every version of every draft."""
        raise NotImplementedError

    @property
    def pending(self) -> int:
        """How many updates are not acknowledged."""
        raise NotImplementedError

    @property
    def waiting(self) -> bool:
        """Whether somebody polls now, and has to wait."""
        raise NotImplementedError

    def query_answer(self, query: str) -> Mapping[str, str] | None:
        """Return with which parameters a callback query was answered; ``None``: not yet."""
        raise NotImplementedError

    async def changed(self) -> None:
        """Wait for the next call to begin or to end, or the next thing that somebody does."""
        raise NotImplementedError

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on this server holds; it may hold already."""
        raise NotImplementedError

    # What goes wrong

    def trouble(self, method: str, *troubles: Trouble | None) -> None:
        """Script what becomes of the next calls of a method, or of any (``"*"``). ``None``: nothing special."""
        raise NotImplementedError

    def chaos(
        self, seed: int, troubles: Sequence[tuple[Trouble, float]], *, methods: Sequence[str] = ()
    ) -> None:
        """From now on, throw dice for every call: each trouble has its probability. No methods: all."""
        raise NotImplementedError

    def no_trouble(self) -> None:
        """End what `trouble` and `chaos` began."""
        raise NotImplementedError

    async def __call__(
        self,
        scope: dict[str, object],
        receive: Callable[[], Awaitable[dict[str, object]]],
        send: Callable[[dict[str, object]], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        raise NotImplementedError
