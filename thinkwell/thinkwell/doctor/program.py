"""``python -m thinkwell.doctor``: check agents in a terminal, or for a program that reads JSON."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import anyio

from thinkwell._core.diagnosis import is_installed
from thinkwell.doctor._command_line import PROG, read_command_line
from thinkwell.doctor._diagnose import examine
from thinkwell.doctor._report import BEFORE_THE_END
from thinkwell.doctor._servers import check_name
from thinkwell.doctor._table import ROOM, Table

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence

    from thinkwell.doctor import Diagnosis
    from thinkwell.doctor._command_line import CommandLine

BROKEN_PIPE: Final = 141
INTERRUPTED: Final = 130
"""128 and the number of the signal, as in shells."""


def main(arguments: Sequence[str] | None = None, *, prog: str = PROG) -> int:
    """Check the agents in the arguments, and return the exit code.

    Args:
        arguments: By default those of this process.
        prog: The program's name in messages.
    """
    try:
        given = read_command_line(arguments, prog=prog)
    except NotADirectoryError as exc:  # the current folder has been deleted
        if prog != PROG:
            raise  # the command has words of its own for that
        sys.stderr.write(f"{exc}\n")
        return 1
    logger = logging.getLogger("thinkwell")
    logger.addHandler(logging.NullHandler())  # the checks have its messages
    out = cast("io.TextIOWrapper", sys.stdout)
    out.reconfigure(errors="backslashreplace")  # a terminal may support few characters
    try:
        return anyio.run(_run, given)
    except KeyboardInterrupt:  # pragma: no cover - tested; what is interrupted is traced no more
        sys.stderr.write("\n")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # no more output, not even at exit
        return BROKEN_PIPE


async def _run(given: CommandLine) -> int:
    agents = [*given.agents, *await _present(given)]
    servers = [check_name(server.name) for server in given.servers]
    order = [*BEFORE_THE_END, *servers, *(["mcp servers"] if servers else []), "ends"]
    found: list[Diagnosis] = []
    for agent in agents:
        check = partial(
            examine,
            agent,
            command=given.command,
            cwd=given.cwd,
            mcp_servers=given.servers,
            limits=given.limits,
            prompt=given.prompt,
        )
        if given.json:
            found.append(await check(on_check=None))
            continue
        sys.stdout.write("\n" if found else "")
        table = Table(sys.stdout, lambda: shutil.get_terminal_size((ROOM, 24)).columns, order)
        diagnosis = await check(on_begin=table.begin, on_check=table.check)
        table.end(diagnosis.agent, diagnosis.checks, diagnosis.quirks)
        found.append(diagnosis)
    if given.json:
        several = [one.as_builtins() for one in found]
        text = json.dumps(several, indent=2) if given.several else found[0].to_json()
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    codes = {diagnosis.exit_code for diagnosis in found}
    return min(codes - {0}, default=0)


async def _present(given: CommandLine) -> list[str]:
    """Return the names of the installed agents, and print the missing ones."""
    present: list[str] = []
    missing: list[str] = []
    for profile in given.more:
        if profile.name not in given.agents:
            (present if await is_installed(profile, given.cwd) else missing).append(profile.name)
    if missing:
        sys.stderr.write(f"Not there, and so not checked: {', '.join(missing)}\n")
    return present
