"""What is held open in the loop's thread, and the calls into it."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from itertools import count
from typing import TYPE_CHECKING

import anyio
import pytest
from sync.playing import until_it_waits

# Private: Ctrl-C at every instruction of the loop's own code, and the moments in which it ends, cannot be met
# from outside.
from thinkwell import AgentClosed
from thinkwell.sync import _loop
from thinkwell.sync._loop import Held, LoopEnded, WaitedTooLong, hold

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import FrameType


def nothing() -> nullcontext[int]:
    return nullcontext(1)


async def forever() -> None:
    await anyio.sleep_forever()


def test_what_fails_when_it_is_left() -> None:
    @asynccontextmanager
    async def failing() -> AsyncGenerator[int]:
        yield 1
        raise OSError("left")

    held, entered = hold(failing)
    assert entered == 1
    for _ in range(2):
        with pytest.raises(OSError, match="left"):
            held.close()


class Blocked:
    """The loop, held up until it is released."""

    def __init__(self, held: Held[int]) -> None:
        self._blocked, self._release = threading.Event(), threading.Event()
        held.loop.post(self._block)
        assert self._blocked.wait(30)

    def _block(self) -> None:
        self._blocked.set()
        assert self._release.wait(30)

    def release(self) -> None:
        self._release.set()


def test_what_is_left_before_it_was_entered() -> None:
    outer, _ = hold(nothing)
    blocked = Blocked(outer)
    inner = Held(outer.loop, nothing)
    outer.loop.admit(inner)
    assert inner.leave()
    blocked.release()
    inner.close()
    with pytest.raises(CancelledError):
        inner.entered.result()
    never = Held(outer.loop, nothing)  # Ctrl-C came before it was admitted
    never.close()
    never.kill()
    outer.kill()  # nothing that can be killed
    outer.close()
    with pytest.raises(LoopEnded):
        outer.loop.call(forever)
    with pytest.raises(LoopEnded):
        hold(nothing, within=outer)
    never = Held(outer.loop, nothing)
    never.close()


def test_what_is_left_while_it_is_entered() -> None:
    entering = threading.Event()

    @asynccontextmanager
    async def slow() -> AsyncGenerator[None]:
        entering.set()
        await anyio.sleep_forever()
        yield

    outer, _ = hold(nothing)
    with ThreadPoolExecutor(1) as threads:
        inner = threads.submit(hold, slow)
        assert entering.wait(30)
        outer.loop.close()  # as when the interpreter exits
        with pytest.raises(AgentClosed):
            inner.result(30)
    outer.close()


def test_what_comes_in_the_moment_in_which_the_loop_ends() -> None:
    leaving, release = threading.Event(), threading.Event()

    @asynccontextmanager
    async def slow() -> AsyncGenerator[None]:
        yield
        leaving.set()
        assert release.wait(30)

    outer, _ = hold(slow)
    outer.leave()
    assert leaving.wait(30)
    late = [Held(outer.loop, nothing) for _ in range(2)]
    for held in late:
        outer.loop.admit(held)
    opened: list[tuple[Held[int], int]] = []
    opening = threading.Thread(target=lambda: opened.append(hold(nothing)))
    opening.start()
    until_it_waits(opening)
    release.set()
    for held in late:
        assert held.entered.wait(30)
        with pytest.raises(LoopEnded):
            held.entered.result()
        held.close()
    opening.join(30)
    ((again, _),) = opened
    assert again.loop is not outer.loop
    again.close()
    outer.close()


def test_ctrl_c_at_any_moment_of_opening_leaves_nothing_open() -> None:
    outer, _ = hold(nothing)
    for moment in count():
        steps = count()

        def interrupt(
            frame: FrameType, event: str, _: object, at: int = moment, steps: count[int] = steps
        ) -> None:
            if frame.f_code.co_filename != _loop.__file__ or event == "c_call":  # Python lets none in there
                return
            returned = frame.f_code is hold.__code__ and event == "return"  # then it is the caller's
            if not returned and next(steps) == at:
                raise KeyboardInterrupt

        sys.setprofile(interrupt)
        try:
            held, _ = hold(nothing)
        except KeyboardInterrupt:
            continue
        finally:
            sys.setprofile(None)
        held.close()
        break
    outer.close()


def test_a_call_that_is_given_up_is_cancelled() -> None:
    held, _ = hold(nothing)
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


def test_a_call_that_is_given_up_before_it_begins_never_begins() -> None:
    held, _ = hold(nothing)
    begun: list[int] = []

    async def begin() -> None:
        begun.append(1)

    blocked = Blocked(held)
    with pytest.raises(WaitedTooLong):
        held.loop.call(begin, timeout=0.01)
    blocked.release()
    held.close()
    assert begun == []


def test_a_call_that_raises_a_timeout_of_its_own() -> None:
    async def fail() -> None:
        raise TimeoutError("its own")

    held, _ = hold(nothing)
    with pytest.raises(TimeoutError, match="its own"):
        held.loop.call(fail, timeout=30)
    held.close()


def test_ctrl_c_at_any_moment_of_a_wait_is_raised_and_the_loop_goes_on() -> None:
    held, _ = hold(nothing)

    async def later() -> int:
        await anyio.sleep(0.002)  # so that it is waited for
        return 5

    def returned_from(moment: int) -> int | None:
        """Call, with Ctrl-C at one of the moments at which Python looks for it; ``None``: it was told so."""
        steps = count()

        def interrupt(frame: FrameType, event: str, _: object) -> None:
            if frame.f_code is not returned_from.__code__ and event != "c_call" and next(steps) == moment:
                raise KeyboardInterrupt

        gc.disable()  # what it calls may be anything, and what that raises is lost
        sys.setprofile(interrupt)
        try:
            return held.loop.call(later)
        except KeyboardInterrupt:
            return None
        finally:
            sys.setprofile(None)
            gc.enable()

    with ThreadPoolExecutor(1) as threads:
        moment = 0
        while returned_from(moment) is None:
            assert threads.submit(held.loop.call, later).result(30) == 5
            moment += 1
    assert moment > 20
    held.close()


def test_ctrl_c_in_the_instant_before_a_wait_is_raised_soon() -> None:
    """As where another thread gets the signal, nothing interrupts the wait itself."""
    held, _ = hold(nothing)

    async def interrupt() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # not the thread that waits
        await anyio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        held.loop.call(interrupt, timeout=30)
    held.close()
