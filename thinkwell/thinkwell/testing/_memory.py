"""The common part of the agents here: connections in memory, and a record of the client's messages."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypedDict

import anyio
from typing_extensions import Unpack

from thinkwell import open_agent
from thinkwell._core.exit import Opening, background_tasks
from thinkwell.testing._journal import Line, MemoryJournal
from thinkwell.testing._sent import Sent
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from thinkwell import Agent, McpServer, PermissionMode, PermissionPolicy, QuestionHandler, Workspace
    from thinkwell.agents import AgentProfile, ToolTransport
    from thinkwell.testing._journal import Journal
    from thinkwell_acp import Transport


class OpenOptions(TypedDict, total=False):
    """The options of `thinkwell.open_agent` that go with an agent in memory."""

    env: Mapping[str, str] | None
    cwd: str | os.PathLike[str] | AbstractAsyncContextManager[str | os.PathLike[str]] | None
    permissions: PermissionMode | PermissionPolicy | None
    on_question: QuestionHandler | Sequence[QuestionHandler] | None
    question_timeout: float
    workspace: Workspace | None
    mcp_servers: Sequence[McpServer]
    tools_via: ToolTransport | None
    login: str | None
    model: str | None
    startup_timeout: float
    record: str | os.PathLike[str] | None
    fallback: Sequence[str | AgentProfile | Opening[object]] | None
    fallback_after_effects: bool


class _Opening(Opening["Agent"]):
    """What `PlayedAgent.open` returns: its frame, in which the check is made, is hidden by pytest."""

    def __init__(self, played: PlayedAgent, options: OpenOptions) -> None:
        opening = open_agent(played.name, transport=played.connect(), **options)
        super().__init__(opening.name, opening.make)
        self._played = played

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        await super().__aexit__(kind, error, traceback)
        if error is None:
            self._played._left()


class PlayedAgent:
    """An agent that can be opened any number of times. The base class of the agents here."""

    name = "played"
    """The value of `Agent.name`."""

    def __init__(self) -> None:
        self._journal: Journal = MemoryJournal()

    async def serve(self, transport: Transport) -> None:
        """Serve a client on a transport, such as `thinkwell_acp.own_stdio`, until the client leaves."""
        raise NotImplementedError  # pragma: no cover - every agent overrides it

    def _left(self) -> None:
        """Note that a block of `open` ended without an exception."""

    def open(self, **options: Unpack[OpenOptions]) -> Opening[Agent]:
        """Open the agent for an ``async with`` block, connected in memory, as `thinkwell.open_agent` does.

        Raises:
            ScriptFailed: See `ScriptedAgent.check`, which is called when the block is left without an
                exception.
        """
        return _Opening(self, options)

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Transport]:
        """Return a new connection for ``open_agent(transport=…)``; it ends with the block."""
        ours, theirs = memory_transport_pair()
        served = anyio.Event()

        async def serve() -> None:
            try:
                await self.serve(theirs)
            finally:
                served.set()

        async with background_tasks() as tasks:
            tasks.start_soon(serve)
            try:
                yield ours
            finally:
                with anyio.CancelScope(shield=True):  # the other side reads to the end, and leaves then
                    await ours.aclose()
                    await served.wait()

    @property
    def sent(self) -> Sent:
        """The client's messages so far."""
        return Sent(entry for entry in self._journal.entries() if isinstance(entry, Line))
