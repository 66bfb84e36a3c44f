"""Commands that the client runs for the agent."""

from typing import TypeAlias

from thinkwell_acp.schema._base import Extensible, OfSession, UInt
from thinkwell_acp.schema.mcp import EnvVariable

__all__ = (
    "CreateTerminalRequest",
    "CreateTerminalResponse",
    "KillTerminalRequest",
    "KillTerminalResponse",
    "ReleaseTerminalRequest",
    "ReleaseTerminalResponse",
    "TerminalExitStatus",
    "TerminalId",
    "TerminalOutputRequest",
    "TerminalOutputResponse",
    "WaitForTerminalExitRequest",
    "WaitForTerminalExitResponse",
)

TerminalId: TypeAlias = str
"""The id of a terminal within its session; chosen by the client."""


class CreateTerminalRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `terminal/create`.

    Attributes:
        cwd: absolute path.
        output_byte_limit: in bytes; beyond it, the oldest output is dropped.
    """

    command: str
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] = ()
    cwd: str | None = None
    output_byte_limit: UInt | None = None


class CreateTerminalResponse(Extensible, frozen=True, kw_only=True):
    """Result of `terminal/create`, given as soon as the command has started."""

    terminal_id: TerminalId


class _OfTerminal(OfSession, frozen=True, kw_only=True):
    terminal_id: TerminalId


class TerminalOutputRequest(_OfTerminal, frozen=True, kw_only=True):
    """Parameters of `terminal/output`."""


class TerminalExitStatus(Extensible, frozen=True, kw_only=True):
    """How a command ended."""

    exit_code: UInt | None = None
    signal: str | None = None


class TerminalOutputResponse(Extensible, frozen=True, kw_only=True):
    """Result of `terminal/output`: the output so far.

    Attributes:
        truncated: older output was dropped.
        exit_status: `None` while the command runs.
    """

    output: str
    truncated: bool
    exit_status: TerminalExitStatus | None = None


class WaitForTerminalExitRequest(_OfTerminal, frozen=True, kw_only=True):
    """Parameters of `terminal/wait_for_exit`."""


class WaitForTerminalExitResponse(Extensible, frozen=True, kw_only=True):
    """Result of `terminal/wait_for_exit`, given when the command has ended."""

    exit_code: UInt | None = None
    signal: str | None = None


class KillTerminalRequest(_OfTerminal, frozen=True, kw_only=True):
    """Parameters of `terminal/kill`: end the command, keep the terminal."""


class KillTerminalResponse(Extensible, frozen=True, kw_only=True):
    """Result of `terminal/kill`."""


class ReleaseTerminalRequest(_OfTerminal, frozen=True, kw_only=True):
    """Parameters of `terminal/release`: end the command and forget the terminal."""


class ReleaseTerminalResponse(Extensible, frozen=True, kw_only=True):
    """Result of `terminal/release`."""
