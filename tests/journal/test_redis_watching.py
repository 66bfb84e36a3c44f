"""Those who wait for runs of other processes: what they are told, and what they find out for themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint
from journals import entries, run_record, seqs

from thinkwell.journal import Entry, JournalConflict
from thinkwell.testing import virtual_backend

if TYPE_CHECKING:
    from journal.conftest import Clock
    from redis_servers import RedisServer

    from thinkwell.journal.redis import RedisJournal

LOOKS_AFTER = 15.0
"""Seconds after which a journal looks for itself."""

PATIENCE = 10.0
"""Less than the time after which a journal looks for itself: whoever is told of nothing, fails."""


def listened(server: RedisServer, prefix: str) -> set[str]:
    """The runs that somebody listens for."""
    channels: list[bytes] = server.ask("PUBSUB", "CHANNELS", f"{prefix}:changed:*")
    return {channel.decode().rpartition(":")[2] for channel in channels}


async def test_what_is_told_of_a_run_is_nonsense(
    redis_server: RedisServer, prefix: str, one: RedisJournal, other: RedisJournal
) -> None:
    async with one, other:
        await one.create(run_record("run-1"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.wait, "run-1", 0)
                while not listened(redis_server, prefix):
                    await checkpoint()
                for nonsense in (b"nonsense", b"-1", b"\xff", b"", b"\xc2\xb2"):
                    redis_server.ask("PUBLISH", f"{prefix}:changed:run-1", nonsense)
                await one.append("run-1", entries(1, 1))


@pytest.mark.parametrize(
    "anyio_backend", [pytest.param(virtual_backend(name), id=name) for name in ("asyncio", "trio")]
)
async def test_who_was_told_of_nothing_looks_for_himself(
    redis_server: RedisServer, prefix: str, one: RedisJournal, other: RedisJournal
) -> None:
    async def found(last: int) -> float:
        """After how many seconds an entry is found that was stored without a word."""
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other.wait, "run-1", last - 1)
            await anyio.wait_all_tasks_blocked()
            redis_server.ask("HSET", f"{prefix}:run:run-1", "last", last)
        return anyio.current_time() - began

    async with one, other:
        await one.create(run_record("run-1"))
        with anyio.fail_after(1000 * LOOKS_AFTER):  # virtual time jumps while Redis is slow to answer
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.wait, "run-1", 0)
                while not listened(redis_server, prefix):
                    await checkpoint()
                await one.append("run-1", entries(1, 1))
            await found(2)  # maybe at once, by a look that was due when it began to listen
            assert await found(3) > LOOKS_AFTER - 0.1


async def test_redis_ends_the_connection_of_those_who_listen(
    redis_server: RedisServer, prefix: str, one: RedisJournal, other: RedisJournal
) -> None:
    """So it does with who is too slow."""
    async with one, other:
        await one.create(run_record("run-1"))
        with anyio.fail_after(PATIENCE):
            for seq in range(1, 4):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(other.wait, "run-1", seq - 1)
                    while not listened(redis_server, prefix):
                        await checkpoint()
                    redis_server.ask("CLIENT", "KILL", "TYPE", "pubsub")
                    await one.append("run-1", entries(seq, seq))


def test_only_runs_with_a_waiting_reader_are_listened_for(
    redis_server: RedisServer, prefix: str, one: RedisJournal, other: RedisJournal, clock: Clock
) -> None:
    returned: set[str] = set()

    async def wait(run_id: str) -> None:
        await other.wait(run_id, 0)
        returned.add(run_id)

    async def watch() -> None:
        async with one, other:
            for run_id in ("run-1", "run-2", "run-3"):
                await one.create(run_record(run_id))
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks:
                    for run_id in ("run-1", "run-2", "run-3"):
                        tasks.start_soon(wait, run_id)
                    while listened(redis_server, prefix) != {"run-1", "run-2", "run-3"}:
                        await checkpoint()
                    await one.append("run-1", entries(1, 1))
                    await one.finish("run-2", Entry(1, b"{}"), "completed", 5.0)
                    while returned != {"run-1", "run-2"}:
                        await checkpoint()
                    clock.ahead += 61
                    while listened(redis_server, prefix) != {"run-3"}:
                        redis_server.ask("PUBLISH", f"{prefix}:changed:run-3", b"0")
                        await checkpoint()
                    await one.append("run-3", entries(1, 1))

    anyio.run(watch, backend="trio")


async def test_a_run_that_was_taken_is_seen_by_those_who_waited_where_it_was(
    redis_server: RedisServer, prefix: str, one: RedisJournal, other: RedisJournal
) -> None:
    async with one, other:
        await one.create(run_record("run-1"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.wait, "run-1", 0)
                await anyio.wait_all_tasks_blocked()
                owner = redis_server.ask("HGET", f"{prefix}:run:run-1", "owner")
                redis_server.ask("ZADD", f"{prefix}:owners", 1, owner)  # its lease ends
                assert [run.id for run in await other.orphans()] == ["run-1"]
                with pytest.raises(JournalConflict, match="belongs to another server"):
                    await one.append("run-1", entries(1, 1))
                await other.append("run-1", entries(1, 1))
            assert seqs(await one.read("run-1")) == [1]
