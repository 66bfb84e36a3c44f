"""A measured server: thinkwell's, or a loop in a Starlette application.

    python -m benchmarks.serving_server KIND FOLDER PORT

All have the same agent, read by the same ``stream(include="all")``, and the same bytes to send for each
event. *Each* is the first version one writes: ``StreamingResponse`` over a generator that yields one event at
a time. *Joined* yields at once all events so far. Both keep the events in one list that all watchers read,
and wake them by one event: no queue for each watcher, which would have to be filled. Neither has a journal,
accounts, keep-alive comments or limits.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.routing import Route

from benchmarks.clients._common import cpu_seconds, resident_bytes
from benchmarks.serving_agent import TOKEN
from thinkwell import open_agent
from thinkwell.events import event_to_json
from thinkwell.journal import MemoryJournal, SqliteJournal
from thinkwell.web import Access, Limits, RunServer, served_agent, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from thinkwell import Agent
    from thinkwell.journal import Journal

Kind: TypeAlias = Literal["memory", "sqlite", "redis", "each", "joined"]

KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}

AGENT = [sys.executable, "-m", "benchmarks.serving_agent"]

REDIS = "THINKWELL_BENCH_REDIS"
"""Environment variable with the address of a Redis server."""

MOST = 10_000
"""More than the number of watchers."""

BLANK = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div id="timeline"></div>'
"""A page in which a browser can watch, and show the text."""


def thinkwell_app(kind: Kind, folder: Path) -> ASGIApp:
    """Return the application of thinkwell."""
    journal: Journal
    if kind == "redis":
        from thinkwell.journal.redis import RedisJournal

        journal = RedisJournal(os.environ[REDIS], prefix=f"bench-{os.getpid()}")
    else:
        journal = MemoryJournal() if kind == "memory" else SqliteJournal(folder / "runs.sqlite")
    limits = Limits(max_watchers=MOST, max_watchers_per_caller=MOST)
    server = RunServer({"bench": served_agent(command=AGENT)}, journal=journal, limits=limits)
    return web_app(server, access=Access({TOKEN: "bench"}))


class Loop:
    """A run in a Starlette application, as written in an afternoon."""

    def __init__(self, *, joined: bool) -> None:
        self.frames: list[bytes] = []
        self.over = False
        self._joined = joined
        self._changed = asyncio.Event()

    async def read(self, agent: Agent, prompt: str) -> None:
        """Run the agent."""
        async for event in agent.think().text(prompt).stream(include="all"):
            self.frames.append(b"id: %d\ndata: %s\n\n" % (event.seq, event_to_json(event)))
            self._wake()
        self.frames.append(b'id: %d\nevent: end\ndata: {"type":"end"}\n\n' % (len(self.frames) + 1))
        self.over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def watch(self, after: int) -> AsyncIterator[bytes]:
        """Watch it."""
        while True:
            if self._joined and after < len(self.frames):
                frames = self.frames[after:]
                after += len(frames)
                yield b"".join(frames)
            while after < len(self.frames):
                after += 1
                yield self.frames[after - 1]
            if self.over:
                return
            if after == len(self.frames):
                await self._changed.wait()


def loop_app(kind: Kind) -> ASGIApp:
    """An application with a loop."""
    agents: list[Agent] = []
    loops: dict[str, Loop] = {}
    tasks: set[asyncio.Task[None]] = set()

    async def start(request: Request) -> JSONResponse:
        prompt = (await request.json())["prompt"]
        loop = loops[str(len(loops))] = Loop(joined=kind == "joined")
        task = asyncio.create_task(loop.read(agents[0], prompt))
        tasks.add(task)
        return JSONResponse({"run": {"id": str(len(loops) - 1)}}, 201)

    async def events(request: Request) -> StreamingResponse:
        after = int(request.headers.get("last-event-id", "0"))
        body = loops[request.path_params["id"]].watch(after)
        return StreamingResponse(body, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    @asynccontextmanager
    async def opened(_: Starlette) -> AsyncGenerator[None]:
        async with open_agent(command=AGENT) as agent:
            agents.append(agent)
            yield

    return Starlette(
        routes=[Route("/api/runs", start, methods=["POST"]), Route("/api/runs/{id}/events", events)],
        lifespan=opened,
    )


def with_figures(app: ASGIApp) -> ASGIApp:
    """Add routes for the server's usage, and a page for browsers, before the application's own."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        match scope.get("path"):
            case "/figures":
                figures = {"cpu_seconds": cpu_seconds(), "resident_bytes": resident_bytes()}
                await JSONResponse(figures)(scope, receive, send)
            case "/blank":
                await HTMLResponse(BLANK)(scope, receive, send)
            case _:
                await app(scope, receive, send)

    return answer


def main() -> None:
    kind, folder, port = KINDS[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3])
    app = loop_app(kind) if kind in ("each", "joined") else thinkwell_app(kind, folder)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    settings = uvicorn.Config(
        with_figures(app), port=port, http="h11", ws="none", log_level="error", access_log=False, backlog=4096
    )
    uvicorn.Server(settings).run()


if __name__ == "__main__":
    main()
