"""``python -m web.dying_server``: a server of runs that kills itself at a certain point of its work.

For each line that it reads, a `Life` in JSON, a server is begun in a process of its own, forked from this
one, which has imported everything already. A line with its process and its port is printed, and when it has
ended ``ended``.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
import msgspec
from real_servers import ServerKind, backend_of, listening
from soak.playing_agent import PlayingAgent

from thinkwell import Agent, open_agent
from thinkwell.journal import SqliteJournal
from thinkwell.web import RunServer, ServedAgent, web_app
from thinkwell_acp import memory_transport_pair, serve_agent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from thinkwell import PermissionMode, PermissionPolicy
    from thinkwell.journal import Entry, RunEnd, RunRecord

Step: TypeAlias = Literal["create", "append", "finish", "orphans", "UPDATE runs", "COMMIT", "sent"]
"""What a server does: calls of the journal, statements in its file, and events that are sent."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A moment in a server's work."""

    step: Step
    call: int
    """Which time it does that."""
    after: bool
    """Whether it is done then."""

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} {self.step} {self.call}"


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A server."""

    journal: str
    kind: ServerKind
    point: Point | None
    """When it is killed; ``None``: never."""


class Death:
    """Kills this process at a point, as a power cut does."""

    def __init__(self, point: Point | None) -> None:
        self._point = point
        self._left = 0 if point is None else point.call

    @contextmanager
    def around(self, step: str) -> Generator[None]:
        """Do a step of the work."""
        here = self._point is not None and step.startswith(self._point.step)
        self._left -= here
        if here and not self._left and self._point is not None:
            self._come(after=False)
            yield
            self._come(after=True)
        else:
            yield

    def _come(self, *, after: bool) -> None:
        if self._point is not None and self._point.after == after:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingFile(sqlite3.Connection):
    """A file in which a statement may be the last."""

    def __init__(self, *arguments: Any, death: Death, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._death = death

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        with self._death.around(sql):
            return super().execute(sql, *arguments)


class DyingJournal(SqliteJournal):
    """A journal of which a call may be the last."""

    def __init__(self, path: str, death: Death) -> None:
        super().__init__(path)
        self._death = death

    async def create(self, record: RunRecord) -> RunRecord:
        with self._death.around("create"):
            return await super().create(record)

    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        with self._death.around("append"):
            await super().append(run_id, entries)

    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        with self._death.around("finish"):
            await super().finish(run_id, end, status, at)

    async def orphans(self) -> list[RunRecord]:
        with self._death.around("orphans"):
            return await super().orphans()


class DyingApp:
    """An application of which an event that is sent may be the last."""

    def __init__(self, app: ASGIApp, death: Death) -> None:
        self._app = app
        self._death = death

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sends(message: Message) -> None:
            with self._death.around("sent" if b"\ndata: " in message.get("body", b"") else "else"):
                await send(message)

        await self._app(scope, receive, sends)


@asynccontextmanager
async def opened(permissions: PermissionMode | PermissionPolicy) -> AsyncGenerator[Agent]:
    """An agent in this process."""
    ours, theirs = memory_transport_pair()
    async with serve_agent(theirs, PlayingAgent()), open_agent("playing", transport=ours) as agent:
        yield agent


async def serve(life: Life) -> None:
    """Serve until this process is killed."""
    death = Death(life.point)
    dying = partial(DyingFile, death=death)
    sqlite3.connect = partial(sqlite3.connect, factory=dying)  # type: ignore[assignment]
    server = RunServer({"playing": ServedAgent(open=opened)}, journal=DyingJournal(life.journal, death))
    async with listening(DyingApp(web_app(server), death), life.kind) as address:
        print(json.dumps({"pid": os.getpid(), "port": address.port}), flush=True)  # noqa: T201 - it is read
        await anyio.sleep_forever()


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            life = msgspec.json.decode(line, type=Life)
            anyio.run(serve, life, backend=backend_of(life.kind))
        os.waitpid(child, 0)
        print("ended", flush=True)  # noqa: T201 - it is read


if __name__ == "__main__":
    main()
