"""A server is killed at every point of a run's way into the journal: who watched it misses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import msgspec
import pytest
from soak.plays import Play, pieces_of
from soak.watching_client import Broken, Frames, ask, connected
from web.dying_server import Life, Point, Step
from web_stage import read_entry

from thinkwell.journal import Entry, SqliteJournal
from thinkwell.web import RunEnded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from real_servers import ServerKind
    from soak.watching_client import Frame

pytestmark = pytest.mark.xdist_group("dying server")

TESTS: Final = Path(__file__).parents[1]

PLAY: Final = Play(seed=4, bursts=4, pause=0.01, width=2)


def before(step: Step, call: int = 1) -> Point:
    return Point(step=step, call=call, after=False)


def after(step: Step, call: int = 1) -> Point:
    return Point(step=step, call=call, after=True)


IN_THE_RUN: Final = (
    before("create"),
    before("COMMIT"),  # written, and not yet kept: the first time it is the run's record
    after("COMMIT"),  # kept, and nobody knows it
    after("create"),
    before("append"),
    *(point("COMMIT", call) for point in (before, after) for call in (2, 4)),
    *(after("append", call) for call in (1, 2, 4)),
    *(point("sent", call) for point in (before, after) for call in (1, 3)),
    before("finish"),
    before("UPDATE runs"),
    after("UPDATE runs"),
    after("finish"),
)
"""When the server is killed that has the run."""

IN_THE_END: Final = (
    before("orphans"),
    after("orphans"),
    before("finish"),
    before("COMMIT"),
    after("finish"),
)
"""When the next one is killed, which ends the run that the first one has left."""

USUAL: Final = (after("COMMIT", 2), after("sent", 3), before("finish"))
"""Those that take a second are tried always, the others with the cases that take long."""


def some(points: Sequence[Point]) -> list[Any]:
    """Return parameters of a case."""
    return [point if point in USUAL else pytest.param(point, marks=pytest.mark.long) for point in points]


@pytest.fixture(scope="module")
def program() -> Generator[subprocess.Popen[bytes]]:
    """What begins servers."""
    command = [sys.executable, "-m", "web.dying_server"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(
        command, cwd=TESTS, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        yield running
        running.kill()


class Server:
    """A server that is begun again whenever it was killed."""

    def __init__(self, program: subprocess.Popen[bytes], journal: Path, kind: ServerKind) -> None:
        self.deaths = 0
        self.port = 1  # where nobody listens
        self._program = program
        self._journal = str(journal)
        self._kind: ServerKind = kind
        self._pid = 0

    async def live(self, points: Sequence[Point]) -> None:
        """Be killed at these points, in one life after the other, and then be there until the end."""
        deaths: list[Point | None] = [*points, None]
        for point in deaths:
            life = Life(journal=self._journal, kind=self._kind, point=point)
            assert self._program.stdin is not None
            self._program.stdin.write(msgspec.json.encode(life) + b"\n")
            self._program.stdin.flush()
            while (line := await self._line()) != b"ended\n":
                began = json.loads(line)
                self._pid, self.port = began["pid"], began["port"]
            self._pid = 0
            self.deaths += 1

    async def _line(self) -> bytes:
        assert self._program.stdout is not None
        line = await anyio.to_thread.run_sync(self._program.stdout.readline)
        assert line, "the program has ended"
        return line

    def kill(self) -> None:
        """End it."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)

    async def start(self) -> str:
        """Start a run, however often that takes, and return its id."""
        while True:
            try:
                headers = {"Idempotency-Key": "the one"}
                status, answer = await ask(self.port, "POST", "/api/runs", {"prompt": PLAY.prompt}, headers)
            except Broken:
                await anyio.sleep(0.01)
            else:
                assert status in (200, 201), answer
                run_id: str = answer["run"]["id"]
                return run_id

    async def watch(self, run_id: str) -> list[Frame]:
        """Watch a run to its end, however often that takes."""
        seen: list[Frame] = []
        while not seen or seen[-1].event != "end":
            try:
                await self.look(run_id, seen)
            except Broken:  # nobody listens for a moment
                await anyio.sleep(0.01)
        return seen

    async def look(self, run_id: str, seen: list[Frame]) -> None:
        """Watch a run behind what was seen, until the stream ends."""
        headers = {"Last-Event-ID": str(seen[-1].id)} if seen else {}
        async with connected(self.port, f"/api/runs/{run_id}/events", headers=headers) as answer:
            assert answer.status == 200, await answer.body()
            frames = Frames()
            while data := await answer.read():
                seen += frames.feed(data)


@asynccontextmanager
async def lives(
    program: subprocess.Popen[bytes], journal: Path, backend: str, points: Sequence[Point]
) -> AsyncGenerator[Server]:
    """Have a server that is killed at these points."""
    kind: ServerKind = "uvicorn" if backend == "asyncio" else "hypercorn-trio"
    server = Server(program, journal, kind)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.live, points)
        try:
            with anyio.fail_after(90):
                yield server
        finally:
            server.kill()  # otherwise the task waits for its end


@pytest.mark.parametrize("first", some(IN_THE_RUN), ids=str)
async def test_who_comes_back_misses_nothing(
    first: Point, program: subprocess.Popen[bytes], tmp_path: Path, anyio_backend_name: str
) -> None:
    await check(program, tmp_path / "runs.sqlite", anyio_backend_name, [first])


@pytest.mark.parametrize("second", some(IN_THE_END), ids=str)
async def test_the_end_of_an_interrupted_run_is_written_once(
    second: Point, program: subprocess.Popen[bytes], tmp_path: Path, anyio_backend_name: str
) -> None:
    first = after("append", 3)
    end = await check(program, tmp_path / "runs.sqlite", anyio_backend_name, [first, second])
    assert end.status == "interrupted"


async def check(
    program: subprocess.Popen[bytes], path: Path, backend: str, points: Sequence[Point]
) -> RunEnded:
    """Let a run be watched by two through these deaths, and look at what they saw. Return its end."""
    async with lives(program, path, backend, points) as server:
        run_id = await server.start()
        seen: dict[str, list[Frame]] = {}

        async def watch(name: str) -> None:
            seen[name] = await server.watch(run_id)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, "one")
            tasks.start_soon(watch, "another")
        assert await server.start() == run_id, "the request is known"
        assert server.deaths == len(points)
        whole = seen["one"]
        for number in range(len(whole)):
            rest = whole[:number]
            await server.look(run_id, rest)
            assert rest == whole, f"behind number {number}"
    assert seen["another"] == whole
    assert [frame.id for frame in whole] == list(range(1, len(whole) + 1))
    async with SqliteJournal(path) as journal:
        kept = await journal.read(run_id, most=1 << 30)
        record = await journal.get(run_id)
    assert [Entry(frame.id, frame.data) for frame in whole] == kept
    assert record is not None
    *events, end = [read_entry(entry) for entry in kept]
    assert isinstance(end, RunEnded)
    assert (record.status, record.last_seq) == (end.status, end.seq)
    assert end.status in ("completed", "interrupted")
    pieces = pieces_of(events)
    assert pieces == (PLAY.pieces if end.status == "completed" else PLAY.pieces[: len(pieces)])
    return end
