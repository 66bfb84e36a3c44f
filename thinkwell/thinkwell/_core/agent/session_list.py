"""The sessions that an agent remembers, page by page."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

from thinkwell._core.log.log_lines import log_fields
from thinkwell._core.session.state import as_info
from thinkwell._values.folders import absolute_path
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell._core.agent.agent import RunningAgent
    from thinkwell._core.session.state import SessionInfo

logger = logging.getLogger("thinkwell")

MAX_PAGES: Final = 1000
"""Most pages that are requested. Some agent's cursors might never end."""


async def listed_sessions(agent: RunningAgent, cwd: str | os.PathLike[str] | None) -> list[SessionInfo]:
    """Return the sessions that the agent remembers, each once.

    Raises:
        AcpError, DecodeError: The agent did not list them.
    """
    folder = None if cwd is None else _absolute(cwd)
    found: dict[str, SessionInfo] = {}
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await agent.client.list_sessions(s.ListSessionsRequest(cwd=folder, cursor=cursor))
        for info in page.sessions:
            found.setdefault(info.session_id, as_info(info))
        cursor = page.next_cursor
        if cursor is None:
            return list(found.values())
        if cursor in seen:
            break
        seen.add(cursor)
    about, name = "Agent %s lists sessions without end; the first %d are used", agent.host.name
    logger.warning(about, name, len(found), extra=log_fields(agent=name))
    return list(found.values())


def _absolute(folder: str | os.PathLike[str]) -> str:
    """Return the absolute form of a path. The folder may no longer exist."""
    return os.path.normpath(absolute_path(folder, "list_sessions(cwd=…)"))
