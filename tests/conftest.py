"""Every asynchronous test runs on asyncio and on trio; every test is checked for what it leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from redis_servers import RedisServer

    from thinkwell.testing import Backend

pytest_plugins = ("suite.progress", "suite.scheduling", "suite.leftovers", "suite.tiers", "warm")


@pytest.fixture
def anyio_backend(anyio_backend: str, request: pytest.FixtureRequest) -> str | Backend:
    """The event loop of the test; the marks `virtual_time` and `fast_time` say how its time passes."""
    node = cast("pytest.Item", request.node)
    if node.get_closest_marker("virtual_time"):
        from thinkwell.testing import virtual_backend

        return virtual_backend(anyio_backend)
    if fast := node.get_closest_marker("fast_time"):
        from clocks import fast_backend

        return fast_backend(anyio_backend, *fast.args)
    return anyio_backend


@pytest.fixture
def deleted_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder has been deleted."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()


@pytest.fixture(scope="session")
def redis_server() -> Generator[RedisServer]:
    """A server of Redis that keeps nothing on the disk, for all tests: each takes a prefix of its own."""
    from redis_servers import running_redis  # the client takes half a second to import

    with running_redis() as server:
        yield server
