"""The connections to Redis, and the meaning of their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypedDict, cast
from urllib.parse import urlsplit

from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    AuthorizationError,
    ClusterCrossSlotError,
    ClusterError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from thinkwell.journal._errors import JournalError, JournalUnwritable
from thinkwell.journal._redis_scripts import PRELUDE

if TYPE_CHECKING:
    from collections.abc import Callable

Reply: TypeAlias = "int | bytes | list[Reply] | None"
"""The result of a script."""

REFUSED: Final = (AuthenticationError, AuthenticationWrongNumberOfArgsError, AuthorizationError)

PASSING: Final = ("-READONLY ", "BUSY Redis", "MASTERDOWN ")
"""The answers of Redis during a failover or while it is busy. Redis 6 has them inside another error."""

CLUSTER: Final = ("ASK ", "CLUSTERDOWN ", "CROSSSLOT ", "MOVED ")
"""The answers of a cluster for which redis-py has no error."""

SHOWN: Final = 200
"""Characters of an answer of Redis that are shown."""


class Message(TypedDict):
    """A message from redis-py."""

    type: str
    channel: bytes
    data: bytes | int


class PubSub(Protocol):
    """The part of redis-py for listening. Its own types differ between versions."""

    def subscribe(self, *channels: bytes) -> None: ...
    def unsubscribe(self, *channels: bytes) -> None: ...
    def get_message(self, *, timeout: float) -> Message | None: ...
    def ping(self) -> object: ...
    def close(self) -> None: ...


class Client(Protocol):
    """The part of redis-py for commands."""

    def publish(self, channel: bytes, message: bytes) -> object: ...
    def register_script(self, script: str) -> Callable[..., object]: ...
    def pubsub(self) -> PubSub: ...


class RedisAway(JournalError):  # noqa: N818 - says what happened, to be tried again
    """Redis cannot be reached now."""


class RedisLink:
    """Sends each command to Redis once, from any thread.

    Args:
        url: Its address, as for redis-py.
        prefix: The prefix of all keys.
        timeout: Seconds to wait for a connection, and for an answer.

    Raises:
        ValueError: The URL is not one of Redis.
    """

    def __init__(self, url: str, *, prefix: str, timeout: float) -> None:
        _check_url(url)
        try:
            # The URL has priority.
            self._pool = ConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
                url, socket_timeout=timeout, socket_connect_timeout=timeout, protocol=2
            )
            settings = self._pool.connection_kwargs
            # The callers repeat commands, if that is possible.
            settings |= {"retry": Retry(NoBackoff(), 0), "decode_responses": False, "protocol": 2}
            self._pool.make_connection()
        except (TypeError, ValueError) as exc:
            raise ValueError(f"RedisJournal(url=…): redis-py does not take its options: {exc}") from None
        self.where = _where(settings)
        self._secrets = [str(settings[name]) for name in ("password", "username") if settings.get(name)]
        self._client = cast("Client", Redis(connection_pool=self._pool))
        self._key = prefix + ":"

    def run(self, script: str, *args: str | bytes | float) -> Reply:
        """Run a script.

        Raises:
            RedisAway: There was no answer: it is not known whether the script has run.
            JournalError: It failed.
        """
        words = [as_bytes(arg) if isinstance(arg, str) else arg for arg in args]
        try:
            registered = self._client.register_script(PRELUDE + script)
            return cast("Reply", registered(keys=(as_bytes(self._key),), args=words))
        except (RedisError, OSError, UnicodeError) as exc:
            raise self.explain(exc) from None

    def publish(self, channel: str, data: bytes) -> None:
        """Send a message to the current listeners of a channel.

        Raises:
            JournalError: As in `run`.
        """
        try:
            self._client.publish(self.channel(channel), data)
        except (RedisError, OSError, UnicodeError) as exc:
            raise self.explain(exc) from None

    def channel(self, name: str) -> bytes:
        """Return the name of a channel in Redis."""
        return as_bytes(self._key + name)

    def pubsub(self) -> PubSub:
        """Return a listener for channels, with its own connection."""
        return self._client.pubsub()

    def close(self) -> None:
        """Close all connections. They are reopened when they are needed."""
        self._pool.disconnect(inuse_connections=False)

    def explain(self, error: Exception) -> JournalError:
        """Return our error for an error of redis-py."""
        said = " ".join(str(error).split()) or type(error).__name__
        for secret in self._secrets:
            said = said.replace(secret, "…")
        said = said[:SHOWN]
        if isinstance(error, REFUSED):
            return JournalError(self.where, f"it refuses the user or the password of the URL: {said}")
        if isinstance(error, NoPermissionError):
            rights = f"~{self._key}* &{self._key}* +@all -@dangerous"
            return JournalError(self.where, f"the user of the URL may not do that; give it {rights}: {said}")
        if isinstance(error, ReadOnlyError | MasterDownError) or any(word in said for word in PASSING):
            # A replica that took over has another address behind the same name.
            self._pool.disconnect(inuse_connections=False)
            return RedisAway(self.where, f"it can store nothing now: {said}")
        if isinstance(error, AskError | ClusterError | ClusterCrossSlotError) or said.startswith(CLUSTER):
            return JournalError(self.where, f"it is a cluster, which cannot store runs: {said}")
        if isinstance(error, OutOfMemoryError) or "-OOM " in said:
            about = "its memory is full; raise its maxmemory, or forget more runs (Retention)"
            return JournalUnwritable(self.where, f"{about}: {said}", "the memory of Redis is full")
        if "MISCONF " in said:
            about = "its disk is full, or has failed; make room, then try again"
            return JournalUnwritable(
                self.where, f"{about}: {said}", "the disk of Redis is full, or has failed"
            )
        if isinstance(error, ResponseError):
            return JournalError(self.where, f"it refuses what was asked: {said}")
        if isinstance(error, RedisConnectionError | RedisTimeoutError | OSError):
            about = "it cannot be reached; is it running, and is the URL right?"
            return RedisAway(self.where, f"{about} {said}")
        return JournalError(self.where, f"that is not a Redis, or its name cannot be read: {said}")


def as_bytes(text: str) -> bytes:
    """Return a text as it is stored in Redis. It may contain anything."""
    return text.encode("utf-8", "surrogatepass")


def as_text(data: bytes) -> str:
    """Return a text from Redis."""
    return data.decode("utf-8", "surrogatepass")


def _check_url(url: str) -> None:
    """Refuse URLs that redis-py would misunderstand. The URL is not shown: it may contain a password."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises
    except ValueError:
        parts = urlsplit("")
    scheme = parts.scheme
    good = scheme in ("redis", "rediss", "unix") and not parts.fragment
    if scheme == "unix":
        good = good and bool(parts.path)
    else:
        good = good and bool(parts.hostname) and (parts.path in ("", "/") or parts.path[1:].isdecimal())
    if not good:
        raise ValueError(
            "RedisJournal(url=…): it must be redis://host:port/number, rediss://… (TLS) or unix:///path, with"
            " user:password@ before the host where they are needed; percent-encode what is special in them"
        )


def _where(settings: dict[str, object]) -> str:
    """Return the address of Redis for messages."""
    path = settings.get("path")
    if path is not None:
        return f"Redis at {path}"
    return (
        f"Redis at {settings.get('host', 'localhost')}:{settings.get('port', 6379)}/{settings.get('db', 0)}"
    )
