"""Listens to the channels of Redis, in a thread."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from thinkwell.journal._redis_link import Message, PubSub, RedisLink

FIRST_PAUSE: Final = 0.05
"""Seconds before the first further attempt to reach Redis. Each is twice as long as the one before."""

LONGEST_PAUSE: Final = 1.0

LOOK_EVERY: Final = 1.0
"""Seconds after which the listener checks its channels, in case it was not woken."""

logger = logging.getLogger("thinkwell")


class Listener:
    """Listens to channels, with one connection that is reopened as often as necessary.

    Args:
        link: The connection to Redis.
        own: The channel that it always listens to. Empty messages there only wake the listener.
        patience: Seconds of silence after which the connection is tested.
        stopping: Tells it to end.
        on_heard: Called in the thread with a channel and a message; ``None``: from now on, none is missed.
    """

    def __init__(
        self,
        link: RedisLink,
        own: bytes,
        *,
        patience: float,
        stopping: threading.Event,
        on_heard: Callable[[bytes, bytes | None], None],
    ) -> None:
        self._link = link
        self._own = own
        self._patience = patience
        self._stopping = stopping
        self._on_heard = on_heard
        self._wanted = frozenset({own})
        """The channels to listen to. Only the thread of the event loop replaces them."""
        self._pause = FIRST_PAUSE
        self._is_away = False

    def want(self, channel: bytes) -> None:
        """Listen to a channel too, as soon as the listener is woken."""
        self._wanted |= {channel}

    def unwant(self, channel: bytes) -> None:
        """Stop listening to a channel."""
        self._wanted -= {channel}

    def run(self) -> None:
        """Listen until it is stopped."""
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
        listened = frozenset({self._own})
        pubsub.subscribe(self._own)  # first: it shows that the connection works
        heard, asked = time.monotonic(), False
        while not self._stopping.is_set():
            wanted = self._wanted
            if wanted is not listened:
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

    def _take(self, message: Message) -> None:
        channel, data = message["channel"], message["data"]
        if message["type"] == "subscribe":
            if channel == self._own:
                if self._is_away:
                    logger.info("%s: it is back", self._link.where)
                self._is_away = False
                self._pause = FIRST_PAUSE
            self._on_heard(channel, None)
        elif message["type"] == "message" and isinstance(data, bytes) and data:
            self._on_heard(channel, data)
