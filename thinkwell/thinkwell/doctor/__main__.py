"""``python -m thinkwell.doctor``: check agents in a terminal, or for a program that reads JSON."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
from typing import TYPE_CHECKING, Final, TextIO, cast

import anyio

from thinkwell._recording._redact import Redactor
from thinkwell.agents import find_agent, known_agents
from thinkwell.agents._choosing import choose, environment
from thinkwell.doctor import Diagnosis, diagnose
from thinkwell.doctor._examination import beforehand
from thinkwell.doctor._present import is_present
from thinkwell.doctor._report import BEFORE_THE_END
from thinkwell.doctor._table import heading, quirks, rows, verdict
from thinkwell.errors import ThinkwellError
from thinkwell.mcp_servers import load_mcp_servers

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence

    from thinkwell.doctor import Check

WRONG_USAGE: Final = 2
BROKEN_PIPE: Final = 1
INTERRUPTED: Final = 130
"""128 and the number of the signal, as shells have it."""

EXITS: Final = """\
exit codes: 0 every check went well; 1 a check failed; 2 wrong usage; 3 an agent works, but wants a login
(and no other failed); 130 interrupted. It never sends a prompt, so it spends no tokens."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what the arguments name, and return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is not None and (given.agents or given.all):
        parser.error("give agents or --command, not both")
    logging.getLogger("thinkwell").addHandler(logging.NullHandler())  # what it logs is in the checks
    out = cast("io.TextIOWrapper", sys.stdout)
    out.reconfigure(errors="backslashreplace")  # a terminal may know few characters
    try:
        return anyio.run(_run, given)
    except KeyboardInterrupt:  # pragma: no cover - tested; what is interrupted is traced no more
        sys.stderr.write("\n")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # nothing more is to be said, or tried
        return BROKEN_PIPE
    except (TypeError, ValueError, OSError, ThinkwellError) as exc:
        sys.stderr.write(f"{parser.prog}: error: {exc}\n")
        return WRONG_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m thinkwell.doctor",
        description="Check agents, step by step: whether they are there, start, want a login, see our tools.",
        epilog=EXITS,
    )
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="*",
        help="such as claude, or claude@latest; it is installed where it is not there. By default the one "
        "that the environment names, as for open_agent",
    )
    parser.add_argument("--command", metavar="LINE", help="the command of any other agent")
    parser.add_argument(
        "--all", action="store_true", help="every known agent that is there; installs nothing"
    )
    parser.add_argument("--cwd", metavar="DIR", help="the folder to work in; by default the current one")
    parser.add_argument("--mcp", metavar="FILE", help="MCP servers to hand over, such as .mcp.json")
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=float,
        default=60,
        help="seconds until an agent has answered its first request (60)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON: an object; an array for several")
    return parser


async def _run(given: argparse.Namespace) -> int:
    servers = () if given.mcp is None else load_mcp_servers(given.mcp)
    agents: list[str | None] = [*dict.fromkeys(given.agents)]
    if given.all:
        agents += await _present(agents, given.cwd or ".")
    elif not agents:
        agents = [None]
    found: list[Diagnosis] = []
    for agent in agents:
        screen = None if given.json else _Screen(sys.stdout)
        if screen is not None:
            screen.begin(_beforehand(agent, given.command), first=not found)
        diagnosis = await diagnose(
            agent,
            command=given.command,
            cwd=given.cwd,
            mcp_servers=servers,
            startup_timeout=given.timeout,
            on_check=None if screen is None else screen.check,
        )
        found.append(diagnosis)
        if screen is not None:
            screen.end(diagnosis)
    if given.json:
        several = given.all or len(agents) > 1
        text = json.dumps([one.as_builtins() for one in found], indent=2) if several else found[0].to_json()
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    codes = {diagnosis.exit_code for diagnosis in found}
    return min(codes - {0}, default=0)


async def _present(named: Sequence[str | None], cwd: str) -> list[str]:
    """Return the names of the agents that are there, and tell of those that are not."""
    present: list[str] = []
    missing: list[str] = []
    for profile in (find_agent("builtin"), *known_agents()):
        if profile.name not in named:
            (present if await is_present(profile, cwd) else missing).append(profile.name)
    if missing:  # pragma: no branch - nobody has them all
        sys.stderr.write(f"Not there, and so not checked: {', '.join(missing)}\n")
    return present


def _beforehand(agent: str | None, command: str | None) -> Diagnosis:
    """Return what is known of an agent before it is looked at."""
    try:
        profile = choose(agent, command)
    except ThinkwellError:  # the checks tell
        return Diagnosis(agent=agent or "agent")
    return beforehand(profile, Redactor(environment(profile, None), {}))


class _Screen:
    """Shows the checks of one agent as they come."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._waiting = ""

    def begin(self, known: Diagnosis, *, first: bool) -> None:
        """Show which agent it is."""
        lines = [*([] if first else [""]), *heading(known.agent, known.title, known.command), ""]
        self._write("\n".join(lines) + "\n")

    @property
    def _width(self) -> int:
        return shutil.get_terminal_size((100, 24)).columns

    def check(self, check: Check) -> None:
        """Show a check, and in a terminal which one follows."""
        self._write("\n".join(rows(check, self._width)) + "\n")
        follows = [*BEFORE_THE_END, "ends"]
        if self._live and check.name in follows[:-1]:
            self._waiting = f"…        {follows[follows.index(check.name) + 1]}"
            self._out.write(self._waiting)
            self._out.flush()

    def end(self, diagnosis: Diagnosis) -> None:
        """Show what comes below the checks."""
        lines = [*quirks(diagnosis, self._width), "", verdict(diagnosis)]
        self._write("\n".join(lines) + "\n")

    def _write(self, text: str) -> None:
        if self._waiting:
            self._out.write("\r" + " " * len(self._waiting) + "\r")
            self._waiting = ""
        self._out.write(text)
        self._out.flush()


if __name__ == "__main__":  # pragma: no branch - it is a program
    sys.exit(main())
