"""The background threads: one listens, one renews the lease.

They are not tasks: redis-py's asynchronous client is for asyncio only, and a blocked event loop must not cost
a process its runs.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, TypeAlias

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from thinkwell.journal._errors import JournalError
from thinkwell.journal._redis_scripts import RENEW

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.journal._redis_link import Message, PubSub, RedisLink

FIRST_PAUSE: Final = 0.05
"""Seconds before the first further attempt to reach Redis. Each is twice as long as the one before."""

LONGEST_PAUSE: Final = 1.0

LOOK_EVERY: Final = 1.0
"""Seconds after which the listener checks its channels, in case it was not woken."""

JOIN: Final = 1.0
"""Seconds for a thread to end. One that waits for a dead connection ends later, by its timeout."""

logger = logging.getLogger("thinkwell")

Heard: TypeAlias = tuple[bytes, bytes | None]
"""A channel and a message; ``None``: from now on, no message is missed."""


class _Background(ABC):
    """A thread that runs until it is stopped."""

    def __init__(self, link: RedisLink, name: str) -> None:
        self._link = link
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"thinkwell {name}", daemon=True)

    def start(self) -> None:
        """Start."""
        self._thread.start()

    def stop(self) -> None:
        """Tell it to end."""
        self._stopping.set()

    def join(self) -> None:
        """Wait for its end, for a limited time."""
        self._thread.join(JOIN)

    @abstractmethod
    def _main(self) -> None: ...


class LeaseKeeper(_Background):
    """Renews the lease of this process, without which others take its runs.

    Args:
        link: The connection to Redis.
        owner: The process.
        seconds: The duration of the lease.
        is_needed: Returns whether the lease is still needed.
        on_lost: Called in the thread when runs were taken from this process.
    """

    def __init__(
        self,
        link: RedisLink,
        owner: str,
        seconds: float,
        *,
        is_needed: Callable[[], bool],
        on_lost: Callable[[], None],
    ) -> None:
        super().__init__(link, "lease")
        self._owner = owner
        self._seconds = seconds
        self._is_needed = is_needed
        self._on_lost = on_lost

    def _main(self) -> None:
        pause = self._seconds / 3
        while not self._stopping.wait(pause) and self._is_needed():
            pause = self._seconds / 3
            try:
                known = self._link.run(RENEW, self._owner, round(self._seconds * 1000))
            except JournalError:  # the listener reports it
                pause = min(LONGEST_PAUSE, pause)
            else:
                if not known:
                    self._on_lost()


class Listener(_Background):
    """Listens to channels, with one connection that is reopened as often as necessary.

    Args:
        link: The connection to Redis.
        own: The channel that it always listens to. Empty messages there only wake the listener.
        patience: Seconds of silence after which the connection is tested.
        on_heard: Called with each message, in the thread.
    """

    def __init__(
        self,
        link: RedisLink,
        own: bytes,
        *,
        patience: float,
        on_heard: Callable[[Heard], None],
    ) -> None:
        super().__init__(link, "listener")
        self._own = own
        self._patience = patience
        self._on_heard = on_heard
        self._lock = threading.Lock()
        self._wanted = {own}
        self._version = 1
        """Of the wanted channels."""
        self._pause = FIRST_PAUSE
        self._is_away = False

    def want(self, channel: bytes) -> None:
        """Listen to a channel too, as soon as the listener is woken."""
        with self._lock:
            self._wanted.add(channel)
            self._version += 1

    def unwant(self, channel: bytes) -> None:
        """Stop listening to a channel."""
        with self._lock:
            self._wanted.discard(channel)
            self._version += 1

    def _main(self) -> None:
        while not self._stopping.is_set():
            pubsub = self._link.pubsub()
            try:
                self._listen(pubsub)
            except (RedisError, OSError, UnicodeError) as exc:
                error = self._link.explain(exc)
                logger.log(logging.DEBUG if self._is_away else logging.WARNING, "%s", error)
                self._is_away = True
                self._stopping.wait(self._pause)
                self._pause = min(LONGEST_PAUSE, self._pause * 2)
            finally:
                pubsub.close()

    def _listen(self, pubsub: PubSub) -> None:
        listened = {self._own}
        pubsub.subscribe(self._own)  # first: it shows that the connection works
        version = 0
        heard, asked = time.monotonic(), False
        while not self._stopping.is_set():
            if version != self._version:
                version, wanted = self._get_wanted()
                if wanted - listened:
                    pubsub.subscribe(*wanted - listened)
                if listened - wanted:
                    pubsub.unsubscribe(*listened - wanted)
                listened = wanted
            message = pubsub.get_message(timeout=LOOK_EVERY)
            if message is not None:
                self._take(message)
                heard, asked = time.monotonic(), False
                continue
            silence = time.monotonic() - heard
            if silence > 2 * self._patience:
                raise RedisConnectionError("the connection is silent")
            if silence > self._patience and not asked:
                asked = True
                pubsub.ping()

    def _get_wanted(self) -> tuple[int, set[bytes]]:
        with self._lock:
            return self._version, set(self._wanted)

    def _take(self, message: Message) -> None:
        channel, data = message["channel"], message["data"]
        if message["type"] == "subscribe":
            if channel == self._own:
                if self._is_away:
                    logger.info("%s: it is back", self._link.where)
                self._is_away = False
                self._pause = FIRST_PAUSE
            self._on_heard((channel, None))
        elif message["type"] == "message" and isinstance(data, bytes) and data:
            self._on_heard((channel, data))
