"""Tasks that serve a block: they live as long as it, and its exceptions are its own."""

from __future__ import annotations

import anyio
import pytest

# Private: every task of ours lives in these. What they promise of tasks that never begin, and of defects, no
# connection can be made to show.
from thinkwell._shared_login import SharedLogin
from thinkwell._tooling import ToolHosts
from thinkwell_acp import Client, ClientHandler, ConnectionClosed
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.mcp import ToolOutput, ToolServer


async def forever(ended: anyio.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        ended.set()


async def test_tasks_end_with_the_block() -> None:
    ended = anyio.Event()
    with anyio.fail_after(5):
        async with background_tasks() as tasks:
            tasks.start_soon(forever, ended)
            await anyio.wait_all_tasks_blocked()
            assert not ended.is_set()
    assert ended.is_set()


async def test_a_task_that_has_not_begun_never_does() -> None:
    begun: list[int] = []

    async def task(number: int) -> None:
        begun.append(number)

    async with background_tasks() as tasks:
        tasks.start_soon(task, 1)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(task, 2)
    assert begun == [1]


async def test_who_waits_for_a_task_that_never_begins_can_be_told() -> None:
    told: list[int] = []
    begun = anyio.Event()

    async def task() -> None:
        begun.set()

    async with background_tasks() as tasks:
        tasks.start_soon(task, never=lambda: told.append(1))
        await begun.wait()
        assert not told
        tasks.start_soon(task, never=lambda: told.append(2))
    assert told == [2]
    tasks.start_soon(task, never=lambda: told.append(3))
    assert told == [2, 3]


async def test_an_exception_of_the_block_passes_as_it_is() -> None:
    error = ValueError("mine")
    ended = anyio.Event()
    with pytest.raises(ValueError, match="mine") as caught:  # noqa: PT012 - the block is what is tested
        async with background_tasks() as tasks:
            tasks.start_soon(forever, ended)
            await anyio.wait_all_tasks_blocked()
            raise error
    assert caught.value is error
    assert ended.is_set()


async def test_an_exception_group_of_the_block_passes_as_it_is() -> None:
    error = ExceptionGroup("mine", [ValueError(), ExceptionGroup("inner", [KeyError()])])
    with pytest.raises(ExceptionGroup) as caught:
        async with background_tasks():
            raise error
    assert caught.value is error


async def test_an_exception_passes_as_it_is_from_a_cancelled_block_too() -> None:
    with pytest.raises(ValueError, match="mine"), anyio.CancelScope() as scope:  # noqa: PT012 - the block is what is tested
        async with background_tasks() as tasks:
            tasks.start_soon(forever, anyio.Event())
            scope.cancel()
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError("mine")


async def test_a_cancellation_from_outside_reaches_the_block_and_then_the_tasks() -> None:
    order: list[str] = []
    wanted, done = anyio.Event(), anyio.Event()

    async def serve() -> None:
        try:
            await wanted.wait()
            done.set()
            await anyio.sleep_forever()
        finally:
            order.append("task")

    with anyio.fail_after(5), anyio.CancelScope() as scope:
        async with background_tasks() as tasks:
            tasks.start_soon(serve)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    wanted.set()
                    await done.wait()
                order.append("block")
    assert order == ["block", "task"]
    assert scope.cancelled_caught


async def test_a_task_that_raises_is_a_defect_that_shows() -> None:
    async def fail() -> None:
        raise KeyError("defect")

    with anyio.fail_after(5), pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the block is what is tested
        async with background_tasks() as tasks:
            tasks.start_soon(fail)
            tasks.start_soon(forever, anyio.Event())
            await anyio.sleep_forever()
    assert caught.group_contains(KeyError)


async def test_a_defect_shows_beside_an_exception_of_the_block() -> None:
    async def fail() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise KeyError("defect")

    with anyio.fail_after(5), pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the block is what is tested
        async with background_tasks() as tasks:
            tasks.start_soon(fail)
            await anyio.wait_all_tasks_blocked()
            raise ValueError("mine")
    assert caught.group_contains(KeyError)
    assert caught.group_contains(ValueError)


async def test_a_way_that_cannot_be_opened_any_more_fails_as_the_connection_did() -> None:
    async def call(*_: object) -> ToolOutput:
        raise AssertionError("nobody calls")

    server = ToolServer("late", call, version="1")
    with anyio.fail_after(10):
        async with background_tasks() as tasks:
            hosts = ToolHosts(tasks, "stdio")
            hosts.attach(Client(ClientHandler()))
            tasks.cancel()
            with pytest.raises(ConnectionClosed):
                await hosts.add(server)


@pytest.mark.parametrize("when", ["just before", "before"])
async def test_a_login_that_cannot_begin_any_more_fails_as_the_connection_did(when: str) -> None:
    client = Client(ClientHandler())
    with anyio.fail_after(10):
        async with anyio.create_task_group() as callers:
            async with background_tasks() as tasks:
                login = SharedLogin("late", "browser", tasks)

                async def ask() -> None:
                    with pytest.raises(ConnectionClosed):
                        await login.log_in(client)
                    assert not login.running

                if when == "just before":
                    callers.start_soon(ask)
                    tasks.cancel()
            if when == "before":
                await ask()
