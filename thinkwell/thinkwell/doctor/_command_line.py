"""The command line of the doctor."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from thinkwell._core.exit import OPEN_TIMEOUT, existing_folder
from thinkwell.agents import choose, find_agent, known_agents
from thinkwell.doctor._limits import STARTUP_TIMEOUT, Limits
from thinkwell.doctor._servers import Servers
from thinkwell.errors import McpServerError, ProfileError, ThinkwellError
from thinkwell.mcp_servers import load_mcp_servers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.agents import AgentProfile
    from thinkwell.mcp_servers import McpServer

PROG: Final = "python -m thinkwell.doctor"

LIMITS: Final = Limits(startup_name="--timeout", opening_name="--timeout", prompt_name="--prompt")

EXITS: Final = """\
exit codes: 0 no check failed; 1 a check failed; 2 wrong usage; 3 an agent wants a login (and no other
failed); 130 interrupted. Without --prompt it spends no tokens, and cannot know whether an agent works."""


class CommandLine(argparse.Namespace):
    """The valid arguments."""

    agents: Sequence[str | None]
    """Agents by name; ``None`` is the one that the command or the environment names."""
    command: list[str] | None
    all: bool
    more: Sequence[AgentProfile] = ()
    """Agents to check too, if they are installed."""
    cwd: str
    servers: tuple[McpServer, ...]
    limits: Limits
    prompt: bool
    json: bool

    @property
    def several(self) -> bool:
        """Whether more than one agent was requested, however many there are."""
        return self.all or len(self.agents) > 1


def read_command_line(arguments: Sequence[str] | None, *, prog: str = PROG) -> CommandLine:
    """Parse the arguments; by default those of this process. Invalid ones end it (`SystemExit`)."""
    parser = _parser(prog)
    given = parser.parse_args(arguments, CommandLine())
    if given.command is not None and (len(given.agents) > 1 or given.all):
        parser.error("give one agent with --command, or none")
    given.agents = [*dict.fromkeys(given.agents)]
    if given.all:
        try:
            given.more = (find_agent("builtin"), *known_agents())
        except ProfileError as exc:
            parser.error(str(exc))
    elif not given.agents:
        given.agents = [None]
        if given.command is None:
            _check_environment(parser)
    return given


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Check agents, step by step: whether they are there, start, want a login, see our tools.",
        epilog=EXITS,
    )
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="*",
        help="such as claude, or claude@latest; it is installed if it is missing. By default the one "
        "that the environment names, as for open_agent",
    )
    parser.add_argument(
        "--command", metavar="LINE", type=_command, help="the command of any other agent, or of AGENT"
    )
    parser.add_argument(
        "--all", action="store_true", help="every known agent that is there; installs nothing"
    )
    parser.add_argument(
        "--cwd", metavar="DIR", type=_folder, default=".", help="the folder to work in; by default this one"
    )
    parser.add_argument(
        "--mcp",
        metavar="FILE",
        dest="servers",
        type=_servers,
        default=(),
        help="MCP servers to hand over, such as .mcp.json",
    )
    parser.add_argument(
        "--timeout",
        metavar="S",
        dest="limits",
        type=_limits,
        default=LIMITS,
        help=f"seconds until an agent has answered its first request, or an MCP server its own "
        f"({STARTUP_TIMEOUT:g}), and until a session is open ({OPEN_TIMEOUT:g})",
    )
    parser.add_argument(
        "--prompt",
        action="store_true",
        help="send a prompt that asks for a typed result, which shows whether the agent works; it costs one "
        "turn of its model",
    )
    parser.add_argument("--json", action="store_true", help="print JSON: an object; an array for several")
    return parser


def _command(line: str) -> list[str]:
    try:
        words = shlex.split(line, posix=os.name == "posix")
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{exc}: {line}") from None
    if not words:
        raise argparse.ArgumentTypeError("it names no program")
    return words


def _folder(path: str) -> str:
    if not Path(path).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path}")
    return existing_folder(path, "the doctor")


def _limits(text: str) -> Limits:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not seconds > 0:  # also refuses NaN
        raise argparse.ArgumentTypeError(f"it is {text}; give a number of seconds above 0")
    return replace(LIMITS, startup=seconds, opening=seconds)


def _servers(path: str) -> tuple[McpServer, ...]:
    who = "the doctor"
    try:
        servers = load_mcp_servers(path)
        Servers(servers, None, who)
    except (McpServerError, ValueError) as exc:
        raise argparse.ArgumentTypeError(str(exc).removeprefix(f"{who}: ")) from None
    return servers


def _check_environment(parser: argparse.ArgumentParser) -> None:
    """Check that the environment names an agent in a valid way, if it names one."""
    try:
        choose(None, None)
    except ThinkwellError:
        pass  # the checks tell
    except ValueError as exc:
        parser.error(str(exc))
