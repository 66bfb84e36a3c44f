"""The status line of a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._display.cells import cells, clip
from thinkwell._display.numbers import count
from thinkwell._display.paths import from_home
from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell import Agent, Session

__all__ = ("status_line",)

BETWEEN: Final = " · "


def status_line(agent: Agent, session: Session, width: int) -> str:
    """Return the agent, the model, the mode, the folder and the use of the context, as far as they fit.

    Args:
        agent: The agent.
        session: The session.
        width: Columns. If there are few, the folder is left out first, and the agent last.
    """
    parts = {
        "agent": line(agent.name),
        "model": line(session.model or ""),
        "mode": line(session.mode or ""),
        "folder": from_home(session.cwd),
        "context": _context(session),
    }
    for least in ("folder", "mode", "model", "context"):
        if cells(_joined(parts)) > width:
            del parts[least]
    return clip(_joined(parts), width)


def _joined(parts: Mapping[str, str]) -> str:
    return BETWEEN.join(filter(None, parts.values()))


def _context(session: Session) -> str:
    usage = session.usage
    if usage is None or usage.size <= 0:
        return ""
    return f"{min(max(usage.used, 0), usage.size) / usage.size:.0%} of {count(usage.size)} used"
