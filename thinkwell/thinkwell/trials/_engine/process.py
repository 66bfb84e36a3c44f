"""The worker's process, from outside: it is started, and started again where it dies."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from subprocess import PIPE
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from thinkwell.trials._engine.settings import LOST, NO_STORE, PATIENCE, Ready
from thinkwell.trials._errors import StoreError, WorkerFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import ByteReceiveStream, Process

    from thinkwell.trials._engine.settings import Settings

__all__ = ("run_worker",)

RESTARTS: Final = 3
"""How often it may die in a row before it has said that it is ready again."""

TAIL: Final = 50
"""Lines of its standard error that are kept."""

LONGEST: Final = 1 << 20
"""Bytes of the longest line that it says."""


async def run_worker(settings: Settings, ready: Callable[[Ready], object]) -> None:
    """Run a worker until it leaves; start it again if it dies. Cancelling this lets it leave.

    Args:
        settings: What it is to do.
        ready: Called each time it begins.

    Raises:
        StoreError: The store cannot be used.
        WorkerFailed: It dies again and again.
    """
    died = 0

    def begun(said: Ready) -> None:
        nonlocal died
        died = 0
        ready(said)

    while True:
        exit_code, told = await _run_once(settings, begun)
        if exit_code == 0:
            return
        if exit_code == NO_STORE:
            store, _, reason = told.rpartition("\n")[2].partition(": ")
            raise StoreError(store, reason)
        if exit_code != LOST:
            died += 1
        if died > RESTARTS:
            raise WorkerFailed(exit_code, told)


async def _run_once(settings: Settings, ready: Callable[[Ready], object]) -> tuple[int, str]:
    """Run it once; return its exit code, and the last that it wrote to standard error."""
    told = deque[str](maxlen=TAIL)
    command = [sys.executable, "-P", "-m", "thinkwell.trials._engine.worker"]
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None

        def said(line: str) -> None:
            ready(msgspec.json.decode(line, type=Ready))

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, process.stderr, told.append)
                tasks.start_soon(_read, process.stdout, said)
                with suppress(anyio.BrokenResourceError):
                    await process.stdin.send(msgspec.json.encode(settings) + b"\n")
                await process.wait()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _let_leave(process)
            raise
        assert process.returncode is not None
        return process.returncode, "\n".join(told)


async def _let_leave(process: Process) -> None:
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.send(b"leave\n")
    with anyio.move_on_after(PATIENCE):  # then the end of the process's block kills it
        await process.wait()


async def _read(stream: ByteReceiveStream, take: Callable[[str], object]) -> None:
    lines = BufferedByteReceiveStream(stream)
    with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
        while True:
            take((await lines.receive_until(b"\n", LONGEST)).decode(errors="replace"))
