"""The identity of callers: tokens of programs, sessions of browsers, and the count of wrong guesses.

Tokens are kept as hashes, and compared in constant time. A session is a random value, of which the journal
has a hash: so every server that shares the journal knows it, also after a restart.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import re
import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.journal import Journal

SHORTEST: Final = 16
"""Least characters of a token. Generated tokens have more; guessable ones mostly have fewer."""

LONGEST: Final = 512

DIFFERENT: Final = 6
"""Least number of distinct characters in a token."""

LONGEST_NAME: Final = 100
"""Most characters of a caller's name."""

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
"""Characters that a header can contain, and a user can type."""

_VALUE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""Bytes of a session's value."""

MOST_WRONG: Final = 10
"""Most wrong secrets from one address that are answered normally within `WITHIN`."""

WITHIN: Final = 60.0
"""Seconds."""

PLACES: Final = 4096
"""Most addresses that are remembered. One more replaces the one that was silent for longest."""

KIND: Final = "web-session"
"""The kind of sessions in the journal."""

logger = logging.getLogger("thinkwell")


class Tokens:
    """The callers of tokens.

    Args:
        callers: Names of callers, by their tokens.

    Raises:
        ValueError: A token or a name is invalid. The message contains no token.
    """

    def __init__(self, callers: Mapping[str, str]) -> None:
        if not callers:
            raise ValueError("tokens: there is none; no one could use the server")
        for token, caller in callers.items():
            _check(token, caller)
        self._hashes = tuple((_hash(token), caller) for token, caller in callers.items())

    @property
    def callers(self) -> tuple[str, ...]:
        """The names of the callers."""
        return tuple(dict.fromkeys(caller for _, caller in self._hashes))

    def caller(self, token: str) -> str | None:
        """Return the caller of a token; ``None``: there is none."""
        owner = self._owner(_hash(token))
        return None if owner is None else owner[1]

    def seal(self, token: str, name: str) -> bytes | None:
        """Return a proof of a name that only its token can make; ``None``: the name is no caller's."""
        owner = self._owner(_hash(token))
        return None if owner is None else _seal(owner[0], name)

    def sealed_by(self, seal: bytes, name: str) -> str | None:
        """Return the caller whose token has proved a name; ``None``: there is none."""
        found: str | None = None
        for hash_, caller in self._hashes:
            if hmac.compare_digest(_seal(hash_, name), seal):
                found = caller
        return found

    def _owner(self, given: bytes) -> tuple[bytes, str] | None:
        found: tuple[bytes, str] | None = None
        for owner in self._hashes:  # all of them, so that the time is constant
            if hmac.compare_digest(owner[0], given):
                found = owner
        return found


class _Session(Struct, frozen=True, array_like=True):
    """The stored part of a session."""

    seal: bytes
    """The token that began it. If the token is removed, the session ends."""
    begun: float
    """In seconds since the epoch, as below."""
    ends: float


class Sessions:
    """The sessions of browsers that have sent a secret.

    Args:
        tokens: The secrets.
        journal: Stores the sessions.
        age: Maximum seconds of a session.
        most: Maximum sessions of a caller. One more ends the oldest.
    """

    def __init__(self, tokens: Tokens, journal: Journal, *, age: float, most: int) -> None:
        self._tokens = tokens
        self._journal = journal
        self._age = age
        self._most = most

    async def begin(self, secret: str) -> str | None:
        """Return the value of a new session; ``None``: the secret is wrong.

        Raises:
            JournalError: It cannot be stored.
        """
        value = secrets.token_urlsafe(32)
        name = _name(value)
        seal = self._tokens.seal(secret, name)
        if seal is None:
            return None
        caller = self._tokens.caller(secret)
        now = time.time()
        own: list[tuple[float, str]] = []
        for other, data in await self._journal.pick_all(KIND):
            session = _decoded(data)
            whose = None if session is None or session.ends <= now else self._whose(session, other)
            if session is None or whose is None:
                await self._journal.put(KIND, other, None)
            elif whose == caller:
                own.append((session.begun, other))
        for _, other in sorted(own)[: max(0, len(own) + 1 - self._most)]:
            await self._journal.put(KIND, other, None)
        session = _Session(seal, now, now + self._age)
        await self._journal.put(KIND, name, msgspec.json.encode(session))
        return value

    async def caller(self, value: str) -> str | None:
        """Return the caller of a session; ``None``: it is unknown, or over.

        Raises:
            JournalError: It cannot be read.
        """
        if not _VALUE.fullmatch(value):
            return None
        name = _name(value)
        data = await self._journal.pick(KIND, name)
        session = None if data is None else _decoded(data)
        if session is None or session.ends <= time.time():
            return None
        return self._whose(session, name)

    async def end(self, value: str) -> None:
        """End a session.

        Raises:
            JournalError: It cannot be deleted.
        """
        if _VALUE.fullmatch(value):
            await self._journal.put(KIND, _name(value), None)

    def _whose(self, session: _Session, name: str) -> str | None:
        return self._tokens.sealed_by(session.seal, name)


class Attempts:
    """Counts wrong secrets by their origin.

    A right secret is never refused because of wrong ones: otherwise an attacker could lock out all callers
    behind the same address. Guessing is hopeless because tokens are long.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def fail(self, place: str) -> int | None:
        """Count a wrong secret.

        Returns:
            Seconds after which to try again, if there were too many; else ``None``.
        """
        now = anyio.current_time()
        count, ends = self._counts.pop(place, (0, 0.0))
        if ends <= now:
            count, ends = 0, now + WITHIN
        self._counts[place] = (count + 1, ends)
        if len(self._counts) > PLACES:
            self._counts.popitem(last=False)
        if count == MOST_WRONG:
            logger.warning("A client at %s guesses secrets, or has an old one", place)
        return math.ceil(ends - now) if count >= MOST_WRONG else None


def _check(token: str, caller: str) -> None:
    if not (caller.isprintable() and 0 < len(caller) <= LONGEST_NAME):
        raise ValueError(f"tokens: a caller's name has 1 to {LONGEST_NAME} characters that can be printed")
    flaw = token_flaw(token)
    if flaw is not None:
        raise ValueError(f"the token of {caller!r} {flaw}")


def token_flaw(token: str) -> str | None:
    """Return why a token is unsuitable, in words that continue "the token"; ``None``: it is suitable."""
    if not SHORTEST <= len(token) <= LONGEST:
        return f"has {len(token)} characters; it needs {SHORTEST} to {LONGEST}"
    if not _TOKEN.fullmatch(token):
        return "has blanks or characters that are not ASCII, which no header can say"
    if len(set(token)) < DIFFERENT:
        return f"can be guessed: it has fewer than {DIFFERENT} different characters"
    return None


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _seal(key: bytes, name: str) -> bytes:
    return hmac.digest(key, name.encode(), "sha256")


def _name(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def _decoded(data: bytes) -> _Session | None:
    try:
        return msgspec.json.decode(data, type=_Session)
    except msgspec.DecodeError:  # from another version
        return None
