"""Virtual time, and an order of tasks that a seed decides."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from thinkwell.testing import virtual_backend

PATIENCE = 2.0
"""Seconds of real time for which a thread is waited for."""

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def run(backend: str, seed: int | None, program: Any) -> Any:
    name, options = virtual_backend(backend, seed)
    return anyio.run(program, backend=name, backend_options=options)


async def crowd() -> list[int]:
    """Return the order in which tasks ran that could have run in any."""
    order: list[int] = []
    start, stop = anyio.Event(), anyio.Event()

    async def one(number: int) -> None:
        order.append(number)
        await start.wait()
        order.append(100 + number)
        await anyio.lowlevel.checkpoint()
        try:
            await stop.wait()
        finally:
            order.append(200 + number)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(one, number)
        await anyio.sleep(3600)
        start.set()
        await anyio.sleep(3600)
        tasks.cancel_scope.cancel()
    return order


@BACKENDS
@pytest.mark.parametrize("seed", [None, 1])
def test_hours_take_no_time(backend: str, seed: int | None) -> None:
    async def wait() -> float:
        began = anyio.current_time()
        await anyio.sleep(10 * 3600)
        return anyio.current_time() - began

    began = time.perf_counter()
    assert run(backend, seed, wait) == pytest.approx(36000)
    assert time.perf_counter() - began < 5


@BACKENDS
def test_the_seed_decides_the_order_of_tasks(backend: str) -> None:
    orders: list[list[int]] = [run(backend, seed, crowd) for seed in range(10)]
    assert len(set(map(tuple, orders))) > 5
    assert orders == [run(backend, seed, crowd) for seed in range(10)]
    assert all(sorted(order) == sorted(orders[0]) for order in orders)


@pytest.mark.long
def test_the_order_is_the_same_in_every_process() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_virtual import crowd, run; "
        "print([run(backend, seed, crowd) for backend in ('asyncio', 'trio') for seed in range(5)])"
    )
    orders = {
        subprocess.run(
            [sys.executable, "-c", program, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(orders) == 1


@BACKENDS
def test_threads_are_waited_for_in_real_time(backend: str) -> None:
    async def wait() -> str:
        def work() -> str:
            time.sleep(0.03)
            return "done"

        return await anyio.to_thread.run_sync(work)

    assert run(backend, 1, wait) == "done"


@BACKENDS
@pytest.mark.parametrize("native", [False, True])
def test_time_stands_still_while_a_thread_works(backend: str, native: bool) -> None:
    def work() -> str:
        time.sleep(0.05)
        return "done"

    async def wait() -> tuple[str, float]:
        began = anyio.current_time()
        with anyio.fail_after(30):
            if native and backend == "asyncio":
                done = await asyncio.to_thread(work)
            else:
                done = await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1))
        return done, anyio.current_time() - began

    for seed in (None, 1):
        done, took = run(backend, seed, wait)
        assert (done, took < 1) == ("done", True)


@BACKENDS
def test_time_goes_on_when_no_task_waits_for_a_thread_any_more(backend: str) -> None:
    go = threading.Event()

    async def wait() -> float:
        with anyio.move_on_after(1):
            await anyio.to_thread.run_sync(go.wait, abandon_on_cancel=True)
        began = time.perf_counter()
        for _ in range(10):
            await anyio.sleep(3600)
        go.set()
        return time.perf_counter() - began

    assert run(backend, None, wait) < PATIENCE


@BACKENDS
def test_time_goes_on_for_what_a_thread_waits_for(backend: str) -> None:
    def work() -> None:
        anyio.from_thread.run(anyio.sleep, 3600)

    async def wait() -> None:
        await anyio.to_thread.run_sync(work)

    began = time.perf_counter()
    run(backend, None, wait)
    assert time.perf_counter() - began < PATIENCE


@BACKENDS
def test_time_goes_on_for_a_thread_that_waits_for_it_unseen(backend: str) -> None:
    go = threading.Event()

    went: list[bool] = []

    async def wait() -> None:
        async def later() -> None:
            await anyio.sleep(3600)
            await anyio.sleep(3600)
            go.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(later)
            went.append(await anyio.to_thread.run_sync(go.wait, 20))

    run(backend, None, wait)
    assert went == [True]


@BACKENDS
def test_threads_of_other_event_loops_hold_up_no_clock(backend: str) -> None:
    virtual_backend(backend)

    def work() -> float:
        return anyio.from_thread.run(here)

    async def here() -> float:
        return anyio.current_time()

    async def wait() -> float:
        return await anyio.to_thread.run_sync(work)

    assert anyio.run(wait, backend=backend) > 0


@pytest.mark.parametrize("allowed", [False, True])  # Hypothesis allows it
def test_trio_has_its_own_dice_again(allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import trio

    scheduler = trio._core._run
    monkeypatch.setattr(scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING", allowed)
    run("trio", 1, anyio.lowlevel.checkpoint)
    assert vars(scheduler)["_ALLOW_DETERMINISTIC_SCHEDULING"] is allowed


def test_there_is_no_other_event_loop() -> None:
    with pytest.raises(ValueError, match="curio"):
        virtual_backend("curio")
