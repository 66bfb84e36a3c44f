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
    from thinkwell.doctor._check import Status
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
        """Start a server, and check whether it lists its tools."""
        limits, began = report.limits, anyio.current_time()
        found: int | McpTrouble | None = None
        async with stdio_link(self._with_path(server), cwd, _nothing) as link:
            with anyio.move_on_after(limits.startup):
                client = McpClient(server.name, link, IDENTITY)
                try:
                    await client.start()
                    found = len(client.tools)
                except McpTrouble as exc:  # not raised through the block, which has tasks
                    found = exc
        status: Status = "failed"
        hint = stderr = ""
        match found:
            case None:
                detail = f"it starts, but does not list its tools within {limits.startup:g} seconds"
                hint = f"raise {limits.startup_name} if it needs longer"
            case McpTrouble(__cause__=cause):
                detail = found.reason
                said = words.end(cause.stderr_tail) if isinstance(cause, ProcessExited) else ""
                stderr = said if "\n" in said else ""  # its last line is in the reason
            case _:
                status = "ok" if found else "warning"
                detail = f"it starts, and offers {found or 'no'} tool{'' if found == 1 else 's'}"
        return Check(
            name=check_name(server.name),
            status=status,
            detail=detail,
            seconds=anyio.current_time() - began,
            hint=hint,
            stderr=stderr,
        )

    def _with_path(self, server: s.McpServerStdio) -> s.McpServerStdio:
        """Give a server the agent's ``PATH``, with which an agent would start it."""
        if self._path is None or any(variable.name == "PATH" for variable in server.env):
            return server
        return replace(server, env=(s.EnvVariable(name="PATH", value=self._path), *server.env))


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
