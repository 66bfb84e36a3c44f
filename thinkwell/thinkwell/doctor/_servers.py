"""The caller's MCP servers: programs are started once, without the agent.

No agent reports whether it reaches a server, so this is tried here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, cast

import anyio
from msgspec.structs import replace

from thinkwell._core.diagnosis import McpServers
from thinkwell._version import VERSION
from thinkwell.doctor import _words as words
from thinkwell.doctor._check import Check
from thinkwell.mcp_servers import McpStdio
from thinkwell_acp import ProcessExited, ProgramNotFound
from thinkwell_acp import schema as s
from thinkwell_acp.mcp._client import McpClient, McpTrouble
from thinkwell_acp.mcp._stdio_client import stdio_link
from thinkwell_acp.stdio import find_program

if TYPE_CHECKING:
    from thinkwell.doctor._report import Report
    from thinkwell.mcp_servers import McpServer

IDENTITY: Final[s.JsonObject] = {"name": "thinkwell-doctor", "version": VERSION}

REMOTE: Final = "an agent is given its address; whether anything answers there was not tried"
ELSEWHERE: Final = "given in the protocol's form, for an agent that may run elsewhere: it was not started"


class Servers:
    """The caller's servers.

    Args:
        given: The servers as given.
        path: The search path for programs.
        who: The receiver of the servers, for errors.

    Raises:
        TypeError: A value is not a server.
        ValueError: A name, an address or a header cannot be used, or a name is taken.
    """

    def __init__(self, given: Sequence[McpServer], path: str | None, who: str) -> None:
        self._path = path
        self._missing = _missing(given, path)
        everything = given
        if self._missing:
            gone = self._missing
            given = [one for one in given if not isinstance(one, McpStdio) or one.name not in gone]
        self.wire = McpServers(given, path, who).wire
        """The servers for the agent: one whose program is missing is left out."""
        self.names = tuple(server.name for server in everything)
        self._ours = {server.name for server in given if isinstance(server, McpStdio)}

    async def check(self, report: Report, cwd: str) -> None:
        """Start the programs, all at once, and report the outcome of each."""
        checks = {name: _not_there(name, reason) for name, reason in self._missing.items()}

        async def start(server: s.McpServerStdio) -> None:
            checks[server.name] = await self._started(server, cwd, report)

        async with anyio.create_task_group() as tasks:
            for server in self.wire:
                if not isinstance(server, s.McpServerStdio):
                    checks[server.name] = _skipped(server.name, REMOTE)
                elif server.name not in self._ours:
                    checks[server.name] = _skipped(server.name, ELSEWHERE)
                else:
                    tasks.start_soon(start, server)
        for name in self.names:
            report.take(checks[name])

    async def _started(self, server: s.McpServerStdio, cwd: str, report: Report) -> Check:
        began = anyio.current_time()
        try:
            tools = await _tools(self._with_path(server), cwd, report.limits.startup)
        except McpTrouble as exc:
            cause = exc.__cause__
            stderr = words.end(cause.stderr_tail) if isinstance(cause, ProcessExited) else ""
            return Check(
                name=check_name(server.name),
                status="failed",
                detail=exc.reason,
                seconds=anyio.current_time() - began,
                stderr=stderr if "\n" in stderr else "",  # its last line is in the reason
            )
        seconds = anyio.current_time() - began
        if tools is None:
            return Check(
                name=check_name(server.name),
                status="failed",
                detail=f"it starts, but does not list its tools within {report.limits.startup:g} seconds",
                seconds=seconds,
                hint=f"raise {report.limits.startup_name} if it needs longer",
            )
        return Check(
            name=check_name(server.name),
            status="ok" if tools else "warning",
            detail=f"it starts, and offers {tools or 'no'} tool{'' if tools == 1 else 's'}",
            seconds=seconds,
        )

    def _with_path(self, server: s.McpServerStdio) -> s.McpServerStdio:
        """Give a server the agent's ``PATH``, with which an agent would start it."""
        if self._path is None or any(variable.name == "PATH" for variable in server.env):
            return server
        return replace(server, env=(s.EnvVariable(name="PATH", value=self._path), *server.env))


async def _tools(server: s.McpServerStdio, cwd: str, seconds: float) -> int | None:
    """Start a server, and return the number of its tools; ``None`` if it takes too long.

    Raises:
        McpTrouble: The server does not list its tools.
    """
    trouble: McpTrouble | None = None
    tools: int | None = None
    async with stdio_link(server, cwd, _nothing) as link:
        with anyio.move_on_after(seconds):
            client = McpClient(server.name, link, IDENTITY)
            try:
                await client.start()
                tools = len(client.tools)
            except McpTrouble as exc:  # not raised through the block, which has tasks
                trouble = exc
    if trouble is not None:
        raise trouble
    return tools


def _missing(given: object, path: str | None) -> dict[str, str]:
    """Return the servers whose programs are missing, by name, and why. Nothing else is checked."""
    if not isinstance(given, Sequence):
        return {}
    missing: dict[str, str] = {}
    for server in cast("Iterable[object]", given):
        if isinstance(server, McpStdio):
            own = server.env.get("PATH", path)
            try:
                find_program(server.command, None if own is None else {"PATH": own}, None)
            except ProgramNotFound as exc:
                missing[server.name] = exc.reason
    return missing


def check_name(server: str) -> str:
    """Return the name of a server's check."""
    return f"server {server}"


def _not_there(server: str, reason: str) -> Check:
    hint = "install it, or give its whole path"
    return Check(name=check_name(server), status="failed", detail=reason, hint=hint)


def _skipped(server: str, why: str) -> Check:
    return Check(name=check_name(server), status="skipped", detail=why)


def _nothing() -> None:
    """Its tools are listed once."""
