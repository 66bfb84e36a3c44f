"""``thinkwell sessions``: list and delete an agent's saved sessions."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TextIO

import anyio
import msgspec
import typer

from thinkwell import Agent, CapabilityMissing, SessionInfo, ThinkwellError, open_agent
from thinkwell._display.cells import cells, clip, pad
from thinkwell._display.text import line
from thinkwell.cli._errors import told
from thinkwell.cli._launch import chosen_agent, launched
from thinkwell.cli._options import AgentArgument, CommandOption, How, JsonOption, naming

GAP: Final = "  "
"""The text between two columns."""

NARROWEST: Final = 8
"""Fewest cells of a title or a folder. In a narrower terminal, lines wrap."""


def sessions(
    agent: AgentArgument = None,
    delete: Annotated[str | None, typer.Option("--delete", metavar="ID", help="Delete this session.")] = None,
    command: CommandOption = None,
    cwd: Annotated[
        Path | None,
        typer.Option(
            "--cwd",
            metavar="DIR",
            help="Only sessions of this folder. Default: all.",
            exists=True,
            file_okay=False,
            resolve_path=True,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the saved sessions of an agent, or delete one.

    To continue one: thinkwell chat --load ID. Not every agent keeps its sessions, and some that do
    cannot list them.

    \b
    Examples:
      thinkwell sessions claude
      thinkwell sessions claude --cwd . --json
      thinkwell sessions claude --delete 6a1f…
    """
    if delete is not None and (json or cwd is not None):
        raise typer.BadParameter("it goes with neither --json nor --cwd", param_hint="--delete")
    with told():
        profile = chosen_agent(agent, command)
        opened = launched(profile.name, How(), partial(open_agent, profile))
        if delete is None:
            anyio.run(partial(_show, opened, cwd, as_json=json, given=naming(agent, command)))
        else:
            anyio.run(_forget, opened, delete)


async def _show(
    opened: AbstractAsyncContextManager[Agent], cwd: Path | None, *, as_json: bool, given: Sequence[str]
) -> None:
    """Write the saved sessions of an agent.

    Args:
        opened: The agent.
        cwd: Only sessions of this folder.
        as_json: Whether to write JSON.
        given: The options that name the agent, for the next command.

    Raises:
        CapabilityMissing: The agent does not list its sessions.
        AgentError: The agent answered with an error.
    """
    async with opened as running:
        if running.capabilities.session_capabilities.list is None:
            raise CapabilityMissing("sessionCapabilities.list", "a list of the sessions that it remembers")
        found = await running.list_sessions(cwd)
        advice = _how_to_go_on(running, given)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    elif found:
        _write_table(found, sys.stdout)
        sys.stderr.write(f"\n{advice}\n" if advice and sys.stderr.isatty() else "")
    else:
        where = "" if cwd is None else f" of {line(str(cwd))}"
        sys.stderr.write(f"Agent {line(running.name)} remembers no sessions{where}\n")


async def _forget(opened: AbstractAsyncContextManager[Agent], session_id: str) -> None:
    """Delete a session of an agent.

    Raises:
        ThinkwellError: The agent lists its sessions, and this is not one of them.
        CapabilityMissing: The agent does not delete sessions.
        AgentError: The agent answered with an error.
    """
    async with opened as running:
        flags = running.capabilities.session_capabilities
        if flags.delete is None:
            raise CapabilityMissing("sessionCapabilities.delete", "deleting a session")
        # For the protocol, deleting an unknown session is not an error: a typing mistake would look like a
        # deletion.
        if flags.list is not None and session_id not in {info.id for info in await running.list_sessions()}:
            raise ThinkwellError(
                f"Agent {running.name!r} remembers no session {session_id!r}: "
                "`thinkwell sessions` lists those that it does"
            )
        await running.delete_session(session_id)
    sys.stderr.write(f"Deleted {line(session_id)}\n")


def _how_to_go_on(agent: Agent, given: Sequence[str]) -> str:
    """Return the command that continues a session; empty if the agent does not support that."""
    option = "--load" if agent.capabilities.load_session else "--resume"
    if option == "--resume" and agent.capabilities.session_capabilities.resume is None:
        return ""
    return f"Continue one, in its folder: {shlex.join(['thinkwell', 'chat', *given, option, 'ID'])}"


def _write_table(sessions: Sequence[SessionInfo], out: TextIO) -> None:
    """Write sessions as a table: as wide as the terminal, or without one as wide as they are.

    Ids are shown in full, so that they can be copied.
    """
    rows = [
        ("ID", "UPDATED", "TITLE", "FOLDER"),
        *(
            (line(info.id), _when(info.updated_at), line(info.title or ""), line(info.cwd))
            for info in sessions
        ),
    ]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    if out.isatty():
        room = shutil.get_terminal_size().columns - sum(widths[:2]) - 3 * len(GAP)
        # The folder is shown in full if possible; the title may be cut.
        widths[3] = min(widths[3], max(room - min(widths[2], room // 2), NARROWEST))
        widths[2] = min(widths[2], max(room - widths[3], NARROWEST))
    for row in rows:
        shown = [pad(clip(text, width), width) for text, width in zip(row, widths, strict=True)]
        out.write(GAP.join(shown).rstrip() + "\n")
    out.flush()


def _when(updated_at: str | None) -> str:
    """Return a time in the local time zone."""
    if updated_at is None:
        return ""
    try:
        return datetime.fromisoformat(updated_at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return line(updated_at)
