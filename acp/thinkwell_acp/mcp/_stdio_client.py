"""A link to an MCP server that the agent starts (MCP 2025-11-25, basic/transports, stdio)."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Raw, Struct, field

from thinkwell_acp.connection import open_connection
from thinkwell_acp.errors import AcpError, ConnectionBroken, ProcessExited, ProgramNotFound, RpcError
from thinkwell_acp.interpreter import python_command, why_no_interpreter
from thinkwell_acp.mcp._client import MAX_REASON, McpTrouble, printable
from thinkwell_acp.stdio import find_program, stdio_transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from thinkwell_acp import _jsonrpc as rpc
    from thinkwell_acp.connection import Connection
    from thinkwell_acp.schema import JsonObject, McpServerStdio, SessionNotification

GUARD: Final = Path(__file__).with_name("guard.py")

INHERITED: Final = frozenset(
    (
        *("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
        *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA"),
        *("PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
    )
)
"""Variables of this process that a server gets besides its own, as with other clients, and those that begin
with ``LC_``. A key for the agent is not for its servers."""

EXIT_GRACE: Final = 1.0
"""Seconds for a server to exit when its input is closed. With `TERMINATE_GRACE` it is less than an agent gets
from its client."""

TERMINATE_GRACE: Final = 0.3
"""Seconds between SIGTERM and SIGKILL."""

GUARD_GRACE: Final = 2.0
"""Seconds after which a server whose agent is gone is killed: longer than a living agent takes to do it."""

MAX_LINE: Final = 16 * 1024 * 1024
"""Most bytes of one message. Images are sent inline."""

MAX_NONSENSE: Final = 1000
"""Most malformed lines after a request. Many programs print a greeting."""

MAX_ASKED: Final = 100
"""Most unanswered requests of a server."""

SILENCE_TIMEOUT: Final = 120.0
"""Seconds without progress after which a tool call is given up."""

CALL_TIMEOUT: Final = 3600.0
"""Seconds after which a call is given up, whatever its progress."""


class _Progress(Struct, frozen=True):
    token: int | str = field(name="progressToken")


class _Heard:
    """The handler of a server's own requests and notifications."""

    def __init__(self, connection: Connection, changed: Callable[[], None]) -> None:
        self._connection = connection
        self._changed = changed
        self.calls: dict[int | str, Callable[[], None]] = {}
        """The callback for progress of each call, by its token."""
        self.nonsense = 0
        """The number of malformed lines since the last request."""
        self._asked = 0

    def updates(self, batch: list[SessionNotification], /) -> None:
        """Ignore updates, which MCP servers never send."""

    def arrived(self, request: rpc.Request, /) -> None:
        """Count requests: a server that reads no answers must not fill the memory."""
        self._asked += 1
        if self._asked > MAX_ASKED:
            self._connection.end(ConnectionBroken("it sends requests, and does not read the answers"))

    async def request(self, id: rpc.RequestId, method: str, params: Raw, /) -> object:  # noqa: A002
        """Answer the requests that a client without capabilities may get."""
        try:
            await self._connection.drain()
        finally:
            self._asked -= 1
        if method == "ping":
            return {}
        raise RpcError.method_not_found(method)

    def notification(self, method: str, params: Raw, /) -> None:
        """Handle a notification. Unknown and malformed ones are ignored."""
        if method == "notifications/tools/list_changed":
            self._changed()
        elif method == "notifications/progress":
            with suppress(ValueError, RecursionError):
                self.calls.get(msgspec.json.decode(params, type=_Progress).token, _nothing)()

    def malformed(self, report: rpc.Malformed, /) -> None:
        """Ignore malformed output, as long as there is a request now and then."""
        self.nonsense += 1
        if self.nonsense > MAX_NONSENSE:
            said = printable(report.line[:MAX_REASON].decode("utf-8", "replace"), 100)
            self._connection.end(ConnectionBroken(f"it prints malformed output, such as {said}"))

    def closed(self, reason: AcpError, /) -> None:
        """Do nothing: waiting calls get the reason."""


def _nothing(*_: object) -> None:
    pass


class StdioLink:
    """A connection to a process. Made by `stdio_link`."""

    def __init__(self, connection: Connection[_Heard]) -> None:
        self._connection = connection
        self._heard = connection.handler
        self._tokens = count(1)

    async def request(self, method: str, params: JsonObject) -> Raw:
        """Send a request and return its result. A tool call is given up after too long a silence.

        Raises:
            AcpError: The request failed, or there will be no answer.
            TimeoutError: The answer took too long.
        """
        if method != "tools/call":
            return await self._request(method, params)
        token = next(self._tokens)
        latest = anyio.current_time() + CALL_TIMEOUT
        with anyio.move_on_after(SILENCE_TIMEOUT) as scope:

            def lives() -> None:
                scope.deadline = min(anyio.current_time() + SILENCE_TIMEOUT, latest)

            self._heard.calls[token] = lives
            try:
                return await self._request(method, {**params, "_meta": {"progressToken": token}})
            finally:
                del self._heard.calls[token]
        raise TimeoutError(f"the call was silent for {SILENCE_TIMEOUT:g} seconds")

    async def _request(self, method: str, params: JsonObject) -> Raw:
        self._heard.nonsense = 0
        # The handshake must not be cancelled (MCP, cancellation).
        give_up = _nothing if method == "initialize" else self._withdraw
        return await self._connection.request(method, params, give_up=give_up)

    def _withdraw(self, id_: int) -> None:
        self.notify("notifications/cancelled", {"requestId": id_})

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._connection.notify(method, params)

    async def wait_ended(self) -> str:
        """Wait until the server has ended, and return a description of its end."""
        await self._connection.wait_closed()
        assert self._connection.error is not None
        return self.ended(self._connection.error)

    def ended(self, error: AcpError) -> str:
        """Return a description of the server's end."""
        if not isinstance(error, ProcessExited):
            return printable(str(error), MAX_REASON)
        code = error.exit_code
        what = "it closed its output" if code is None else f"it ended with exit code {code}"
        last = next((line for line in reversed(error.stderr_tail.splitlines()) if line.strip()), "")
        return f"{what}: {printable(last.strip(), MAX_REASON)}" if last else what


@asynccontextmanager
async def stdio_link(
    server: McpServerStdio, cwd: str | os.PathLike[str], changed: Callable[[], None]
) -> AsyncGenerator[StdioLink]:
    """Start a server and connect to it. It ends with the block, and with this process.

    Args:
        server: The server to start.
        cwd: The folder to start it in.
        changed: Called when the server says that its tools have changed.

    Raises:
        McpTrouble: The server cannot be started.
    """
    env = _environment({variable.name: variable.value for variable in server.env})
    try:
        command = _guarded(find_program([server.command, *server.args], env, cwd))
        async with (
            stdio_transport(
                command, env=env, cwd=cwd, exit_grace=EXIT_GRACE, terminate_grace=TERMINATE_GRACE
            ) as transport,
            open_connection(transport, partial(_Heard, changed=changed), max_line=MAX_LINE) as connection,
        ):
            yield StdioLink(connection)
    except ProgramNotFound as exc:
        raise McpTrouble(printable(str(exc), MAX_REASON)) from exc


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    passed = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in INHERITED or name.startswith("LC_")
    }
    return {**passed, **own}


def _guarded(command: list[str]) -> list[str]:
    if sys.platform == "win32" or why_no_interpreter():  # Windows: its job ends it with us; else: nothing can
        return command
    return python_command("-I", "-S", str(GUARD), str(GUARD_GRACE), *command)
