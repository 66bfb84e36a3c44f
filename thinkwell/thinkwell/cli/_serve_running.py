"""What ``thinkwell serve`` does: runs behind a port, until a signal comes, and an end for all of them."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio
import uvicorn
from msgspec.structs import replace

from thinkwell._core.exit import background_tasks
from thinkwell._display.text import clean, line
from thinkwell.cli._ending import Ending, log_to_stderr
from thinkwell.cli._exit import NO_RESULT, OK
from thinkwell.cli._serve_connections import Connection
from thinkwell.cli._serve_plan import IDLE_AFTER, is_loopback
from thinkwell.cli._serve_privacy import keep_private
from thinkwell.cli._serve_sockets import ListenError, listen, make_room
from thinkwell.web import Limits, RunServer, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractAsyncContextManager
    from socket import socket

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from thinkwell import Agent, PermissionMode, PermissionPolicy
    from thinkwell.cli._serve_plan import Plan

ANSWERING: Final = 2.0
"""Seconds that requests get to be answered after a signal. Streams of events end at once."""

LETTING_GO: Final = 0.5
"""Seconds that they get where no client is left."""

PATIENCE: Final = 4.0
"""Seconds from a signal until agents are killed that have not stopped. Service managers wait for ten and
more."""

LAST: Final = 2.0
"""Seconds after that until the rest is given up."""

SPARE: Final = 512
"""Connections besides those that watch."""

NAMES: Final = ("thinkwell", "uvicorn.error")
"""Loggers that are read."""

LONGEST_PATH: Final = 200
"""Characters of a path that are noted."""

OPEN: Final = """\
Warning: Anyone who can reach this port can try tokens, and nothing on the way to it is encrypted.
Put a proxy before it that speaks https, and name its address among the proxies of the file.
"""

logger = logging.getLogger("thinkwell")


def run_plan(plan: Plan) -> int:
    """Serve until a signal comes, and return the exit code.

    Raises:
        JournalError: Runs cannot be kept.
    """
    keep_private()
    for name in NAMES:
        log_to_stderr(logging.INFO if plan.verbose and name == "thinkwell" else logging.WARNING, name)
    with ExitStack() as opened:
        try:
            sockets = listen(plan.host, plan.port)
        except ListenError as exc:
            _say(f"Error: {exc}")
            return NO_RESULT
        for each in sockets:
            opened.enter_context(each)
        return anyio.run(_run, plan, sockets)


async def _run(plan: Plan, sockets: list[socket]) -> int:
    ending = Ending()
    agents: set[Agent] = set()
    everything = anyio.CancelScope()

    def kill() -> None:
        for agent in agents:
            agent.kill()

    with ending.signals():
        async with background_tasks() as tasks:
            tasks.start_soon(ending.hurry, kill, PATIENCE)
            tasks.start_soon(ending.hurry, everything.cancel, PATIENCE + LAST)
            with everything:
                async with _server(plan, agents) as server:
                    http = _http_server(plan, server, sockets)
                    tasks.start_soon(_end, ending, server, http)
                    await http.serve(sockets)
    return OK if ending.signal is None else 128 + ending.signal


async def _end(ending: Ending, server: RunServer, http: _HttpServer) -> None:
    with ending.scope:
        await anyio.sleep_forever()
    server.begin_leaving()
    http.should_exit = True


def _server(plan: Plan, agents: set[Agent]) -> RunServer:
    file = plan.config
    return RunServer(
        {name: replace(served, open=_counted(served.open, agents)) for name, served in plan.agents.items()},
        journal=plan.journal,
        limits=file.limits,
        retention=file.retention,
        idle_after=IDLE_AFTER if file.idle_after is None else file.idle_after or None,
        abandoned_after=file.abandoned_after,
    )


def _counted(
    opener: Callable[[PermissionMode | PermissionPolicy], AbstractAsyncContextManager[Agent]],
    agents: set[Agent],
) -> Callable[[PermissionMode | PermissionPolicy], AbstractAsyncContextManager[Agent]]:
    """Return what opens an agent, and has it among others as long as it is open."""

    @asynccontextmanager
    async def opened(permissions: PermissionMode | PermissionPolicy) -> AsyncGenerator[Agent]:
        async with opener(permissions) as agent:
            agents.add(agent)
            try:
                yield agent
            finally:
                agents.discard(agent)

    return opened


# HTTP


class _HttpServer(uvicorn.Server):
    """A server that leaves signals to us."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.servers = []  # set by nothing else before it listens
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none: see `Ending`."""
        yield

    async def serve(self, sockets: list[socket] | None = None) -> None:
        """Serve until the end. Where that is not waited for, no client stays connected all the same."""
        try:
            await super().serve(sockets)
        finally:
            for listener in self.servers:
                listener.close()
            self._break_off()
            if self.server_state.tasks:
                with anyio.CancelScope(shield=True):
                    await asyncio.wait(self.server_state.tasks, timeout=LETTING_GO)

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to take connections."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """End, after what was asked is answered."""
        async with background_tasks() as tasks:
            tasks.start_soon(self._break_off_late)
            await super().shutdown(sockets)

    async def _break_off_late(self) -> None:
        await anyio.sleep(ANSWERING)
        self._break_off()

    def _break_off(self) -> None:
        """Disconnect all clients. What is being done for them learns that, and ends."""
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


def _http_server(plan: Plan, server: RunServer, sockets: list[socket]) -> _HttpServer:
    limits = plan.config.limits or Limits()
    app: ASGIApp = web_app(server, access=plan.access, page=plan.page, letta=plan.letta)
    config = uvicorn.Config(
        _Noted(app) if plan.verbose else app,
        http=Connection,
        lifespan="off",  # the server of runs is entered already
        ws="none",
        log_config=None,
        access_log=False,  # it has queries in it
        proxy_headers=False,  # the guard believes the proxies that were named, and no others
        server_header=False,
        limit_concurrency=make_room(limits.max_watchers + SPARE),
    )
    return _HttpServer(config, lambda: _tell_ready(plan, sockets[0].getsockname()[1]))


class _Noted:
    """Notes each request, without its query and without what was sent. It is an ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                path = line(scope["path"], LONGEST_PATH)  # it may have ends of lines in it
                logger.info("%s %s: %s", scope["method"], path, message["status"])
            await send(message)

        await self._app(scope, receive, noted)


# What is said


def _tell_ready(plan: Plan, port: int) -> None:
    _say(f"Serving {', '.join(plan.agents)}. Runs are kept {plan.kept}. Ctrl-C ends it.")
    address = f"http://{_shown_host(plan)}:{port}/"
    callers = ", ".join(plan.access.tokens.callers)
    if plan.secret is None:
        _say(f"Ready at {address} for callers with the token of {callers}")
    elif plan.page:
        _say(f"Ready at {address}#secret={plan.secret}")
    else:
        _say(f"Ready at {address} with the token {plan.secret}")
    if not (is_loopback(plan.host) or plan.config.proxies):
        _say(OPEN)
    for why in plan.missing:
        _say(f"Warning: {why}")


def _shown_host(plan: Plan) -> str:
    """Return a host by which the server can be asked."""
    host = plan.host
    if host in ("0.0.0.0", "::"):  # noqa: S104 - all addresses have none of their own
        if plan.config.hosts:
            return plan.config.hosts[0]
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104 - as above
    return f"[{host}]" if ":" in host else host


def _say(text: str) -> None:
    with suppress(OSError):  # it has no reader any more; the server goes on
        sys.stderr.write(clean(text.removesuffix("\n") + "\n"))
        sys.stderr.flush()
