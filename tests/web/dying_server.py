"""``python -m web.dying_server``: a server of runs that kills itself at a certain point of its work.

For each line that it reads, a `Life` in JSON, a server is begun in a process of its own, forked from this
one, which has imported everything already. A line with its process and its port is printed, and when it has
ended ``ended``.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from real_servers import ServerKind, backend_of, listening
from soak.playing_agent import PlayingAgent

from thinkwell import Agent, open_agent
from thinkwell.journal import SqliteJournal
from thinkwell.web import RunServer, ServedAgent, web_app
from thinkwell_acp import memory_transport_pair, serve_agent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from thinkwell import PermissionMode, PermissionPolicy


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A moment in a server's work."""

    where: str
    """A method, such as ``thinkwell.journal:SqliteJournal.append``."""
    call: int
    """Which call of it."""
    after: bool
    """Whether its work is done then."""

    def __str__(self) -> str:
        when = "after" if self.after else "before"
        return f"{when} {self.where.partition(':')[2]} {self.call}"


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A server."""

    journal: str
    kind: ServerKind
    point: Point | None
    """When it is killed; ``None``: never."""


def die() -> None:
    """End this process as a power cut does."""
    os.kill(os.getpid(), signal.SIGKILL)


def plant(point: Point) -> None:
    """Let this process be killed at a point."""
    module, _, path = point.where.partition(":")
    owner_name, _, name = path.partition(".")
    owner = getattr(importlib.import_module(module), owner_name)
    setattr(owner, name, dying(getattr(owner, name), point))


def dying(method: Callable[..., Any], point: Point) -> Callable[..., Any]:
    """Return a method that kills its process in one of its calls."""
    left = point.call

    def now(*, after: bool) -> None:
        nonlocal left
        left -= after == point.after
        if not left and after == point.after:
            die()

    @wraps(method)
    async def waits(*arguments: Any, **options: Any) -> Any:
        now(after=False)
        result = await method(*arguments, **options)
        now(after=True)
        return result

    @wraps(method)
    def does(*arguments: Any, **options: Any) -> Any:
        now(after=False)
        result = method(*arguments, **options)
        now(after=True)
        return result

    return waits if iscoroutinefunction(method) else does


@asynccontextmanager
async def opened(permissions: PermissionMode | PermissionPolicy) -> AsyncGenerator[Agent]:
    """An agent in this process."""
    ours, theirs = memory_transport_pair()
    async with serve_agent(theirs, PlayingAgent()), open_agent("playing", transport=ours) as agent:
        yield agent


async def serve(life: Life) -> None:
    """Serve until this process is killed."""
    server = RunServer({"playing": ServedAgent(open=opened)}, journal=SqliteJournal(life.journal))
    async with listening(web_app(server), life.kind) as address:
        print(json.dumps({"pid": os.getpid(), "port": address.port}), flush=True)  # noqa: T201 - it is read
        await anyio.sleep_forever()


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            life = msgspec.json.decode(line, type=Life)
            if life.point is not None:
                plant(life.point)
            anyio.run(serve, life, backend=backend_of(life.kind))
        os.waitpid(child, 0)
        print("ended", flush=True)  # noqa: T201 - it is read


if __name__ == "__main__":
    main()
