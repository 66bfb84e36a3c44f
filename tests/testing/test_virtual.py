"""Virtual time, and an order of tasks that a seed decides."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from thinkwell.testing._virtual import virtual_backend

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


@BACKENDS
def test_the_order_is_the_same_in_every_process(backend: str) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_virtual import crowd, run; "
        f"print([run({backend!r}, seed, crowd) for seed in range(5)])"
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


async def test_trio_has_its_own_dice_again(anyio_backend_name: str) -> None:
    import trio

    assert anyio_backend_name in ("asyncio", "trio")
    assert not vars(trio._core._run)["_ALLOW_DETERMINISTIC_SCHEDULING"]


def test_there_is_no_other_event_loop() -> None:
    with pytest.raises(ValueError, match="curio"):
        virtual_backend("curio")
