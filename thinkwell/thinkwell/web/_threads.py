"""Conversations: the agent's session of each, so that it continues after a restart of the server."""

from __future__ import annotations

import logging
import secrets
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from thinkwell._display.text import line
from thinkwell.errors import AgentError, AgentExited

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from thinkwell import Agent, Session
    from thinkwell.journal import Journal

KIND = "thread"

FORGOTTEN = "The agent does not remember what was said before in this conversation"
"""The notice of a run whose session is not that of the earlier turns."""

logger = logging.getLogger("thinkwell")


class Place(Struct, frozen=True, kw_only=True):
    """Where a run takes place: the key of its session."""

    agent: str
    folder: str | None
    caller: str
    name: str
    """The name of the conversation, or of the run alone."""
    single: bool
    """Whether it belongs to no conversation."""

    @property
    def key(self) -> str:
        """The key as a text."""
        return msgspec.json.encode(self).decode()


class _Kept(Struct, frozen=True, kw_only=True):
    """The state of a conversation."""

    session: str
    server: str
    """The server that had the session last."""


class Threads:
    """Opens the sessions of conversations: those of the earlier turns, if the agent supports it.

    Args:
        journal: Stores them.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._server = secrets.token_hex(8)
        self._forgotten: set[str] = set()
        self._empty: dict[str, bytes] = {}
        """The conversations without a run at the last check."""

    @asynccontextmanager
    async def session(self, agent: Agent, place: Place, folder: Path | None) -> AsyncGenerator[Session]:
        """Open the session of a conversation during a block.

        Raises:
            AgentError: None is available.
        """
        async with AsyncExitStack() as stack:
            session = await self._reopened(agent, place, folder, stack)
            if session is None:
                session = await stack.enter_async_context(agent.session(cwd=folder))
            await self._keep(place, session.id)
            yield session

    async def _reopened(
        self, agent: Agent, place: Place, folder: Path | None, stack: AsyncExitStack
    ) -> Session | None:
        """Open the earlier session of a conversation; ``None``: there is none, or it is not available."""
        known = await self._known(place)
        if known is None:
            return None
        again = self._again(agent, known.session, folder)
        if again is not None:
            try:
                return await stack.enter_async_context(again)
            except AgentExited:
                raise
            except AgentError as exc:
                about = "A conversation with agent %s starts over, as its session could not be opened: %s"
                logger.warning(about, place.agent, line(str(exc)))  # the text may come from an agent
        self._forgotten.add(place.key)
        return None

    def was_forgotten(self, place: Place) -> bool:
        """Return whether the agent has forgotten the earlier turns; once, for the first call."""
        if place.key in self._forgotten:
            self._forgotten.discard(place.key)
            return True
        return False

    async def is_elsewhere(self, place: Place) -> bool:
        """Return whether another server had the last turn, so that an open session here is outdated."""
        known = await self._known(place)
        return known is not None and known.server != self._server

    async def prune(self, is_open: Collection[str]) -> None:
        """Forget the conversations that have no run, and had none at the last check.

        A session may exist before the first run of its conversation is in the journal.

        Args:
            is_open: The keys of the conversations with a session here.

        Raises:
            JournalError: The journal cannot be used.
        """
        empty: dict[str, bytes] = {}
        for key, data in await self._journal.pick_all(KIND):
            try:
                place = msgspec.json.decode(key, type=Place)
            except msgspec.DecodeError:  # from another version
                continue
            if key in is_open or await self._journal.runs(caller=place.caller, thread=place.name, limit=1):
                continue
            if self._empty.get(key) == data:
                await self._journal.put(KIND, key, None)
            else:
                empty[key] = data
        self._empty = empty

    async def _known(self, place: Place) -> _Kept | None:
        data = await self._journal.pick(KIND, place.key)
        return None if data is None else msgspec.json.decode(data, type=_Kept)

    async def _keep(self, place: Place, session_id: str) -> None:
        kept = _Kept(session=session_id, server=self._server)
        await self._journal.put(KIND, place.key, msgspec.json.encode(kept))

    def _again(
        self, agent: Agent, session_id: str, folder: Path | None
    ) -> AbstractAsyncContextManager[Session] | None:
        capabilities = agent.capabilities
        sessions = capabilities.session_capabilities
        if sessions.resume is not None:
            return agent.session(resume=session_id, cwd=folder)
        return agent.session(load=session_id, cwd=folder) if capabilities.load_session else None
