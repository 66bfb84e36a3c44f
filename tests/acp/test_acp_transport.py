"""The memory transport keeps the contract of `Transport`."""

from __future__ import annotations

import anyio
import pytest

from thinkwell_acp import memory_transport_pair
from thinkwell_acp.transport import MEMORY_PIPE_SIZE


async def test_bytes_arrive_in_order_both_ways() -> None:
    one, two = memory_transport_pair()
    await one.send(b"a")
    await one.send(b"b")
    await two.send(b"c")
    assert await two.receive() == b"ab"
    assert await one.receive() == b"c"


async def test_receiving_waits_for_bytes() -> None:
    one, two = memory_transport_pair()
    received: list[bytes] = []

    async def receive() -> None:
        received.append(await two.receive())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            assert received == []
            await one.send(b"late")
    assert received == [b"late"]


async def test_a_sender_far_ahead_waits() -> None:
    one, two = memory_transport_pair()
    await one.send(b"x" * MEMORY_PIPE_SIZE)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.send, b"y")
            await anyio.wait_all_tasks_blocked()
            assert await two.receive() == b"x" * MEMORY_PIPE_SIZE
        assert await two.receive() == b"y"


async def test_the_end_comes_after_what_was_sent() -> None:
    one, two = memory_transport_pair()
    await one.send(b"last")
    await one.aclose()
    assert await two.receive() == b"last"
    with pytest.raises(anyio.EndOfStream):
        await two.receive()


async def test_closing_wakes_a_waiting_reader() -> None:
    one, _two = memory_transport_pair()

    async def receive() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await one.receive()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            await one.aclose()


async def test_a_waiting_sender_fails_once_the_reader_has_gone() -> None:
    one, two = memory_transport_pair()
    await one.send(b"x" * MEMORY_PIPE_SIZE)

    async def send() -> None:
        with pytest.raises(anyio.BrokenResourceError):
            await one.send(b"y")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            await two.aclose()


async def test_a_closed_end_is_of_no_more_use() -> None:
    one, two = memory_transport_pair()
    await two.send(b"unread")
    await one.aclose()
    await one.aclose()
    with pytest.raises(anyio.ClosedResourceError):
        await one.receive()
    with pytest.raises(anyio.ClosedResourceError):
        await one.send(b"x")
    with pytest.raises(anyio.BrokenResourceError):
        await two.send(b"x")
