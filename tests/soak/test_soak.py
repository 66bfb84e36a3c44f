"""A short soak is as it has to be, and what it looks for is found where it is made."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import pytest
from redis_servers import running_redis
from soak.server_process import ServerProcess, free_port
from soak.soak_plan import plan_of
from soak.soaking import soak

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from anyio.abc import SocketStream
    from soak.soaking import Outcome


@pytest.fixture
def anyio_backend() -> str:
    """The watchers' event loop. The server has its own."""
    return "asyncio"


@pytest.mark.long
@pytest.mark.parametrize(
    ("seed", "runs", "watchers", "speed", "cuts"),
    [(3, 4, 8, 15, 0), pytest.param(7, 30, 100, 8, 100, marks=pytest.mark.long)],
)
async def test_nothing_is_lost_or_repeated_though_the_server_is_killed(
    tmp_path: Path, seed: int, runs: int, watchers: int, speed: int, cuts: int
) -> None:
    plan = plan_of(seed, runs, watchers, 1, speed=speed)
    outcome = await soak([ServerProcess(tmp_path, 1_000)], plan, 120)

    assert not outcome.bad, str(outcome)
    assert outcome.statuses.total() == runs
    assert outcome.counts["kills"] == 1
    assert outcome.counts["cuts"] > cuts
    assert outcome.counts["events"] > 100 * watchers


@pytest.mark.long
async def test_two_servers_share_their_runs_and_one_after_the_other_is_killed(tmp_path: Path) -> None:
    with running_redis() as redis:
        servers: list[ServerProcess] = []
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            servers.append(ServerProcess(tmp_path / name, 1_000, redis=redis.url))
        outcome = await soak(servers, plan_of(3, 20, 60, 2, speed=8), 120)

    assert not outcome.bad, str(outcome)
    assert outcome.statuses.total() == 20
    assert outcome.counts["kills"] == 2


def test_a_seed_says_what_happens() -> None:
    assert plan_of(1, 20, 50, 2) == plan_of(1, 20, 50, 2)
    assert plan_of(1, 20, 50, 2) != plan_of(2, 20, 50, 2)


# What a watcher may not see


@asynccontextmanager
async def meddled(server: ServerProcess, change: Callable[[bytes], bytes]) -> AsyncGenerator[None]:
    """Change what a server answers, on the way."""
    server.port = free_port()

    async def serve(client: SocketStream) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(client)
            try:
                answering = await anyio.connect_tcp("127.0.0.1", server.own_port)
            except OSError:  # it is not there yet
                return
            await stack.enter_async_context(answering)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pump, client, answering, bytes)
                await pump(answering, client, change)
                tasks.cancel_scope.cancel()

    async def pump(source: SocketStream, sink: SocketStream, change: Callable[[bytes], bytes]) -> None:
        with suppress(anyio.BrokenResourceError):  # one of them has hung up
            async for data in source:
                await sink.send(change(data))

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=server.port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield
        tasks.cancel_scope.cancel()


async def meddled_outcome(folder: Path, change: Callable[[bytes], bytes]) -> Outcome:
    server = ServerProcess(folder, 100)
    async with meddled(server, change):
        return await soak([server], plan_of(1, 4, 8, 0, speed=30), 60)


@pytest.mark.long
async def test_a_number_that_comes_twice_is_seen_and_one_that_does_not_come(tmp_path: Path) -> None:
    outcome = await meddled_outcome(tmp_path, lambda data: data.replace(b"\nid: 12\n", b"\nid: 11\n"))
    assert outcome.repeated == outcome.lost > 0


@pytest.mark.long
async def test_another_text_is_seen(tmp_path: Path) -> None:
    outcome = await meddled_outcome(tmp_path, lambda data: data.replace(b"That was play", b"This was play"))
    assert (outcome.lost, outcome.repeated) == (0, 0)
    assert outcome.differing > 0
    assert any("is not what the agent has done" in line for line in outcome.wrong)
