"""A server of the Telegram Bot API for tests: see `BotApi`."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Final

import anyio
from bot_api.exchange import BREAK_OFF, Exchange
from bot_api.methods import COUNTED, METHODS
from bot_api.rules import Arguments, Refusal, too_many_requests
from bot_api.values import Call, Trouble
from bot_api.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot_api.exchange import Receive, Scope, Send

    from thinkwell.events import JsonValue

__all__ = ("TOKEN", "BotApi")

TOKEN: Final = "42:a-token-of-the-tests"

LONGEST_POLL: Final = 50
"""Seconds (Telegram's server, ``LONG_POLL_MAX_TIMEOUT``)."""

HURRY: Final = 3.0
"""Seconds that conflicts, and polls of the same offset, are apart at least (Telegram's server)."""

HASTE: Final = 0.5
"""Seconds; polls of the same offset that are nearer than that get one update each (Telegram's server)."""

WEBHOOK_IS_ACTIVE: Final = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)

OTHER_POLL: Final = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)

_NAMES: Final = {name.lower(): name for name in (*METHODS, "getUpdates")}


class _Poll:
    """Somebody waits for updates."""

    ended = False
    """Whether somebody else does now."""


class BotApi(World):
    """One bot's Bot API, as an ASGI application.

    With `bot_api.serving.client` it is reached in memory, on either event loop and in virtual time; with
    `bot_api.serving.serving` on a loopback port.

    ::

        api = BotApi()
        ada = api.user(7, "Ada")
        async with client(api) as http:
            ada.says("hello")
            ...  # a bot that uses http
            await api.until(lambda: ada.chat.texts == ["hello yourself"])
            api.press(ada.chat.messages[-1], "Allow")

    What Telegram does is taken from its documentation and from the sources of its own server; see
    `bot_api.rules`. What is left out: Markdown, media of the bot's, links and mentions that Telegram finds in
    a text by itself, what is wrong with the address of a button, buttons of other kinds, webhooks.

    Args:
        token: The bot's.
        name: The bot's.
        username: The bot's.
        limits: Whether there are 429s: see `bot_api.limits`.
        reads_all: Whether the bot gets all texts in groups; if not, its privacy mode holds.
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
        super().__init__(token, name=name, username=username, limits=limits, reads_all=reads_all)
        self.calls: list[Call] = []
        """Every request of the bot's, in the order of their arrival; getUpdates too."""
        self._scripts: dict[str, deque[Trouble | None]] = {}
        self._dice: Callable[[str], Trouble | None] | None = None
        self._poll: _Poll | None = None
        self._last_poll = (-1, -HURRY)
        self._next_conflict = 0.0

    # What the bot did

    def calls_of(self, *methods: str) -> list[Call]:
        """Return the requests of methods such as ``sendMessage``."""
        return [call for call in self.calls if call.method in methods]

    @property
    def throttled(self) -> int:
        """How often the answer was 429, by the limits or by a trouble."""
        return sum(call.status == 429 for call in self.calls)

    @property
    def refused(self) -> list[Call]:
        """What was answered with an error that is the bot's own fault: 4xx, without 429."""
        return [call for call in self.calls if call.status in range(400, 500) and call.status != 429]

    @property
    def typing(self) -> list[Call]:
        """The chat actions."""
        return self.calls_of("sendChatAction")

    @property
    def pending(self) -> int:
        """How many updates are not acknowledged."""
        return len(self.feed.waiting)

    @property
    def polled(self) -> bool:
        """Whether somebody waits for updates now."""
        return self._poll is not None

    async def changed(self) -> None:
        """Wait for the next request to come or to be answered, or for the next thing that somebody does."""
        rung = iter((False,))
        await self.bell.until(lambda: next(rung, True))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds that depends on this server; it may hold already."""

        def holds() -> bool:
            with self.lock:
                return condition()

        await self.bell.until(holds)

    # What goes wrong

    def trouble(self, method: str, *troubles: Trouble | None) -> None:
        """Tell what goes wrong with the next requests of a method, or of any (``"*"``), one after another.

        ``None``: nothing. A script of the method itself goes first.
        """
        self._scripts.setdefault(method, deque()).extend(troubles)

    def chaos(
        self, seed: int, troubles: Sequence[tuple[Trouble, float]], *, methods: Sequence[str] = ()
    ) -> None:
        """From now on throw dice for every request without a script.

        Args:
            seed: Decides the dice.
            troubles: What may go wrong, and how probable each is: all together at most 1.
            methods: Only for these; none: for all.
        """
        random = Random(seed)

        def throw(method: str) -> Trouble | None:
            if methods and method not in methods:
                return None
            thrown = random.random()
            for trouble, probability in troubles:
                thrown -= probability
                if thrown < 0:
                    return trouble
            return None

        self._dice = throw

    def no_trouble(self) -> None:
        """End what `trouble` and `chaos` began."""
        self._scripts.clear()
        self._dice = None

    def _next_trouble(self, method: str) -> Trouble | None:
        for name in (method, "*"):
            if self._scripts.get(name):
                return self._scripts[name].popleft()
        return None if self._dice is None else self._dice(method)

    # How it is served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. A client that leaves ends it."""
        assert scope["type"] == "http", "no lifespan and no websockets"
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        exchange = Exchange(scope, body, send)
        if BREAK_OFF in scope.get("extensions", {}):
            await self._serve(exchange)
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
            await self._serve(exchange)
            tasks.cancel_scope.cancel()

    async def _serve(self, exchange: Exchange) -> None:
        prefix, _, rest = exchange.path.lstrip("/").partition("/")
        if not prefix.startswith("bot") or not rest:
            refusal = Refusal(404, "Not Found")
            await exchange.answer(refusal.status, refusal.answer)
            return
        method = _NAMES.get(rest.lower(), rest)
        with self.lock:
            trouble = self._next_trouble(method)
            call = Call(method=method, parameters=exchange.parameters, at=self.now(), trouble=trouble)
            self.calls.append(call)
            self.bell.ring()
        if trouble is None:
            await self._do(call, prefix[3:])
            await self._answer(call, exchange)
        else:
            await self._with_trouble(call, trouble, prefix[3:], exchange)
        call.ended = self.now()
        self.bell.ring()

    async def _answer(self, call: Call, exchange: Exchange) -> None:
        assert call.status is not None, "done"
        retry_after = (call.answer or {}).get("parameters", {}).get("retry_after")
        await exchange.answer(call.status, call.answer, retry_after)

    async def _with_trouble(self, call: Call, trouble: Trouble, token: str, exchange: Exchange) -> None:
        if trouble.done:
            await self._do(call, token)
        match trouble.kind:
            case "slow":
                await anyio.sleep(trouble.seconds)
                await self._answer(call, exchange)
            case "throttled":
                refusal = too_many_requests(int(trouble.seconds))
                if call.method in COUNTED:
                    self.limits.shut(
                        Arguments(call.parameters).number("chat_id"), self.now() + trouble.seconds
                    )
                call.status, call.answer = refusal.status, refusal.answer
                await self._answer(call, exchange)
            case "error" if trouble.status > 500:
                call.status, call.answer = trouble.status, None
                await exchange.answer_page(trouble.status)
            case "error":
                call.status = trouble.status
                call.answer = Refusal(trouble.status, "Internal Server Error").answer
                await exchange.answer(trouble.status, call.answer)
            case "garbage":
                call.status, call.answer = 200, None
                await exchange.answer_garbage()
            case _:
                call.status = call.answer = None
                await exchange.break_off(before=trouble.kind == "unreachable")

    async def _do(self, call: Call, token: str) -> None:
        """Do what is asked for, and keep what is to be answered."""
        try:
            call.answer = {"ok": True, "result": await self._result(call, token)}
            call.status = 200
        except Refusal as refusal:
            call.status, call.answer = refusal.status, refusal.answer

    async def _result(self, call: Call, token: str) -> JsonValue:
        if ":" not in token or len(token) > 80:
            raise Refusal(401, "Unauthorized: invalid token specified")
        if token != self.token:
            raise Refusal(401, "Unauthorized")
        given = Arguments(call.parameters)
        if call.method == "getUpdates":
            return await self._get_updates(given)
        if call.method not in METHODS:
            raise Refusal(404, "Not Found: method not found")
        with self.lock:
            result = METHODS[call.method](self, given)
            self.bell.ring()
            return result

    # Long polling: Telegram's server, process_get_updates_query and do_get_updates

    async def _get_updates(self, given: Arguments) -> JsonValue:
        offset = given.number("offset")
        limit = given.number("limit", 100, least=1, most=100)
        wait = given.number("timeout", least=0, most=LONGEST_POLL)
        if self.webhook:
            raise await self._conflict(WEBHOOK_IS_ACTIVE)
        with self.lock:
            self.feed.allow(given.json("allowed_updates", "can't parse allowed updates"))
            now = self.now()
            last_offset, last_time = self._last_poll
            if offset == last_offset and now < last_time + HURRY:
                wait = max(wait, int(HURRY))
            if offset == last_offset and now < last_time + HASTE:
                limit = 1
            self._last_poll = (offset, now)
            found = self.feed.take(offset, limit)
            if found or not wait:
                return found
            offset = max(offset, 0)  # what was to be forgotten is
            poll = _Poll()
            if self._poll is not None:
                self._poll.ended = True  # it is the one that waits that has to go
            self._poll = poll
            self.bell.ring()
        return await self._wait_for_updates(poll, offset, limit, wait)

    async def _wait_for_updates(self, poll: _Poll, offset: int, limit: int, wait: int) -> JsonValue:
        try:
            with anyio.move_on_after(wait):
                await self.until(lambda: poll.ended or bool(self.feed.take(offset, limit)))
        finally:
            with self.lock:
                if self._poll is poll:
                    self._poll = None
                    self.bell.ring()
        if poll.ended:
            raise await self._conflict(OTHER_POLL)
        return self.feed.take(offset, limit)

    async def _conflict(self, description: str) -> Refusal:
        """Return the error 409; where there was one just now, after a while."""
        if self.now() < self._next_conflict:
            await anyio.sleep(HURRY)
        else:
            self._next_conflict = self.now() + HURRY
        return Refusal(409, description)


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """End what is done for a client that has left."""
    await receive()
    scope.cancel()
