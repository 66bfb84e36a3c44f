"""Which agents are on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell._core.diagnosis import Preparing, environment
from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from thinkwell.agents import AgentProfile


class _WouldInstall(Exception):  # noqa: N818 - says what would happen
    """An agent is missing, and could be fetched."""


async def is_present(profile: AgentProfile, cwd: str) -> bool:
    """Whether an agent can be started in a folder without fetching anything. Nothing is fetched."""
    try:
        await Preparing(profile, environment(profile, None), cwd, _refuse).prepare()
    except (_WouldInstall, ThinkwellError):
        return False
    return True


def _refuse(what: str) -> None:
    raise _WouldInstall(what)
