"""What an agent does with sessions: whether it opens one, and by which ways our tools reach it there."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from thinkwell._session import SessionPlan, open_session
from thinkwell._tooling import LIST_TIMEOUT, PLAINEST_FIRST, offered_ways
from thinkwell._wire_mcp import check_reachable
from thinkwell._wire_session import CLOSE_TIMEOUT
from thinkwell.doctor import _words as words
from thinkwell.doctor._diagnosis import Check
from thinkwell.errors import AgentError, LoginRequired
from thinkwell_acp import AcpError, DecodeError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from thinkwell._link import Link
    from thinkwell._session import Session
    from thinkwell.agents._profile import Way
    from thinkwell.doctor._diagnosis import Status
    from thinkwell.doctor._report import Report
    from thinkwell_acp.mcp import ToolServer

PATIENCE: Final = 3 * LIST_TIMEOUT
"""Seconds until an agent that has not fetched the tools counts as one that does not see them, as long as no
other way works. A run waits less; an agent that takes longer than that gets a warning."""

REASONS: Final = (
    "agents were seen to leave MCP servers out in folders that they do not trust, and to look for 127.0.0.1 "
    "behind a proxy where NO_PROXY does not name it"
)
"""What to look at where no way works."""

FLAGS: Final = {"acp": "mcpCapabilities.acp", "http": "mcpCapabilities.http"}


def _way_out(way: Way) -> str:
    """Return what to do where the way that runs try first does not work, and this one does."""
    return f'runs find that out, and lose {LIST_TIMEOUT:g} seconds; open_agent(…, tools_via="{way}") does not'


class Probing:
    """Opens sessions of an agent, one after the other.

    Args:
        link: The line to it.
        servers: MCP servers of the caller's.
        report: Takes the checks.
    """

    def __init__(self, link: Link, servers: Sequence[s.McpServer], report: Report) -> None:
        self._link = link
        self._servers = tuple(servers)
        self._report = report

    async def run(self) -> tuple[Way, ...]:
        """Look at sessions, and return the ways by which our tools reach the agent."""
        return await self._try_ways() if await self._open_one() else ()

    async def _open_one(self) -> bool:
        """Open a session without any tools, which shows too whether a login is wanted."""
        report, link = self._report, self._link
        began = anyio.current_time()
        try:
            async with self._session(self._plan(bare=True)) as session:
                seconds = anyio.current_time() - began
                detail = words.session(session)
        except LoginRequired as exc:
            report.add(
                "login", "failed", words.short(exc.reason), hint=words.logins(exc.methods, link.profile)
            )
            report.skip_rest("it wants a login before that")
            return False
        except AgentError as exc:
            report.add("login", "skipped", "no session was opened, so that this is not known")
            report.fail("session", exc, anyio.current_time() - began)
            report.skip_rest("no session was opened")
            return False
        report.add("login", "ok", self._login())
        report.add("session", "ok", detail, seconds=seconds)
        return True

    def _login(self) -> str:
        if not self._link.methods:
            return "not wanted for a session"
        offered = words.ids(self._link.methods)
        return f"not wanted for a session; the model may still want one. It offers: {offered}"

    # Our tools

    async def _try_ways(self) -> tuple[Way, ...]:
        """Try every way. Whether one that does not work is a failure shows with the others."""
        working: list[Way] = []
        held: list[Check] = []
        for way in PLAINEST_FIRST:
            check = await self._try(way, LIST_TIMEOUT if working else PATIENCE)
            held.append(check)
            if check.status in ("ok", "warning"):
                working.append(way)
            if working:
                self._let_go(held, working[0])
        self._let_go(held, None)
        return tuple(working)

    def _let_go(self, held: list[Check], working: Way | None) -> None:
        for check in held:
            if check.status == "failed":
                taken = check.name == f"tools over {self._link.hosts.way}"
                way_out = REASONS if working is None else _way_out(working)
                hints = [hint for hint in (check.hint, way_out if taken else "") if hint]
                status: Status = "failed" if working is None else "warning"
                self._report.take(replace(check, status=status, hint="\n".join(hints)))
            else:
                self._report.take(check)
        held.clear()

    async def _try(self, way: Way, seconds: float) -> Check:
        link, name = self._link, f"tools over {way}"
        if way not in offered_ways(link.client.capabilities):
            return Check(name=name, status="skipped", detail=f"it does not advertise {FLAGS[way]}")
        if (gone := self._gone()) is not None:
            return Check(name=name, status="skipped", detail=gone)
        began = anyio.current_time()
        try:
            async with self._session(self._plan(tools_via=way)) as session:
                opened = anyio.current_time()
                seen = await self._listed(session._wire.tools.server, seconds)
                now = anyio.current_time()
        except (AgentError, OSError) as exc:
            return self._report.failure(name, exc, anyio.current_time() - began)
        if not seen:
            hints = () if link.profile is None else link.profile.hints("ToolsNotSeen")
            reached = session._wire.tools.reached
            comes = (
                "has come, but not fetched the list of tools," if reached else "has not come for our tools"
            )
            return Check(
                name=name,
                status="failed",
                detail=f"it {comes} within {seconds:g} seconds",
                seconds=now - began,
                hint="\n".join(hints),
            )
        taken = "; runs go this way" if way == link.hosts.way else ""
        late = now - opened > LIST_TIMEOUT
        return Check(
            name=name,
            status="warning" if late else "ok",
            detail=f"it has fetched the list of tools{taken}",
            seconds=now - began,
            hint=f"late: a run waits {LIST_TIMEOUT:g} seconds before it prompts" if late else "",
        )

    async def _listed(self, server: ToolServer, seconds: float) -> bool:
        """Wait until the agent has fetched the list of tools, and return whether it has.

        Raises:
            AgentError: It is gone.
        """
        connection = self._link.client.connection
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    await connection.wait_closed()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                await server.wait_listed()
                tasks.cancel_scope.cancel()
        if connection.error is not None:
            raise self._link.error(connection.error)
        return server.list_count > 0

    # The caller's servers

    async def hand_over(self) -> None:
        """Open a session with the caller's MCP servers, if there are any."""
        report, link, name = self._report, self._link, "mcp servers"
        if not self._servers:
            return
        session = next(check for check in report.checks if check.name == "session")
        gone = self._gone()
        if session.status != "ok" or gone is not None:
            report.add(name, "skipped", gone or "no session was opened")
            return
        began = anyio.current_time()
        try:
            check_reachable(self._servers, link.client.capabilities.mcp_capabilities)
            async with self._session(self._plan(mcp_servers=self._servers, bare=True)):
                seconds = anyio.current_time() - began
        except AgentError as exc:
            report.fail(name, exc, anyio.current_time() - began)
            return
        names = words.listed(server.name for server in self._servers)
        report.add(name, "ok", f"it takes {names}; whether it reaches them, no agent tells", seconds=seconds)

    # Sessions

    def _plan(
        self, *, mcp_servers: tuple[s.McpServer, ...] = (), tools_via: Way | None = None, bare: bool = False
    ) -> SessionPlan:
        return SessionPlan(
            cwd=self._link.cwd,
            mcp_servers=mcp_servers,
            open_timeout=self._report.limits.opening,
            tools_via=tools_via,
            bare=bare,
        )

    @asynccontextmanager
    async def _session(self, plan: SessionPlan) -> AsyncGenerator[Session]:
        """Open a session, and have the agent forget it where it can: it was none of the user's."""
        async with open_session(self._link, plan) as session:
            yield session
            session_id = session.id
        client = self._link.client
        if client.connection.error is None and client.capabilities.session_capabilities.delete is not None:
            with anyio.move_on_after(CLOSE_TIMEOUT):
                try:
                    await client.delete_session(s.DeleteSessionRequest(session_id=session_id))
                except (AcpError, DecodeError) as exc:
                    self._link.logger.debug("Agent %s: session/delete: %s", self._link.name, exc)

    def _gone(self) -> str | None:
        """Return that the agent is gone, where it is."""
        error = self._link.client.connection.error
        return None if error is None else self._report.trouble(self._link.error(error)).detail
