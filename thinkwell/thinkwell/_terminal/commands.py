"""A command that runs to its end, without a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from thinkwell_acp import schema as s
from thinkwell_acp.errors import RpcError
from thinkwell_acp.terminals import Terminals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Ended(NamedTuple):
    """How a command has ended."""

    status: int | str
    """Its exit code, or the name of the signal that has ended it."""
    output: str
    """What it wrote to standard output and standard error: the end of it, if it is too long."""


async def run_command(
    command: Sequence[str], *, cwd: str, env: Mapping[str, str] | None = None, limit: int
) -> Ended:
    """Run a command and return how it has ended. Nothing that it started is left, also if it is cancelled.

    Args:
        command: The program, and its arguments.
        cwd: The absolute path of the folder that it runs in.
        env: Its environment; by default the caller's.
        limit: Most bytes of its output that are kept.

    Raises:
        OSError: It cannot be started.
    """
    async with Terminals(cwd=cwd, env=env, output_limit=limit) as terminals:
        asked = s.CreateTerminalRequest(session_id="", command=command[0], args=tuple(command[1:]))
        try:
            id_ = (await terminals.create_terminal(asked)).terminal_id
        except RpcError as exc:
            raise OSError(exc.message) from None
        await terminals.wait_for_terminal_exit(s.WaitForTerminalExitRequest(session_id="", terminal_id=id_))
        told = await terminals.terminal_output(s.TerminalOutputRequest(session_id="", terminal_id=id_))
    status = told.exit_status
    assert status is not None, "the command has ended"
    return Ended(status.signal or status.exit_code or 0, told.output)
