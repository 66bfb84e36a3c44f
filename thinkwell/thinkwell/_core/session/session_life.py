"""The life of a session."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class SessionLife(Enum):
    """The stages of a session's life."""

    NEW = auto()
    OPENING = auto()
    OPEN = auto()
    REOPENING = auto()
    """The agent has closed it and is about to reopen it."""
    STUCK = auto()
    """A turn in it could not be ended: it accepts no more."""
    LEAVING = auto()
    """Its block was left: its runs are being stopped."""
    CLOSING = auto()
    """The agent is told: requests in it are no longer answered."""
    CLOSED = auto()
    """It was left, so that it can be opened again."""

    @property
    def left(self) -> bool:
        """Whether the session's block was left."""
        return self in (SessionLife.LEAVING, SessionLife.CLOSING, SessionLife.CLOSED)

    @property
    def silent(self) -> bool:
        """Whether requests in it are no longer answered."""
        return self in (SessionLife.CLOSING, SessionLife.CLOSED)

    @property
    def usable(self) -> bool:
        """Whether it may have more turns: each that has begun in it could be ended."""
        return self is not SessionLife.STUCK

    def to(self, life: SessionLife) -> SessionLife:
        """Return the next stage, which must follow this one."""
        assert life in _NEXT[self], (self, life)
        return life


_LEFT: Final = {SessionLife.LEAVING, SessionLife.CLOSING}
_NEXT: Final = {
    SessionLife.NEW: {SessionLife.OPENING, *_LEFT},
    SessionLife.OPENING: {SessionLife.OPEN, SessionLife.NEW, *_LEFT},
    SessionLife.OPEN: {SessionLife.OPEN, SessionLife.REOPENING, SessionLife.STUCK, *_LEFT},
    SessionLife.REOPENING: {SessionLife.OPEN, *_LEFT},
    SessionLife.STUCK: _LEFT,
    SessionLife.LEAVING: _LEFT,
    SessionLife.CLOSING: {SessionLife.CLOSED},
    SessionLife.CLOSED: set[SessionLife](),
}
