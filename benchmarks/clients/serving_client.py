"""Clients of a measured server: many connections in one process, which only record events and their times.

    python -m benchmarks.clients.serving_client JSON

The server is another process, and so is its agent. The events are checked at the end: every client must have
every event, in order.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from benchmarks.clients import _common as common
from benchmarks.serving_agent import READY, STAMP, TOKEN, Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from benchmarks.clients._common import Figures

Action: TypeAlias = Literal["pour", "paced", "idle", "items", "browser", "page", "open"]

ROOT = Path(__file__).parents[2]

LOOPS = ("each", "joined")
"""The servers besides thinkwell's."""

AT_ONCE = 100
"""Connections that are opened at the same time."""

WARM_UP = 20
"""Clients that connect and leave before memory is measured."""

ENDED = b"0\r\n\r\n"
"""The end of a chunked body (RFC 9112, 7.1)."""

IDS = re.compile(rb"(?:^|\n)id: (\d+)\n")

PATIENCE = 30.0
"""Seconds for a server to start."""

STAMPS = re.compile(f"{STAMP}([0-9]+){STAMP}".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The measurement of a server."""

    kind: str
    action: Action
    watchers: int
    count: int
    """Updates of the agent."""
    rate: float = 0.0
    log: int = 0
    """Updates that the run has when the clients connect."""
    mix: str = ""
    """The mix of updates; empty: pieces of text, each with its time."""

    @property
    def is_loop(self) -> bool:
        """Whether the server is not thinkwell's."""
        return self.kind in LOOPS

    @property
    def has_items(self) -> bool:
        """Whether clients get the items of the page, instead of events."""
        return self.kind == "items"

    @property
    def server(self) -> str:
        """The server that they use."""
        return "memory" if self.has_items else self.kind


class Watcher(asyncio.Protocol):
    """Records the input."""

    def __init__(self, request: bytes, *, keeps: bool) -> None:
        loop = asyncio.get_running_loop()
        self.pieces: list[tuple[int, bytes]] = []
        self.there: asyncio.Future[None] = loop.create_future()
        """Done when an event has come."""
        self.over: asyncio.Future[None] = loop.create_future()
        self._request = request
        self._keeps = keeps
        self._last = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Record the bytes, and count the events."""
        if self._keeps:
            self.pieces.append((monotonic_ns(), data))
        if not self.there.done():
            self._last += data
            if READY.encode() in self._last:
                self.there.set_result(None)
            self._last = self._last[-len(READY) :]
        if data.endswith(ENDED) and not self.over.done():
            self.over.set_result(None)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the tasks that wait for more."""
        for future in (self.there, self.over):
            if not future.done():
                future.set_exception(ConnectionError(f"the server has hung up: {self.pieces[-1:]!r:.500}"))
                future.exception()  # who waits for the other one sees the same

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()

    def late(self, count: int) -> list[int]:
        """Return the delay of each update, in nanoseconds. The end repeats them all, as the result."""
        stamps = ((when, int(stamp)) for when, data in self.pieces for stamp in STAMPS.findall(data))
        return [when - stamp for when, stamp in islice(stamps, count)]

    @property
    def content(self) -> bytes:
        """All bytes so far."""
        return b"".join(data for _, data in self.pieces)

    def check(self) -> int:
        """Return the number of events; all must be there, in order."""
        numbers = [int(number) for number in IDS.findall(self.content)]
        if numbers != list(range(1, len(numbers) + 1)):
            raise SystemExit(f"a client did not get each event once: {numbers[:20]}")
        return len(numbers)


class Served(NamedTuple):
    """A server that was started."""

    process: subprocess.Popen[bytes]
    port: int


@contextmanager
def served(kind: str, folder: Path) -> Generator[Served]:
    """Start a server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.serving_server", kind, str(folder), str(port)]
    with subprocess.Popen(command, cwd=ROOT) as server:
        try:
            yield Served(server, port)
        finally:
            server.kill()


class Measuring:
    """One sample."""

    def __init__(self, serving: Serving, server: Served, go: Path) -> None:
        self.serving = serving
        self.server = server.process
        self.port = server.port
        self.go = go

    def head(self, method: str, path: str) -> str:
        """The first lines of every request."""
        lines = (
            f"{method} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"Authorization: Bearer {TOKEN}",
        )
        return "\r\n".join([*lines, ""])

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request to the server."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        content = b"" if body is None else json.dumps(body).encode()
        head = self.head(method, path) + "Connection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        answer = await reader.read()
        writer.close()
        return json.loads(answer.partition(b"\r\n\r\n")[2] or b"null")

    async def wait_for_server(self) -> None:
        """Wait until it answers."""
        end = monotonic() + PATIENCE
        while self.server.poll() is None and monotonic() < end:
            try:
                await self.ask("GET", "/figures")
            except OSError:
                await asyncio.sleep(0.02)
            else:
                return
        raise SystemExit("the server does not come up")

    async def start(self, *, stays: bool = False) -> str:
        """Start a run, and return its id."""
        order = self.serving
        turn = Turn(
            count=order.count, rate=order.rate, go=str(self.go), stays=stays, log=order.log, mix=order.mix
        )
        answer = await self.ask("POST", "/api/runs", {"prompt": turn.prompt})
        run_id: str = answer["run"]["id"]
        return run_id

    async def watch(self, run_id: str, number: int) -> list[Watcher]:
        """Connect watchers. They have the first events when this returns."""
        what = "items" if self.serving.has_items else "events"
        request = (self.head("GET", f"/api/runs/{run_id}/{what}") + "\r\n").encode()
        limit = asyncio.Semaphore(AT_ONCE)
        loop = asyncio.get_running_loop()
        keeps = self.serving.action != "idle"

        async def connect() -> Watcher:
            async with limit:
                _, watcher = await loop.create_connection(
                    lambda: Watcher(request, keeps=keeps), "127.0.0.1", self.port
                )
                await watcher.there
                return watcher

        return list(await asyncio.gather(*(connect() for _ in range(number))))

    async def stream(self) -> Figures:
        """Let the agent write, and all watchers read to the end."""
        watchers = await self.watch(await self.start(), self.serving.watchers)
        before = await self.ask("GET", "/figures")
        begun = monotonic_ns()
        self.go.touch()
        await asyncio.gather(*(watcher.over for watcher in watchers))
        ended = max(watcher.pieces[-1][0] for watcher in watchers)
        after = await self.ask("GET", "/figures")
        if self.serving.has_items:
            if not all(b'"final"' in watcher.content for watcher in watchers):
                raise SystemExit("a client did not get the end of the run")
            events = self.serving.count
        else:
            events = min(watcher.check() for watcher in watchers)
            if events <= self.serving.count:
                raise SystemExit(f"{self.serving.count} updates were written, {events} events came")
        used = after["cpu_seconds"] - before["cpu_seconds"]
        deliveries = self.serving.count * self.serving.watchers
        seconds = (ended - begun) / 1e9
        figures = {
            "events": float(events),
            "deliveries": deliveries,
            "seconds": seconds,
            "per_second": deliveries / seconds,
            "cpu_per_delivery": used / deliveries,
            "cpu_per_event": used / self.serving.count,
            "resident_bytes": after["resident_bytes"],
            "watcher_bytes": max(len(watcher.content) for watcher in watchers),
        }
        late = sorted(late for watcher in watchers for late in watcher.late(self.serving.count))
        if self.serving.rate and not self.serving.mix:
            if len(late) != deliveries:
                raise SystemExit(f"of {deliveries} times {len(late)} came")
            figures["late_p50_seconds"] = late[len(late) // 2] / 1e9
            figures["late_p99_seconds"] = late[len(late) * 99 // 100] / 1e9
        return figures

    async def idle(self) -> Figures:
        """Let many watch a silent run."""
        run_id = await self.start(stays=True)
        for watcher in await self.watch(run_id, WARM_UP):
            watcher.close()
        await asyncio.sleep(0.3)
        before = await self.ask("GET", "/figures")
        watchers = await self.watch(run_id, self.serving.watchers)
        await asyncio.sleep(0.3)
        after = await self.ask("GET", "/figures")
        for watcher in watchers:
            watcher.close()
        grown = after["resident_bytes"] - before["resident_bytes"]
        return {"grown_bytes": grown, "per_watcher_bytes": grown / self.serving.watchers}

    @classmethod
    def prepare(cls, serving: Serving, folder: Path) -> None:
        """Put what it needs into the server's folder."""

    async def main(self) -> Figures:
        """Take it."""
        await self.wait_for_server()
        actions: dict[str, Callable[[], Awaitable[Figures]]] = {"idle": self.idle}
        return await actions.get(self.serving.action, self.stream)()


def measure(serving: Serving, measuring: type[Measuring] = Measuring) -> Figures:
    """Take a sample."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        measuring.prepare(serving, Path(name))
        with served(serving.server, Path(name)) as server:
            return asyncio.run(measuring(serving, server, Path(name) / "go").main())


if __name__ == "__main__":
    common.report(measure(Serving(**json.loads(sys.argv[1]))))
