"""What a journal in Redis cannot do, and what it says then. It never says a secret."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint
from journals import entries, redis_journal, run_record, seqs
from redis_servers import RedisServer, running_redis

from thinkwell.journal import Entry, JournalConflict, JournalError, JournalUnwritable

if TYPE_CHECKING:
    from collections.abc import Generator

SECRET = "pa55:w/rd"
QUOTED = "pa55%3Aw%2Frd"


@pytest.fixture
def server() -> Generator[RedisServer]:
    """A server of the test's own."""
    with running_redis() as server:
        yield server


# Arguments


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://localhost:6379",
        "redis://",
        "redis:///0",
        f"redis://:{SECRET}@localhost",
        "redis://:pa#55@localhost",
        "redis://:pa?55@localhost",
        "redis://localhost:port/0",
        "redis://localhost:99999/0",
        "redis://localhost:6379/runs",
        "redis://[::1/0",
        "redis://localhost?db=pa55",
        "redis://localhost?nonsense=pa55",
        "unix://",
    ],
)
def test_urls_that_are_none_of_redis(url: str) -> None:
    with pytest.raises(ValueError, match="RedisJournal") as caught:
        redis_journal(url)
    said = str(caught.value)
    assert "pa55" not in said
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("redis://cache.example", "Redis at cache.example:6379/0"),
        (f"redis://ada:{QUOTED}@cache.example:1234/5", "Redis at cache.example:1234/5"),
        (f"rediss://:{QUOTED}@cache.example/?db=3&socket_timeout=2", "Redis at cache.example:6379/3"),
        ("redis://[::1]:7000/", "Redis at ::1:7000/0"),
        (f"unix://ada:{QUOTED}@/run/redis.sock?db=2", "Redis at /run/redis.sock"),
    ],
)
def test_where_it_is_is_said_without_secrets(url: str, where: str) -> None:
    assert repr(redis_journal(url, prefix="p")) == f"<RedisJournal {where}, prefix 'p', closed>"


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"url": 3}, TypeError, r"RedisJournal\(url=…\) must be a str, not a int"),
        ({"prefix": b"x"}, TypeError, r"RedisJournal\(prefix=…\) must be a str, not a bytes"),
        ({"prefix": ""}, ValueError, "must not be empty"),
        ({"lease": 0}, ValueError, "lease=0 must be positive"),
        ({"patience": "long"}, TypeError, "patience='long' must be a number of seconds"),
        ({"timeout": -1.0}, ValueError, "timeout=-1.0 must be positive"),
    ],
)
def test_arguments_that_mean_nothing(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    given: dict[str, Any] = {"url": "redis://localhost"} | arguments
    with pytest.raises(error, match=said):
        redis_journal(**given)


def test_only_this_journal_loads_the_package_which_may_be_missing() -> None:
    code = (
        "import sys, thinkwell, thinkwell.journal; print('redis' in sys.modules); "
        "sys.modules['redis'] = None; import thinkwell.journal.redis"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "False\n")
    assert (
        "ImportError: thinkwell.journal.redis needs redis-py, which is not installed; pip install"
        " 'thinkwell[redis]'"
    ) in ran.stderr


# Rights


async def test_a_password_that_is_wrong(prefix: str) -> None:
    with running_redis(f'requirepass "{SECRET}"') as server:
        right = redis_journal(f"unix://:{QUOTED}@{server.socket}", prefix=prefix)
        async with right:
            await right.create(run_record("run-1"))
        for url in (server.url, f"unix://:other%3A{QUOTED}@{server.socket}"):
            with pytest.raises(
                JournalError, match="it refuses the user or the password of the URL"
            ) as caught:
                await redis_journal(url, prefix=prefix, patience=3600).open()  # it is not tried again
            assert SECRET not in str(caught.value)


async def test_what_redis_repeats_of_the_password_is_not_shown(prefix: str) -> None:
    """A Redis without AUTH shows how the unknown command began."""
    with running_redis('rename-command AUTH ""') as server:
        with pytest.raises(JournalError) as caught:
            await redis_journal(f"unix://:{QUOTED}@{server.socket}", prefix=prefix, patience=1).open()
        assert SECRET not in str(caught.value)
        assert "…" in str(caught.value)
        assert caught.value.__suppress_context__


async def test_a_user_without_rights(prefix: str) -> None:
    with running_redis(
        f"user ada on >{SECRET} ~{prefix}:* &{prefix}:* +@all -@dangerous",
        f"user bob on >{SECRET} ~other:* &other:* +@all",
    ) as server:
        async with redis_journal(f"unix://ada:{QUOTED}@{server.socket}", prefix=prefix) as journal:
            await journal.create(run_record("run-1", key="k", thread="t"))
            await journal.append("run-1", entries(1, 3))
            assert seqs(await journal.read("run-1")) == [1, 2, 3]
            assert len(await journal.runs(caller="ada")) == 1
            await journal.finish("run-1", Entry(4, b"{}"), "completed", 5.0)
            await journal.delete("run-1")
            await journal.put("kind", "name", b"piece")
            assert await journal.pick_all("kind") == [("name", b"piece")]
            assert await journal.orphans() == []
        with pytest.raises(JournalError, match="the user of the URL may not do that; give it ~") as caught:
            await redis_journal(f"unix://bob:{QUOTED}@{server.socket}", prefix=prefix).open()
        assert f"~{prefix}:* &{prefix}:* +@all -@dangerous" in str(caught.value)


# A Redis in trouble


async def test_redis_is_full(server: RedisServer, prefix: str) -> None:
    async with redis_journal(server.url, prefix=prefix) as journal:
        await journal.create(run_record("run-1"))
        server.ask("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(JournalUnwritable, match="its memory is full; raise its maxmemory"):
            await journal.append("run-1", entries(1, 3))
        server.ask("CONFIG", "SET", "maxmemory", "0")
        await journal.append("run-1", entries(1, 3))


async def test_redis_cannot_save(server: RedisServer, prefix: str) -> None:
    async with redis_journal(server.url, prefix=prefix) as journal:
        await journal.create(run_record("run-1"))
        (server.socket.parent / "dump.rdb").mkdir()  # where its file would be
        server.ask("CONFIG", "SET", "save", "3600 1")
        server.ask("BGSAVE")
        with anyio.fail_after(30):
            while server.ask("INFO", "persistence")["rdb_last_bgsave_status"] == "ok":
                await checkpoint()
        with pytest.raises(JournalUnwritable, match="its disk is full, or has failed; make room"):
            await journal.append("run-1", entries(1, 3))
        server.ask("CONFIG", "SET", "save", "")
        await journal.append("run-1", entries(1, 3))


async def test_redis_becomes_a_replica_for_some_time(server: RedisServer, prefix: str) -> None:
    async with redis_journal(server.url, prefix=prefix) as journal:
        await journal.create(run_record("run-1"))
        server.ask("REPLICAOF", "127.0.0.1", "1")
        done = False

        async def append() -> None:
            nonlocal done
            await journal.append("run-1", entries(1, 3))
            done = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append)
            await anyio.wait_all_tasks_blocked()
            assert not done
            server.ask("REPLICAOF", "NO", "ONE")
    impatient = redis_journal(server.url, prefix=prefix, patience=0.1)
    server.ask("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(JournalError, match=r"it can store nothing now: .*read only"):
        await impatient.open()


async def test_redis_is_a_cluster(prefix: str) -> None:
    with (
        running_redis("cluster-enabled yes") as server,
        pytest.raises(JournalError, match="it is a cluster, which cannot store runs"),
    ):
        await redis_journal(server.url, prefix=prefix).open()


async def test_redis_is_held_up_by_another_client(server: RedisServer, prefix: str) -> None:
    server.ask("CONFIG", "SET", "lua-time-limit", "1")
    async with redis_journal(server.url, prefix=prefix) as journal, anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, hold_up, server)
        with anyio.fail_after(60):
            while not is_busy(server):
                await checkpoint()
            await journal.create(run_record("run-1"))


def hold_up(server: RedisServer) -> None:
    from redis.exceptions import ResponseError

    with suppress(ResponseError):  # where it takes so long that the client sends it again
        server.ask("EVAL", "for turn = 1, 100000000 do end", 0)


def is_busy(server: RedisServer) -> bool:
    from redis.exceptions import ResponseError

    try:
        server.ask("PING")
    except ResponseError:
        return True
    return False


async def test_all_is_deleted(server: RedisServer, prefix: str) -> None:
    async with redis_journal(server.url, prefix=prefix, lease=0.6) as journal:
        await journal.create(run_record("run-1"))
        server.ask("FLUSHALL")
        with pytest.raises(JournalConflict, match="has ended or was deleted"):
            await journal.append("run-1", entries(1, 3))
        await journal.wait("run-1", 0)
        await journal.create(run_record("run-1"))
        server.ask("SCRIPT", "FLUSH")
        await journal.append("run-1", entries(1, 3))


async def test_a_key_that_has_lost_its_run(server: RedisServer, prefix: str) -> None:
    """Redis may be told to forget what it likes when its memory is full."""
    async with redis_journal(server.url, prefix=prefix) as journal:
        await journal.create(run_record("run-1", key="k"))
        server.ask("DEL", f"{prefix}:run:run-1")
        assert await journal.create(run_record("run-2", key="k")) == run_record("run-2", key="k")
        assert [run.id for run in await journal.runs()] == ["run-2"]
    async with redis_journal(server.url, prefix=prefix) as journal:
        assert [run.id for run in await journal.orphans()] == ["run-2"]
        assert server.ask("EXISTS", f"{prefix}:run:run-1") == 0


async def test_a_run_whose_entries_were_forgotten_goes_no_further(server: RedisServer, prefix: str) -> None:
    """With another maxmemory-policy than noeviction Redis may forget them alone."""
    async with redis_journal(server.url, prefix=prefix) as journal:
        await journal.create(run_record("run-1"))
        await journal.append("run-1", [])
        await journal.append("run-1", entries(1, 3))
        server.ask("DEL", f"{prefix}:log:run-1")
        lost = "run-1 has lost entries; set Redis's maxmemory-policy noeviction"
        with pytest.raises(JournalConflict, match=lost):
            await journal.append("run-1", entries(4, 2))
        with pytest.raises(JournalError, match=lost):
            await journal.read("run-1", 2)
        assert await journal.read("run-1", 3) == []
        # That it ends can be told all the same.
        await journal.finish("run-1", Entry(4, b"{}"), "interrupted", 1.0)
        record = await journal.get("run-1")
        assert record is not None
        assert (record.status, record.last_seq) == ("interrupted", 4)
        assert seqs(await journal.read("run-1")) == [4]


async def test_a_redis_that_may_forget_runs_is_told_of(
    server: RedisServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings() -> list[str]:
        return [record.getMessage() for record in caplog.records if "noeviction" in record.getMessage()]

    for policy in ("noeviction", "volatile-lru"):  # which is about keys with a time to live
        server.ask("CONFIG", "SET", "maxmemory-policy", policy)
        async with redis_journal(server.url, prefix=prefix):
            pass
    assert warnings() == []
    server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    async with redis_journal(server.url, prefix=prefix):
        pass
    (warning,) = warnings()
    assert "allkeys-lru" in warning


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (("record", "nonsense"), "is of another program, or another version; use another prefix"),
        (("record", "[]"), "is of another program, or another version; use another prefix"),
        (("last", "x"), "is of another program, or another version; use another prefix"),
    ],
)
async def test_what_is_kept_there_is_of_another_program(
    server: RedisServer, prefix: str, kept: tuple[str, str], said: str
) -> None:
    async with redis_journal(server.url, prefix=prefix) as journal:
        await journal.create(run_record("run-1"))
        server.ask("HSET", f"{prefix}:run:run-1", *kept)
        with pytest.raises(JournalError, match=said):
            await journal.get("run-1")
        server.ask("SET", f"{prefix}:run:run-1", "x")
        with pytest.raises(JournalError, match=r"it refuses what was asked: .*wrong kind of value"):
            await journal.get("run-1")


