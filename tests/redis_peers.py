"""Other processes that have a journal in Redis."""

from __future__ import annotations

import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import Process

__all__ = ("RedisPeer", "redis_peer")

PROGRAM: Final = str(Path(__file__).parent / "journal" / "programs" / "redis_process.py")


class RedisPeer:
    """Another process: see `journal/programs/redis_process.py`."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._said = BufferedByteReceiveStream(process.stdout)

    async def ask(self, command: str) -> str:
        """Have it do something, and return what it says to that."""
        await self.tell(command)
        return await self.hear()

    async def tell(self, command: str) -> None:
        """Have it do something."""
        assert self._process.stdin is not None
        await self._process.stdin.send(command.encode() + b"\n")

    async def hear(self) -> str:
        """Return the next line that it says."""
        with anyio.fail_after(30):
            return (await self._said.receive_until(b"\n", 65536)).decode()

    def stop(self) -> None:
        """Let it stand still."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    async def kill(self) -> list[str]:
        """Kill it, and return what it has said until then that was not heard."""
        self._process.kill()
        await self._process.wait()
        lines: list[str] = []
        try:
            while True:
                lines.append(await self.hear())
        except (anyio.EndOfStream, anyio.IncompleteRead):
            return lines


@asynccontextmanager
async def redis_peer(
    backend: str, url: str, prefix: str, *, lease: float = 15.0
) -> AsyncGenerator[RedisPeer]:
    """Another process, for the time of a block."""
    command = [sys.executable, "-W", "error", PROGRAM, backend, url, prefix, str(lease)]
    async with await anyio.open_process(command, stderr=None) as process:
        peer = RedisPeer(process)
        try:
            assert await peer.hear() == "open"
            yield peer
        finally:
            if process.returncode is None:
                process.kill()
