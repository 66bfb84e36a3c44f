"""`RedisJournal`: the logs of runs in Redis Streams."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import anyio
import msgspec
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from thinkwell._core.schema.arguments import check_seconds
from thinkwell.journal import _redis_scripts as scripts
from thinkwell.journal._errors import JournalConflict, JournalError
from thinkwell.journal._redis_link import RedisLink, as_text
from thinkwell.journal._redis_process import RedisProcess
from thinkwell.journal._types import MAX_PAGE, Entry, Journal, RunEnd, RunRecord, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.journal._redis_link import Reply
    from thinkwell.journal._types import CallHandler

MOST: Final = 2**53
"""The largest number that Lua counts exactly."""

Facts: TypeAlias = "list[bytes | None]"
"""What `PRELUDE` calls facts: record, status, ended, last, size."""


class RedisJournal(Journal):
    """Stores runs in Redis Streams, for any number of servers on any number of machines.

    Every server can show every run, and pass on requests to the server of a run. If a server dies or is cut
    off, another one gets its runs from `orphans` when the lease has ended; the first server can then add
    nothing to them (`JournalConflict`). Leases use the clock of Redis; those of the machines do not matter.
    After an outage of Redis itself, no runs are taken over for the time of a lease.

    Redis decides how durable the runs are. By default it writes to the disk now and then, and loses later
    entries when it ends. With ``appendonly yes`` it loses at most the last two seconds when it is killed or
    the machine fails; with ``appendfsync always`` nothing, but it is slower. A failover may lose what the
    replica has not received. A run that has lost entries cannot continue: `JournalConflict`. Set
    ``maxmemory-policy noeviction``, so that a full Redis refuses new data instead of deleting old data; a
    warning is logged for other policies. The journal needs one Redis, version 6 or later, with or without
    replicas behind its name, not a cluster.

    If Redis cannot be reached, everything is tried again for some time. If the answer to a change was
    lost, the repeated change is recognised, and done once.

    Args:
        url: The address and login: ``redis://user:password@host:6379/0``, ``rediss://…`` (TLS) or
            ``unix:///path/redis.sock?db=0``, with options of redis-py behind a question mark.
        prefix: The prefix of all keys and channels. Servers with the same prefix share runs.
        lease: Seconds without news of a server after which others may take its runs. All need the same value.
        patience: Seconds for which calls are repeated while Redis cannot be reached; by `open`, at most 5.
        timeout: Seconds to wait for a connection to Redis, and for an answer.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The URL is not one of Redis, or an argument is out of range.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "thinkwell",
        lease: float = 15.0,
        patience: float = 30.0,
        timeout: float = 5.0,
    ) -> None:
        _check_text("url", url)
        _check_text("prefix", prefix)
        if not prefix:
            raise ValueError('RedisJournal(prefix=""): it must not be empty')
        for name, seconds in (("lease", lease), ("patience", patience), ("timeout", timeout)):
            check_seconds(name, seconds)
        self._link = RedisLink(url, prefix=prefix, timeout=timeout)
        self._where = self._link.where
        self._prefix = prefix
        self._lease = lease
        self._patience = patience
        self._timeout = timeout
        self._process: RedisProcess | None = None

    def __repr__(self) -> str:
        state = "closed" if self._process is None else "open"
        return f"<RedisJournal {self._where}, prefix {self._prefix!r}, {state}>"

    async def open(self) -> None:
        await checkpoint()
        if self._process is not None:
            raise JournalError(self._where, "it is open already; make another journal for another server")
        process = self._process = RedisProcess(
            self._link, lease=self._lease, patience=self._patience, timeout=self._timeout
        )
        try:
            await process.start()
        except BaseException:
            self._process = None
            raise

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with anyio.CancelScope(shield=True):
                await process.close()

    # Runs

    async def create(self, record: RunRecord) -> RunRecord:
        process = self._opened()
        was_mine = record.id in process.mine
        process.mine.add(record.id)
        reply: Reply = None
        try:
            reply = await process.asker.change(
                scripts.CREATE,
                record.id,
                process.owner,
                msgspec.json.encode(record),
                record.caller,
                _given(record.thread),
                "" if record.key is None else msgspec.json.encode([record.caller, record.key]),
            )
        finally:
            if reply != 1 and not was_mine:
                process.mine.discard(record.id)  # if it was stored after all, it is an orphan
        if reply == 1:
            return record
        if reply == 0:
            about = f"there is a run {record.id} already; give each run an id of its own"
            raise JournalConflict(self._where, about)
        return self._read_record(reply)

    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        await self._add(run_id, entries, "running", "")

    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        await self._add(run_id, (end,), status, repr(float(at)))

    async def _add(self, run_id: str, entries: Sequence[Entry], status: RunStatus, at: str) -> None:
        process = self._opened()
        numbers = [entry.seq for entry in entries]
        first = numbers[0] if numbers else 0
        if numbers != list(range(first, first + len(numbers))):
            first = 0  # follows nothing
        reply = await process.asker.change(
            scripts.ADD, run_id, process.owner, first, status, at, *[entry.data for entry in entries]
        )
        result, number = cast("tuple[bytes, int]", reply)
        if result == b"done":
            if status != "running":
                process.mine.discard(run_id)
            process.learn(run_id, number, over=status != "running")
        elif result == b"next":
            raise JournalConflict(self._where, f"the next entry of run {run_id} has to be number {number}")
        elif result == b"taken":
            process.lose(run_id)
            about = f"run {run_id} belongs to another server, as nothing was heard of this one for too long"
            raise JournalConflict(self._where, f"{about}; nothing can be added to it here")
        elif result == b"lost":
            raise JournalConflict(self._where, _lost(run_id))
        else:
            process.lose(run_id)
            about = f"run {run_id} has ended or was deleted; nothing can be added to it"
            raise JournalConflict(self._where, about)

    async def get(self, run_id: str) -> RunRecord | None:
        found = await self._get(run_id)
        return found[0] if found else None

    async def _get(self, *run_ids: str) -> list[RunRecord]:
        reply = await self._opened().asker.read(scripts.GET, *run_ids)
        return [self._read_record(facts) for facts in cast("list[Facts | None]", reply) if facts is not None]

    async def runs(
        self,
        *,
        caller: str | None = None,
        thread: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        if thread is not None:
            index = "thread:" + _given(thread)
        elif caller is not None:
            index = "caller:" + caller
        else:
            index = "running" if status == "running" else "runs"
        wanted = (_given(caller), _given(thread), status or "")
        found: list[RunRecord] = []
        from_: bytes | str = ""
        while len(found) < limit:
            left = limit - len(found)
            reply = await self._opened().asker.read(scripts.LIST, index, before or "", from_, *wanted, left)
            from_, *page = cast("list[bytes]", reply)
            found += [self._read_record(facts) for facts in page]
            if not from_:
                break
        return found

    async def read(self, run_id: str, after: int = 0, *, most: int = MAX_PAGE) -> list[Entry]:
        reply = await self._opened().asker.read(scripts.READ, run_id, min(max(after, 0), MOST), most)
        if reply is None:
            raise JournalError(self._where, _lost(run_id))
        parts = iter(cast("list[bytes]", reply))
        return [
            Entry(int(number.partition(b"-")[0]), data) for number, data in zip(parts, parts, strict=True)
        ]

    async def wait(self, run_id: str, after: int) -> None:
        await checkpoint()
        if self._process is not None:
            await self._process.wait(run_id, after)

    async def delete(self, run_id: str) -> bool:
        reply = await self._opened().asker.change(scripts.DELETE, run_id, secrets.token_hex(8))
        if reply == -1:
            raise JournalConflict(self._where, f"run {run_id} is running; cancel it first")
        return reply == 1

    async def oldest(self, limit: int = 100) -> list[RunRecord]:
        if limit < 1:
            return []
        reply = await self._opened().asker.read(scripts.OLDEST, min(limit, MOST))
        return [self._read_record(facts) for facts in cast("list[Facts]", reply)]

    async def size(self) -> int:
        return cast("int", await self._opened().asker.read(scripts.SIZE))

    # Processes

    async def orphans(self) -> list[RunRecord]:
        process = self._opened()
        reply = await process.asker.read(scripts.CLAIM, process.owner, process.lease)
        mine = [as_text(run_id) for run_id in cast("list[bytes]", reply)]
        found = [run_id for run_id in mine if run_id not in process.mine]
        if not found:
            return []
        process.mine.update(found)  # no other process that asks at the same time gets them
        try:
            records = await self._get(*found)
        except BaseException:
            process.mine.difference_update(found)
            raise
        return [record for record in records if record.status == "running"]

    async def call(self, run_id: str, body: bytes, *, timeout: float = 10.0) -> bytes:  # noqa: ASYNC109
        process = self._opened()
        owner, alive = cast("tuple[bytes, int]", await process.asker.read(scripts.FIND, run_id))
        if not owner:
            raise JournalConflict(self._where, f"run {run_id} has ended or was deleted; it cannot be asked")
        dead = f"the process that had run {run_id} has ended; try again later"
        if not alive and owner.decode() != process.owner:
            raise JournalConflict(self._where, dead)
        try:
            answer = await process.calls.ask(owner.decode(), run_id, body, timeout)
        except TimeoutError:
            about = f"run {run_id} has not answered within {timeout:g} s; try again"
            raise JournalConflict(self._where, about) from None
        if answer is None:
            raise JournalConflict(self._where, dead)
        return answer

    def serve(self, handler: CallHandler | None) -> None:
        self._opened().calls.handler = handler

    # What else servers keep

    async def put(self, kind: str, name: str, data: bytes | None) -> None:
        await self._opened().asker.change(scripts.PUT, kind, name, *(() if data is None else (data,)))

    async def pick(self, kind: str, name: str) -> bytes | None:
        return cast("bytes | None", await self._opened().asker.read(scripts.PICK, kind, name))

    async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
        parts = iter(cast("list[bytes]", await self._opened().asker.read(scripts.PICK_ALL, kind)))
        return [(as_text(name), data) for name, data in zip(parts, parts, strict=True)]

    def _opened(self) -> RedisProcess:
        if self._process is None:
            raise JournalError(
                self._where, "the journal is closed; use it in its block: async with journal: …"
            )
        return self._process

    def _read_record(self, facts: object) -> RunRecord:
        try:
            record, status, ended, last, size = cast("Facts", facts)
            known = msgspec.json.decode(record or b"", type=RunRecord)
            return replace(
                known,
                status=(status or b"").decode(),
                ended=None if ended is None else float(ended),
                last_seq=int(last or 0),
                size=int(size or 0),
            )
        except (TypeError, ValueError) as exc:
            about = (
                f"what is kept under the prefix {self._prefix!r} is of another program, or another version"
            )
            raise JournalError(self._where, f"{about}; use another prefix ({exc})") from None


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"RedisJournal({name}=…) must be a str, not a {type(value).__name__}")


def _lost(run_id: str) -> str:
    return f"run {run_id} has lost entries; set Redis's maxmemory-policy noeviction, and give it more memory"


def _given(value: str | None) -> str:
    """Tell an empty value from a missing one."""
    return "" if value is None else "=" + value
