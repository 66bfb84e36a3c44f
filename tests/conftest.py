"""Every asynchronous test runs on asyncio and on trio; every test is checked for what it leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from redis_servers import RedisServer

pytest_plugins = ("suite.progress", "suite.leftovers", "suite.tiers", "warm")


@pytest.fixture(scope="session")
def redis_server() -> Generator[RedisServer]:
    """A server of Redis that keeps nothing on the disk, for all tests: each takes a prefix of its own."""
    from redis_servers import running_redis  # the client takes half a second to import

    with running_redis() as server:
        yield server
