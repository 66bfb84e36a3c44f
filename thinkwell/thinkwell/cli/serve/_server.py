"""Serves runs on a port until a signal comes, and ends all of them."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from thinkwell._core.exit import background_tasks
from thinkwell.cli._errors import NO_RESULT
from thinkwell.cli._process import Ending, log_to_stderr, say
from thinkwell.cli.serve._http import HttpServer, ListenError, listen, make_room
from thinkwell.cli.serve._plan import is_loopback
from thinkwell.web import Limits, RunServer, web_app

if TYPE_CHECKING:
    from socket import socket

    from thinkwell.cli.serve._plan import Plan

PR_SET_DUMPABLE: Final = 4
"""The option for the kernel (Linux, prctl(2))."""

PATIENCE: Final = 4.0
"""Seconds after a signal until agents are killed that have not ended. Service managers wait ten or more."""

LAST: Final = 2.0
"""More seconds until the rest is given up."""

SPARE: Final = 512
"""Connections in addition to the watchers'."""

NAMES: Final = ("thinkwell", "uvicorn.error")
"""Loggers that are shown."""

OPEN: Final = """\
Warning: Anyone who can reach this port can try tokens, and nothing on the way to it is encrypted.
Put a proxy before it that speaks https, and name its address among the proxies of the file.
"""


def run_plan(plan: Plan) -> int:
    """Serve until a signal comes, and return the exit code.

    Raises:
        JournalError: Runs cannot be stored.
    """
    _keep_private()
    for name in NAMES:
        log_to_stderr(logging.INFO if plan.verbose and name == "thinkwell" else logging.WARNING, name)
    with ExitStack() as opened:
        try:
            sockets = listen(plan.config.host, plan.config.port)
        except ListenError as exc:
            say(f"Error: {exc}")
            return NO_RESULT
        for each in sockets:
            opened.enter_context(each)
        return anyio.run(_run, plan, sockets)


async def _run(plan: Plan, sockets: list[socket]) -> int:
    ending = Ending()
    everything = anyio.CancelScope()
    with ending.signals():
        async with background_tasks() as tasks:
            tasks.start_soon(ending.hurry, ending.kill, PATIENCE)
            tasks.start_soon(ending.hurry, everything.cancel, PATIENCE + LAST)
            with everything:
                async with _server(plan, ending) as server:
                    http = HttpServer(
                        web_app(server, access=plan.access, page=plan.config.page, letta=plan.config.letta),
                        make_room((plan.config.limits or Limits()).max_watchers + SPARE),
                        lambda: _tell_ready(plan, sockets[0].getsockname()[1]),
                        noted=plan.verbose,
                    )
                    tasks.start_soon(_end, ending, server, http)
                    await http.serve(sockets)
    return ending.exit_code


async def _end(ending: Ending, server: RunServer, http: HttpServer) -> None:
    with ending.scope:
        await anyio.sleep_forever()
    server.begin_leaving()
    http.should_exit = True


def _server(plan: Plan, ending: Ending) -> RunServer:
    file = plan.config
    return RunServer(
        {name: replace(served, open=ending.counting(served.open)) for name, served in plan.agents.items()},
        journal=plan.journal,
        limits=file.limits,
        retention=file.retention,
        idle_after=file.idle_after or None,
        abandoned_after=file.abandoned_after,
    )


def _tell_ready(plan: Plan, port: int) -> None:
    say(f"Serving {', '.join(plan.agents)}. Runs are kept {plan.kept}. Ctrl-C ends it.")
    address = f"http://{_shown_host(plan)}:{port}/"
    callers = ", ".join(plan.access.tokens.callers)
    if plan.secret is None:
        say(f"Ready at {address} for callers with the token of {callers}")
    elif plan.config.page:
        say(f"Ready at {address}#secret={plan.secret}")
    else:
        say(f"Ready at {address} with the token {plan.secret}")
    if not (is_loopback(plan.config.host) or plan.config.proxies):
        say(OPEN)
    for why in plan.missing:
        say(f"Warning: {why}")


def _shown_host(plan: Plan) -> str:
    """Return a host name or address for requests to the server."""
    host = plan.config.host
    if host in ("0.0.0.0", "::"):  # noqa: S104 - all addresses have none of their own
        if plan.config.hosts:
            return plan.config.hosts[0]
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104 - as above
    return f"[{host}]" if ":" in host else host


def _keep_private() -> None:
    """Let no process of the same user read this one's memory, if the system supports that.

    A variable that was taken out of the environment is still in the process's initial memory, which Linux
    shows to all processes of the user: ``/proc/PID/environ``. Started programs are not affected, as this ends
    with ``execve``.
    """
    if sys.platform != "linux":  # pragma: no cover - the tests run on Linux
        return
    with suppress(ImportError, OSError, AttributeError):  # a Python or a system without it
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