async def test_what_is_sent_there_is_of_another_program(
    server: RedisServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        redis_journal(server.url, prefix=prefix) as one,
        redis_journal(server.url, prefix=prefix) as other,
    ):
        await one.create(run_record("run-1"))

        async def answer(run_id: str, body: bytes) -> bytes:
            return body

        one.serve(answer)
        assert await other.call("run-1", b"?") == b"?"  # From now on both listen.
        for channel in server.ask("PUBSUB", "CHANNELS"):
            server.ask("PUBLISH", channel, b"\xff nonsense")
        assert await other.call("run-1", b"?") == b"?"
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert "cannot be read, and is left out" in caplog.records[0].getMessage()


async def test_that_is_no_redis() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    server = threading.Thread(target=serve)
    server.start()
    with pytest.raises(JournalError, match="that is not a Redis"):
        await redis_journal(f"redis://127.0.0.1:{listener.getsockname()[1]}").open()
    await anyio.to_thread.run_sync(server.join)


async def test_a_host_that_can_have_no_address() -> None:
    with pytest.raises(JournalError, match="its name cannot be read"):
        await redis_journal(f"redis://{'x' * 300}.example", patience=0.1).open()


# Open and closed


async def test_a_journal_is_open_once(server: RedisServer, prefix: str) -> None:
    journal = redis_journal(server.url, prefix=prefix)
    async with journal:
        assert "open" in repr(journal)
        with pytest.raises(JournalError, match="it is open already; make another journal"):
            await journal.open()
        await journal.create(run_record("run-1"))
    await journal.close()
    with pytest.raises(JournalError, match="the journal is closed"):
        await journal.get("run-1")


