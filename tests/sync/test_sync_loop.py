"""What is held open in the loop's thread, and the calls into it."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

import anyio
import pytest

from thinkwell import AgentClosed
from thinkwell.sync._loop import LoopEnded, WaitedTooLong, hold, wait

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


def nothing() -> nullcontext[int]:
    return nullcontext(1)


async def forever() -> None:
    await anyio.sleep_forever()


def test_what_fails_when_it_is_left() -> None:
    @asynccontextmanager
    async def failing() -> AsyncGenerator[int]:
        yield 1
        raise OSError("left")

    held = hold(failing)
    assert held.enter() == 1
    for _ in range(2):
        with pytest.raises(OSError, match="left"):
            held.close()


def test_what_is_left_before_it_was_entered() -> None:
    outer = hold(nothing)
    outer.enter()
    blocked, release = threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        assert release.wait(30)

    outer.loop.post(block)
    assert blocked.wait(30)
    inner = hold(nothing)
    inner.loop.post(inner._leave)
    release.set()
    with pytest.raises(AgentClosed):
        inner.enter()
    outer.kill()  # nothing that can be killed
    outer.close()
    with pytest.raises(LoopEnded):
        outer.loop.submit(forever)
    with pytest.raises(LoopEnded):
        hold(nothing, within=outer)


def test_a_call_that_is_given_up_is_cancelled() -> None:
    held = hold(nothing)
    held.enter()
    ended = threading.Event()

    async def reluctant() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
            raise OSError("nobody hears it")

    with pytest.raises(WaitedTooLong):
        held.loop.call(reluctant, timeout=0.01)
    assert ended.wait(30)
    with pytest.raises(WaitedTooLong):
        held.loop.call(forever, timeout=0.01)
    held.close()


def test_a_call_that_raises_a_timeout_of_its_own() -> None:
    future: Future[None] = Future()
    future.set_exception(TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        wait(future, 1)
