"""Tasks that serve a connection: they live as long as its block, and exceptions of the block are its own."""

from __future__ import annotations

from typing import NoReturn

import anyio
import pytest
from anyio.lowlevel import checkpoint

from thinkwell_acp import ClientHandler, connect, memory_transport_pair
from thinkwell_acp import schema as s

REQUEST = (
    b'{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":'
    b'{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}}\n'
)


class Serves(ClientHandler):
    """Serves a request for ever, and sees the answer that is wanted meanwhile."""

    def __init__(self) -> None:
        self.begun, self.wanted, self.done = anyio.Event(), anyio.Event(), anyio.Event()
        self.order: list[str] = []

    async def request_permission(self, request: s.RequestPermissionRequest, /) -> s.RequestPermissionResponse:
        self.begun.set()
        try:
            await self.wanted.wait()
            self.done.set()
            await anyio.sleep_forever()
        finally:
            self.order.append("task")
        raise AssertionError


class Broken:
    """A transport with a defect, which shows at once or when it is left."""

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once

    async def receive(self) -> bytes:
        try:
            await (checkpoint() if self._at_once else anyio.sleep_forever())
        finally:
            raise KeyError("defect")

    async def send(self, item: bytes, /) -> None:
        raise AssertionError

    async def aclose(self) -> None:
        pass


async def serving(handler: Serves, error: BaseException | None = None) -> None:
    """Raise an error in a block while a request is served."""
    ours, theirs = memory_transport_pair()
    await theirs.send(REQUEST)
    with anyio.fail_after(30):
        async with connect(ours, handler):
            await handler.begun.wait()
            assert handler.order == []
            if error is not None:
                raise error


async def test_tasks_end_with_the_block() -> None:
    handler = Serves()
    await serving(handler)
    assert handler.order == ["task"]


@pytest.mark.parametrize(
    "error", [ValueError(), ExceptionGroup("mine", [ValueError(), ExceptionGroup("inner", [KeyError()])])]
)
async def test_an_exception_of_the_block_passes_as_it_is(error: Exception) -> None:
    handler = Serves()
    with pytest.raises(type(error)) as caught:
        await serving(handler, error)
    assert caught.value is error
    assert handler.order == ["task"]


async def test_an_exception_passes_as_it_is_from_a_cancelled_block_too() -> None:
    async def leave() -> NoReturn:
        async with connect(memory_transport_pair()[0], ClientHandler()):
            scope.cancel()
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError("mine")

    with anyio.CancelScope() as scope:
        with pytest.raises(ValueError, match="mine"):
            await leave()


async def test_a_cancellation_from_outside_reaches_the_block_and_then_the_tasks() -> None:
    handler = Serves()
    ours, theirs = memory_transport_pair()
    await theirs.send(REQUEST)
    with anyio.fail_after(30), anyio.CancelScope() as scope:
        async with connect(ours, handler):
            await handler.begun.wait()
            scope.cancel()
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    handler.wanted.set()
                    await handler.done.wait()
                handler.order.append("block")
    assert handler.order == ["block", "task"]
    assert scope.cancelled_caught


async def test_a_request_that_comes_as_the_block_ends_is_not_served_afterwards() -> None:
    served: list[bool] = []
    for moments in range(12):
        handler = Serves()
        ours, theirs = memory_transport_pair()
        async with connect(ours, handler):
            await theirs.send(REQUEST)
            for _ in range(moments):
                await checkpoint()
        served.append(handler.begun.is_set())
        await anyio.wait_all_tasks_blocked()
        assert handler.begun.is_set() == served[-1]
        assert handler.order == ["task"] * served[-1]
    assert set(served) == {False, True}


async def test_a_task_that_raises_is_a_defect_that_shows() -> None:
    with anyio.fail_after(30), pytest.raises(ExceptionGroup) as caught:
        async with connect(Broken(at_once=True), ClientHandler()):
            await anyio.sleep_forever()
    assert caught.group_contains(KeyError)


async def test_a_defect_shows_beside_an_exception_of_the_block() -> None:
    with anyio.fail_after(30), pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the block is what is tested
        async with connect(Broken(at_once=False), ClientHandler()):
            await anyio.wait_all_tasks_blocked()
            raise ValueError("mine")
    assert caught.group_contains(KeyError)
    assert caught.group_contains(ValueError)
