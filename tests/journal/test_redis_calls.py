"""What is asked of a run that another process has: over bad lines, too often, too late."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
import pytest
from journals import redis_journal, run_record
from redis_lines import redis_line

from thinkwell.journal import JournalConflict

if TYPE_CHECKING:
    from journal.conftest import Clock
    from redis_servers import RedisServer

    from thinkwell.journal.redis import RedisJournal


class Handler:
    """Counts what it is asked, and answers when it may."""

    def __init__(self, *, may: bool = True) -> None:
        self.asked: list[bytes] = []
        self.may = anyio.Event()
        self.heard = anyio.Event()
        if may:
            self.may.set()

    async def __call__(self, run_id: str, body: bytes) -> bytes:
        self.asked.append(body)
        self.heard.set()
        await self.may.wait()
        return b"the answer to " + body


async def test_an_answer_that_is_lost_is_sent_again(
    redis_server: RedisServer, prefix: str, other: RedisJournal, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_line(redis_server) as line:
        async with redis_journal(line.url, prefix=prefix) as one, other:
            await one.create(run_record("run-1"))
            handler = Handler()
            one.serve(handler)
            line.swallow(b"the answer to")
            assert await other.call("run-1", b"what") == b"the answer to what"
            assert line.lost == 1
            assert handler.asked == [b"what"]
    assert "What was asked of run run-1 could not be answered: Redis at" in caplog.text


async def test_a_call_to_a_process_whose_connection_is_cut(
    redis_server: RedisServer, prefix: str, other: RedisJournal
) -> None:
    with redis_line(redis_server) as line:
        async with redis_journal(line.url, prefix=prefix) as one, other, anyio.create_task_group() as tasks:
            await one.create(run_record("run-1"))
            handler = Handler()
            one.serve(handler)
            line.refuse()
            with anyio.fail_after(30):
                tasks.start_soon(other.call, "run-1", b"what")
                await anyio.wait_all_tasks_blocked()
                line.refuse(refusing=False)
                await handler.heard.wait()


async def test_a_question_is_answered_once_however_often_it_is_asked(
    one: RedisJournal, other: RedisJournal
) -> None:
    handler = Handler(may=False)
    async with one, other, anyio.create_task_group() as tasks:
        await one.create(run_record("run-1"))
        one.serve(handler)
        with pytest.raises(JournalConflict, match="has not answered within"):
            await other.call("run-1", b"late", timeout=1.2)  # it was sent twice
        tasks.start_soon(other.call, "run-1", b"again")
        handler.heard = anyio.Event()
        await handler.heard.wait()
        handler.may.set()
    assert handler.asked == [b"late", b"again"]


async def test_an_answer_that_comes_too_late_goes_nowhere(one: RedisJournal, other: RedisJournal) -> None:
    async with one, other:
        await one.create(run_record("run-1"))
        answered = anyio.Event()

        async def answer(run_id: str, body: bytes) -> bytes:
            if body == b"late":
                await answered.wait()
            return body

        one.serve(answer)
        with anyio.move_on_after(0.5):
            await other.call("run-1", b"late")
        answered.set()
        assert await other.call("run-1", b"soon") == b"soon"
        assert await other.call("run-1", b"soon") == b"soon"


async def test_more_is_asked_than_can_be_answered_at_once(one: RedisJournal, other: RedisJournal) -> None:
    async with one, other:
        await one.create(run_record("run-1"))
        handler = Handler(may=False)
        one.serve(handler)
        answers: list[bytes] = []

        async def ask(number: int) -> None:
            answers.append(await other.call("run-1", b"%d" % number, timeout=30))

        async with anyio.create_task_group() as tasks:
            for number in range(120):
                tasks.start_soon(ask, number)
            with anyio.fail_after(30):
                while len(handler.asked) < 100:
                    handler.heard = anyio.Event()
                    await handler.heard.wait()
            await anyio.wait_all_tasks_blocked()
            assert len(handler.asked) == 100
            handler.may.set()
        assert len(answers) == 120
        assert len(handler.asked) == 120


def test_what_was_answered_long_ago_is_forgotten(
    one: RedisJournal, other: RedisJournal, clock: Clock
) -> None:
    async def ask() -> None:
        async with one, other:
            await one.create(run_record("run-1"))
            one.serve(Handler())
            for _ in range(3):
                assert await other.call("run-1", b"what") == b"the answer to what"
                clock.ahead += 121

    anyio.run(ask, backend="trio")


async def test_who_closes_answers_nothing_any_more(one: RedisJournal, other: RedisJournal) -> None:
    async with other, anyio.create_task_group() as tasks:
        handler = Handler(may=False)

        async def ask() -> None:
            with pytest.raises(JournalConflict, match="the process that had run run-1 has ended"):
                await other.call("run-1", b"what")

        async with one:
            await one.create(run_record("run-1"))
            one.serve(handler)
            tasks.start_soon(ask)
            await handler.heard.wait()


def test_a_process_whose_event_loop_has_ended_is_as_good_as_dead(
    anyio_backend: str, redis_server: RedisServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It did not close its journal, and its threads live on."""
    caplog.set_level(logging.ERROR)
    opened: list[RedisJournal] = []

    async def begin() -> None:
        one = redis_journal(redis_server.url, prefix=prefix, lease=0.6)
        await one.open()
        opened.append(one)
        await one.create(run_record("run-1"))
        handler = Handler(may=False)
        one.serve(handler)
        async with (
            redis_journal(redis_server.url, prefix=prefix) as other,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(other.call, "run-1", b"what")
            await handler.heard.wait()
            tasks.cancel_scope.cancel()

    async def take_over() -> None:
        async with redis_journal(redis_server.url, prefix=prefix) as other:
            with anyio.fail_after(30):
                while not (found := await other.orphans()):
                    pass
            assert [record.id for record in found] == ["run-1"]

    anyio.run(begin, backend=anyio_backend)
    anyio.run(take_over, backend=anyio_backend)
    anyio.run(opened[0].close, backend=anyio_backend)
    assert not [record for record in caplog.records if record.name == "thinkwell"]
