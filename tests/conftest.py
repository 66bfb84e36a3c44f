"""Every asynchronous test runs on asyncio and on trio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis_servers import running_redis

if TYPE_CHECKING:
    from collections.abc import Generator

    from redis_servers import RedisServer


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop that the test runs on."""
    backend: str = request.param
    return backend


@pytest.fixture(scope="session")
def redis_server() -> Generator[RedisServer]:
    """A server of Redis that keeps nothing on the disk, for all tests: each takes a prefix of its own."""
    with running_redis() as server:
        yield server
