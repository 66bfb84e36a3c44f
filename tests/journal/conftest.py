"""The suite is for every journal."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import pytest
from journals import PLACES, redis_journal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from journals import Place
    from redis_servers import RedisServer

    from thinkwell.journal import Journal
    from thinkwell.journal.redis import RedisJournal


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """Where the runs of the test are kept."""
    name: str = request.param
    return PLACES[name](request)


@pytest.fixture
async def journal(place: Place) -> AsyncGenerator[Journal]:
    """An open journal without any run."""
    async with place.journal() as opened:
        yield opened


@pytest.fixture
def prefix() -> str:
    """What the names of a test's keys in Redis begin with."""
    return secrets.token_hex(8)


@pytest.fixture
def one(redis_server: RedisServer, prefix: str) -> RedisJournal:
    """A journal in Redis, as one process has it; not open."""
    return redis_journal(redis_server.url, prefix=prefix)


@pytest.fixture
def other(redis_server: RedisServer, prefix: str) -> RedisJournal:
    """The same, as another process has it."""
    return redis_journal(redis_server.url, prefix=prefix)


class Clock:
    """The clock by which the journal forgets: it can be put forward. That of trio is another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        real = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: real() + self.ahead)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that can be put forward, for a test on trio."""
    return Clock(monkeypatch)


@pytest.fixture(scope="session", autouse=True)
def redis_before_all(redis_server: RedisServer) -> None:
    """Start Redis before a case begins: it is not the case that leaves it behind."""
