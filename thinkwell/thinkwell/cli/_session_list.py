"""What an agent remembers: listed, and forgotten."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from thinkwell import CapabilityMissing, ThinkwellError, open_agent
from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TextIO

    from thinkwell import Agent, SessionInfo
    from thinkwell.agents import AgentProfile
    from thinkwell.cli._launching import Launching

__all__ = ("forget_session", "show_sessions")

UNLIMITED: Final = 100_000
"""Columns of a table that goes to no terminal: nothing of it is left out there."""


class SessionUnknown(ThinkwellError):  # noqa: N818 - the name says what happened
    """The agent lists no such session."""

    def __init__(self, agent: str, session_id: str) -> None:
        super().__init__(agent, session_id)
        self.agent = agent
        self.session_id = session_id

    def __str__(self) -> str:
        return (
            f"Agent {self.agent!r} remembers no session {self.session_id!r}: "
            "`thinkwell sessions` lists those that it does"
        )


async def show_sessions(agent: AgentProfile, cwd: Path | None, *, as_json: bool, on_phase: Launching) -> None:
    """Write the sessions that an agent remembers, of one folder where there is a `cwd`.

    Raises:
        CapabilityMissing: It does not tell.
        AgentError: Something is wrong with it.
    """
    async with open_agent(agent, on_phase=on_phase) as running:
        on_phase.done()
        if running.capabilities.session_capabilities.list is None:
            raise CapabilityMissing("sessionCapabilities.list", "a list of the sessions that it remembers")
        found = await running.list_sessions(cwd)
        advice = _how_to_go_on(running)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    elif found:
        write_table(found, sys.stdout)
        sys.stderr.write(f"\n{advice}\n" if advice and sys.stderr.isatty() else "")
    else:
        where = "" if cwd is None else f" of {line(str(cwd))}"
        sys.stderr.write(f"Agent {line(running.name)} remembers no sessions{where}\n")


async def forget_session(agent: AgentProfile, session_id: str, *, on_phase: Launching) -> None:
    """Make an agent forget a session.

    Raises:
        SessionUnknown: It lists its sessions, and there is no such one.
        CapabilityMissing: It cannot forget.
        AgentError: Something is wrong with it.
    """
    async with open_agent(agent, on_phase=on_phase) as running:
        on_phase.done()
        flags = running.capabilities.session_capabilities
        if flags.delete is None:
            raise CapabilityMissing("sessionCapabilities.delete", "deleting a session")
        # The protocol takes a session that the agent does not know for no error: so a typing mistake would
        # look like a deletion.
        if flags.list is not None and session_id not in {info.id for info in await running.list_sessions()}:
            raise SessionUnknown(running.name, session_id)
        await running.delete_session(session_id)
    sys.stderr.write(f"Deleted {line(session_id)}\n")


def _how_to_go_on(agent: Agent) -> str:
    """Return what to type to go on with a session; empty where the agent cannot."""
    option = "--load" if agent.capabilities.load_session else "--resume"
    if option == "--resume" and agent.capabilities.session_capabilities.resume is None:
        return ""
    return f"Go on with one, in its folder: thinkwell chat --agent {line(agent.name)} {option} ID"


def write_table(sessions: Sequence[SessionInfo], out: TextIO) -> None:
    """Write sessions as a table: as wide as the terminal, or else as wide as they are."""
    is_terminal = out.isatty()
    console = Console(
        file=out, width=None if is_terminal else UNLIMITED, highlight=False, markup=False, emoji=False
    )
    cells = [
        (line(info.id), _when(info.updated_at), line(info.title or ""), line(info.cwd)) for info in sessions
    ]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, name in enumerate(("ID", "UPDATED")):  # whole: an id is there to be copied
        table.add_column(name, no_wrap=True, min_width=max(cell_len(row[number]) for row in cells))
    for name in ("TITLE", "FOLDER"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table, crop=False)


def _when(updated_at: str | None) -> str:
    """Return a time as a clock here would show it."""
    if updated_at is None:
        return ""
    try:
        return datetime.fromisoformat(updated_at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return line(updated_at)
