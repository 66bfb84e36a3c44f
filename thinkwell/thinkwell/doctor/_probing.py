"""Checks an agent's sessions: whether one opens, which transports of our tools work, and what a turn does."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.diagnosis import (
    CLOSE_TIMEOUT,
    LIST_TIMEOUT,
    PLAINEST_FIRST,
    SessionPlan,
    check_reachable,
    offered_ways,
    open_session,
)
from thinkwell._display.usage import usage_words
from thinkwell.doctor import _words as words
from thinkwell.doctor._check import Check
from thinkwell.errors import AgentError, LoginRequired, ResultError, ToolsNotSeen
from thinkwell_acp import AcpError, DecodeError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from thinkwell import Agent, Session, ThoughtStream
    from thinkwell._core.diagnosis import RunningAgent
    from thinkwell.agents import ToolTransport
    from thinkwell.doctor._check import Status
    from thinkwell.doctor._report import Report
    from thinkwell_acp.mcp import ToolServer

logger = logging.getLogger("thinkwell")

PATIENCE: Final = 3 * LIST_TIMEOUT
"""Seconds for the agent to fetch the tools, while no other transport works. A run waits less; an agent
that takes longer than that gets a warning. Some fetch them only in a turn."""

REASONS: Final = (
    "agents were seen to leave MCP servers out in folders that they do not trust, and to look for 127.0.0.1 "
    "behind a proxy where NO_PROXY does not name it"
)
"""A hint if no transport works."""

TEXT: Final = "This is a test of the connection. Do nothing else than to return the number 7 as the result."

TURN_TIMEOUT: Final = 300.0
"""Seconds until the turn is cancelled. The slowest agent seen takes half a minute until it asks its model."""

COST: Final = (
    "one turn of the agent's model: our part is a sentence and a number, but agents add their instructions "
    "and tools, and sent 3,000 to 70,000 tokens in two or three requests"
)
"""The cost of a prompt. Four bytes of the agents' requests to their models were counted as a token."""

UNKNOWN: Final = "this cannot be known without a prompt"

FLAGS: Final = {"acp": "mcpCapabilities.acp", "http": "mcpCapabilities.http"}


def _way_out(way: ToolTransport) -> str:
    """Return a hint if the transport that runs try first does not work, but this one does."""
    return f'runs find that out, and lose {LIST_TIMEOUT:g} seconds; open_agent(…, tools_via="{way}") does not'


