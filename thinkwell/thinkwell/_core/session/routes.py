"""Routes an agent's updates to their sessions."""

from __future__ import annotations

import logging
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from thinkwell._core.log.log_lines import log_fields
from thinkwell._core.session.session_life import SessionLife
from thinkwell_acp._recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from thinkwell_acp import schema as s

logger = logging.getLogger("thinkwell")

EARLY_LIMIT: Final = 10_000
"""Updates that are kept for sessions whose opening is unanswered. Some agents send a few."""

SESSIONS_KEPT: Final = 10_000
"""Ids of closed sessions that are remembered, because their late updates are expected."""


class Routed(Protocol):
    """A session that can be found by its id."""

    id: str | None
    cwd: str
    life: SessionLife

    def updates(self, batch: Sequence[s.SessionNotification]) -> None:
        """Take updates."""
        ...


R = TypeVar("R", bound=Routed)


class SessionRoutes(Generic[R]):
    """The sessions of one agent by their ids.

    Args:
        agent: The agent's name.
        opened: Called with the id and the folder of a session that received its id.
    """

    def __init__(self, agent: str, opened: Callable[[str, str], None]) -> None:
        self._agent = agent
        self._opened = opened
        self._sessions: WeakValueDictionary[str, R] = WeakValueDictionary()
        """Known for as long as their contents may be requested."""
        self._ids = Recent(SESSIONS_KEPT)
        self._opening: list[R] = []
        self._unknown = 0
        """The number of those that get their id with the answer."""
        self._early: list[s.SessionNotification] = []
        self.begun: int = 0
        """The number of sessions so far, including open ones."""

    def get(self, session_id: str | None) -> R | None:
        """Return the session with this id."""
        return self._sessions.get(session_id or "")

    def in_use(self, session_id: str) -> bool:
        """Return whether a session with this id is open."""
        session = self._sessions.get(session_id)
        return session is not None and session.life is not SessionLife.CLOSED

    @property
    def opening_session(self) -> R | None:
        """The session being opened, if there is only one."""
        return self._opening[0] if len(self._opening) == 1 else None

    @contextmanager
    def opening(self, session: R, *, known: bool) -> Generator[None]:
        """Record that a session is being opened during a block.

        Args:
            session: The session.
            known: Whether its id is known. If not, updates of unknown sessions are kept: some may be its own.
        """
        self._opening.append(session)
        self._unknown += not known
        try:
            yield
        finally:
            self._opening.remove(session)
            self._unknown -= not known
            if not self._unknown and self._early:
                about = "Agent %s sent %d updates for sessions that were never opened"
                logger.warning(about, self._agent, len(self._early), extra=log_fields(agent=self._agent))
                self._early.clear()

    def claim(self, session: R) -> None:
        """Give a session the updates for its id, including earlier ones."""
        assert session.id is not None
        self._sessions[session.id] = session
        self._ids.add(session.id)
        self.begun += 1
        self._opened(session.id, session.cwd)
        early = [note for note in self._early if note.session_id == session.id]
        self._early = [note for note in self._early if note.session_id != session.id]
        if early:
            session.updates(early)

    def forget(self, session_id: str) -> None:
        """Stop routing updates for this id."""
        del self._sessions[session_id]

    def updates(self, batch: Sequence[s.SessionNotification]) -> None:
        """Route updates to their sessions, in order."""
        first = batch[0].session_id
        if [note.session_id for note in batch].count(first) == len(batch):
            self._route(first, batch)
            return
        # Each session is touched once per batch, however its updates are interleaved with others.
        groups: defaultdict[str, list[s.SessionNotification]] = defaultdict(list)
        for note in batch:
            groups[note.session_id].append(note)
        for session_id, group in groups.items():
            try:
                self._route(session_id, group)
            except Exception:
                extra = log_fields(agent=self._agent, session=session_id)
                about = "Agent %s: updates of session %r are lost"
                logger.exception(about, self._agent, session_id, extra=extra)

    def _route(self, session_id: str, batch: Sequence[s.SessionNotification]) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            session.updates(batch)
        elif self._unknown and len(self._early) + len(batch) <= EARLY_LIMIT:
            self._early.extend(batch)
        else:
            # Some agents send a last update for a session after it was closed.
            level = logging.DEBUG if session_id in self._ids else logging.WARNING
            about = "Agent %s sent %d updates for unknown session %r"
            extra = log_fields(agent=self._agent, session=session_id)
            logger.log(level, about, self._agent, len(batch), session_id, extra=extra)