async def test_one_among_more_runs_than_are_looked_at_at_once(server: RedisServer, prefix: str) -> None:
    async with redis_journal(server.url, prefix=prefix) as journal:
        await journal.create(run_record("run-0"))
        await journal.finish("run-0", Entry(1, b"{}"), "failed", 5.0)
        for number in range(1, 1101):
            await journal.create(run_record(f"run-{number}"))
        assert [run.id for run in await journal.runs(status="failed")] == ["run-0"]
        assert [run.id for run in await journal.runs(caller="ada", status="failed")] == ["run-0"]
        assert [run.id for run in await journal.runs(before="run-1050", status="failed")] == ["run-0"]
        assert len(await journal.runs(limit=5000)) == 1101


async def test_two_prefixes_are_two_places(server: RedisServer) -> None:
    async with redis_journal(server.url, prefix="a") as one, redis_journal(server.url, prefix="a:b") as other:
        await one.create(run_record("run-1"))
        assert await other.runs() == []
        assert await other.orphans() == []


async def test_entries_are_a_stream_whose_ids_are_their_numbers(server: RedisServer, prefix: str) -> None:
    async with redis_journal(server.url, prefix=prefix) as journal:
        await journal.create(run_record("run-1"))
        await journal.append("run-1", entries(1, 2, b"{}"))
        assert server.ask("XRANGE", f"{prefix}:log:run-1", "-", "+") == [
            (b"1-0", {b"data": b"{}"}),
            (b"2-0", {b"data": b"{}"}),
        ]
        await journal.finish("run-1", Entry(3, b"{}"), "completed", 5.0)
        await journal.delete("run-1")
        left = {key.decode().removeprefix(prefix) for key in server.ask("KEYS", f"{prefix}:*")}
        assert left == {":count", ":size", ":owners", ":gone:run-1"}
        assert 0 < server.ask("TTL", f"{prefix}:gone:run-1") <= 60