class Probing:
    """Opens sessions of an agent, one after the other.

    Args:
        agent: The running agent.
        servers: MCP servers of the caller.
        report: Collects the checks.
    """

    def __init__(self, agent: RunningAgent, servers: Sequence[s.McpServer], report: Report) -> None:
        self._agent = agent
        self._servers = tuple(servers)
        self._report = report

    async def run(self) -> tuple[ToolTransport, ...] | None:
        """Check sessions, and return the transports that reach our tools; ``None``: no session opens."""
        return await self._try_ways() if await self._open_one() else None

    async def _open_one(self) -> bool:
        """Open a session without any tools, which also shows whether a login is required."""
        report, agent = self._report, self._agent
        began = anyio.current_time()
        try:
            async with self._session(bare=True) as session:
                seconds = anyio.current_time() - began
                detail = words.session(session)
        except LoginRequired as exc:
            report.wants_login(exc, agent.setup.profile)
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
        methods = self._agent.host.errors.methods
        if not methods:
            return "not wanted for a session"
        offered = words.listed(method.id for method in methods)
        return f"not wanted for a session; the model may still want one. It offers: {offered}"

    # Our tools

    async def _try_ways(self) -> tuple[ToolTransport, ...]:
        """Try every transport. Whether one that does not work is a failure depends on the others."""
        working: list[ToolTransport] = []
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

    def _let_go(self, held: list[Check], working: ToolTransport | None) -> None:
        for check in held:
            if check.status in ("failed", "unknown"):
                taken = check.name == f"tools over {self._agent.tool_hosts.way}"
                way_out = REASONS if working is None else _way_out(working)
                hints = [hint for hint in (check.hint, way_out if taken else "") if hint]
                status: Status = check.status if working is None else "warning"
                self._report.take(replace(check, status=status, hint="\n".join(hints)))
            else:
                self._report.take(check)
        held.clear()

    async def _try(self, way: ToolTransport, seconds: float) -> Check:
        agent, name = self._agent, f"tools over {way}"
        if way not in offered_ways(agent.client.capabilities):
            return Check(name=name, status="skipped", detail=f"it does not advertise {FLAGS[way]}")
        if (gone := self._gone()) is not None:
            return Check(name=name, status="skipped", detail=gone)
        began = anyio.current_time()
        try:
            async with self._session(tools_via=way) as session:
                opened = anyio.current_time()
                seen = await self._listed(session._wire.tools.server, seconds)
                now = anyio.current_time()
        except (AgentError, OSError) as exc:
            return self._report.failure(name, exc, anyio.current_time() - began)
        if not seen:
            hints = () if agent.setup.profile is None else agent.setup.profile.hints(ToolsNotSeen((way,)))
            reached = session._wire.tools.reached
            comes = (
                "has come, but not fetched the list of tools," if reached else "has not come for our tools"
            )
            return Check(
                name=name,
                status="unknown",  # some fetch them only in a turn
                detail=f"it {comes} within {seconds:g} seconds",
                seconds=now - began,
                hint="\n".join(hints),
            )
        taken = "; runs go this way" if way == agent.tool_hosts.way else ""
        late = now - opened > LIST_TIMEOUT
        return Check(
            name=name,
            status="warning" if late else "ok",
            detail=f"it has fetched the list of tools{taken}",
            seconds=now - began,
            hint=f"late: a run waits {LIST_TIMEOUT:g} seconds before it prompts" if late else "",
        )

    async def _listed(self, server: ToolServer, seconds: float) -> bool:
        """Wait until the agent has fetched the list of tools, and return whether it did.

        Raises:
            AgentError: The agent is gone.
        """
        connection = self._agent.client.connection
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    await connection.wait_closed()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                await server.wait_listed()
                tasks.cancel_scope.cancel()
        if connection.error is not None:
            raise self._agent.host.errors.error(connection.error)
        return server.list_count > 0

    # The caller's servers

    async def hand_over(self) -> None:
        """Open a session with the caller's MCP servers, if there are any."""
        report, agent, name = self._report, self._agent, "mcp servers"
        if not self._servers:
            return
        session = next(check for check in report.checks if check.name == "session")
        gone = self._gone()
        if session.status != "ok" or gone is not None:
            report.add(name, "skipped", gone or "no session was opened")
            return
        began = anyio.current_time()
        try:
            check_reachable(self._servers, agent.client.capabilities.mcp_capabilities)
            async with self._session(mcp_servers=self._servers, bare=True):
                seconds = anyio.current_time() - began
        except AgentError as exc:
            report.fail(name, exc, anyio.current_time() - began)
            return
        names = words.listed(server.name for server in self._servers)
        report.add(name, "ok", f"it takes {names}; whether it reaches them, no agent tells", seconds=seconds)

    # Sessions

    @asynccontextmanager
    async def _session(
        self,
        *,
        mcp_servers: tuple[s.McpServer, ...] = (),
        tools_via: ToolTransport | None = None,
        bare: bool = False,
    ) -> AsyncGenerator[Session]:
        """Open a session, and delete it afterwards if the agent supports that: it is not the user's."""
        plan = SessionPlan(
            cwd=self._agent.setup.cwd,
            mcp_servers=mcp_servers,
            open_timeout=self._report.limits.opening,
            tools_via=tools_via,
            bare=bare,
        )
        async with open_session(self._agent, plan) as session:
            yield session
            session_id = session.id
        client = self._agent.client
        if client.connection.error is None and client.capabilities.session_capabilities.delete is not None:
            with anyio.move_on_after(CLOSE_TIMEOUT):
                try:
                    await client.delete_session(s.DeleteSessionRequest(session_id=session_id))
                except (AcpError, DecodeError) as exc:
                    logger.debug("Agent %s: session/delete: %s", self._agent.host.name, exc)

    def _gone(self) -> str | None:
        """Return a message if the agent is gone."""
        error = self._agent.client.connection.error
        return (
            None if error is None else self._report.failure("", self._agent.host.errors.error(error)).detail
        )


def leave_open(report: Report) -> tuple[ToolTransport, ...]:
    """Report that no prompt was sent, and offer one. No transport was seen in a turn."""
    report.add("answer", "unknown", UNKNOWN)
    offer = f"{report.limits.prompt_name} sends one, which costs {COST}"
    report.add("typed result", "unknown", UNKNOWN, hint=offer)
    return ()


async def take_turn(agent: Agent, report: Report) -> tuple[ToolTransport, ...]:
    """Send a prompt as a run does, and return the transports by which the agent reached our tools.

    The agent may call our own tools and nothing else, as by default.
    """
    began = anyio.current_time()
    stream = agent.think(int).text(TEXT).stream(include="all", timeout=TURN_TIMEOUT, retries=1, reminders=0)
    await stream.wait()
    seconds = anyio.current_time() - began
    error = stream.result.exception()
    vias = {event.via async for event in stream if isinstance(event, ev.ToolsSeen)}
    seen: tuple[ToolTransport, ...] = tuple(way for way in PLAINEST_FIRST if way in vias)
    for way in seen:
        if report.status(f"tools over {way}") == "unknown":
            report.add(f"tools over {way}", "ok", "it fetches the list of tools in a turn, and not before")
    if isinstance(error, LoginRequired):
        report.wants_login(error, agent._agent.setup.profile)
        return seen
    if error is None or isinstance(error, ResultError):
        report.add("answer", "ok", _answer(stream), seconds=seconds)
    elif stream.view.turns:
        report.fail("answer", error, seconds)
    else:
        report.add("answer", "skipped", "no turn was begun")
    if error is None:
        report.add("typed result", "ok", f"it has returned one, by our tool over {seen[-1]}")
    elif isinstance(error, ResultError) or not stream.view.turns:
        report.fail("typed result", error)
    else:
        report.add("typed result", "skipped", "the turn has failed")
    return seen


def _answer(stream: ThoughtStream[int]) -> str:
    view = stream.view
    said = f", and said {words.listed([view.text])}" if view.text else ""
    return f"it has ended its turn ({view.stop_reason}){said}; {usage_words(view)}"
