"""The errors of an ACP connection, as one tree.

    AcpError
    ├── RpcError                 the peer answered with an error object
    ├── CapabilityMissing        the peer did not advertise what a call needs; nothing was sent
    ├── ConnectionClosed         this side closed the connection
    ├── ConnectionBroken         the other side ended it, or broke the protocol
    │   ├── ConnectionEnded      this side ended the other one
    │   ├── ProcessExited        the agent's process has ended
    │   ├── FrameTooLong         a line is longer than the limit
    │   └── VersionMismatch      no protocol version in common
    └── ProgramNotFound          the agent's program does not exist
        └── ProgramNotStarted    it exists, but the system refuses to run it

`DecodeError` (in `thinkwell_acp.schema`) is raised for one message that does not fit its type. It costs that
message, never the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell_acp.schema import JsonValue

__all__ = (
    "AUTH_REQUIRED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REQUEST_CANCELLED",
    "RESOURCE_NOT_FOUND",
    "AcpError",
    "CapabilityMissing",
    "ConnectionBroken",
    "ConnectionClosed",
    "ConnectionEnded",
    "FrameTooLong",
    "ProcessExited",
    "ProgramNotFound",
    "ProgramNotStarted",
    "RpcError",
    "VersionMismatch",
)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
"""The agent requires a login (ACP error codes)."""
RESOURCE_NOT_FOUND = -32002
"""A file or resource does not exist (ACP error codes)."""
REQUEST_CANCELLED = -32800
"""The request was cancelled by `$/cancel_request` (ACP error codes)."""


class AcpError(Exception):
    """Base of every error of the protocol layer."""


class RpcError(AcpError):
    """The peer answered a request with an error object, or a handler of ours raises one.

    Attributes:
        code: A JSON-RPC or ACP error code.
        message: The peer's text.
        data: Additional JSON data.
    """

    def __init__(self, code: int, message: str, data: JsonValue = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        extra = "" if self.data is None else f" ({self.data})"
        return f"{self.message} [{self.code}]{extra}"

    @classmethod
    def method_not_found(cls, method: str) -> RpcError:
        """Return the error for a method that this side does not serve."""
        return cls(METHOD_NOT_FOUND, f"Method not found: {method}", {"method": method})


class CapabilityMissing(AcpError):  # noqa: N818 - says what happened
    """A call needs something that the peer did not advertise. Nothing was sent.

    Attributes:
        capability: Path of the flag in the peer's capabilities, such as ``sessionCapabilities.resume``.
        wanted_by: The method or argument that needs it.
    """

    def __init__(self, capability: str, wanted_by: str) -> None:
        super().__init__(capability, wanted_by)
        self.capability = capability
        self.wanted_by = wanted_by

    def __str__(self) -> str:
        return f"{self.wanted_by} needs {self.capability}, which the agent does not advertise"


class ConnectionClosed(AcpError):  # noqa: N818 - says what happened
    """This side has closed the connection."""

    def __str__(self) -> str:
        return "the connection is closed"


class ConnectionBroken(AcpError):  # noqa: N818 - says what happened
    """The other side ended the connection, or it cannot continue."""

    def __str__(self) -> str:
        return "".join(map(str, self.args)) or "the other side closed the connection"


class ConnectionEnded(ConnectionBroken):
    """This side ended the other one, which broke a rule. The text says which."""


class ProcessExited(ConnectionBroken):
    """The agent's process ended.

    Attributes:
        exit_code: Its exit code, negative for a signal; ``None`` if it closed its output and still runs.
        stderr_tail: The end of its standard error.
    """

    def __init__(self, exit_code: int | None, stderr_tail: str) -> None:
        super().__init__(exit_code, stderr_tail)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail

    def __str__(self) -> str:
        if self.exit_code is None:
            what = "the agent closed its standard output"
        elif self.exit_code < 0:
            what = f"the agent was killed by signal {-self.exit_code}"
        else:
            what = f"the agent exited with code {self.exit_code}"
        return f"{what}; it wrote to stderr:\n{self.stderr_tail}" if self.stderr_tail else what


class FrameTooLong(ConnectionBroken):
    """The peer sent a line longer than the limit, so the message is lost.

    Attributes:
        limit: The limit, in bytes.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"the other side sent a line of more than {self.limit} bytes"


class VersionMismatch(ConnectionBroken):
    """The agent speaks another version of the protocol.

    Attributes:
        offered: The client's version.
        answered: The agent's version.
    """

    def __init__(self, offered: int, answered: int) -> None:
        super().__init__(offered, answered)
        self.offered = offered
        self.answered = answered

    def __str__(self) -> str:
        return (
            f"the agent speaks version {self.answered} of the Agent Client Protocol, "
            f"this client version {self.offered}"
        )


class ProgramNotFound(AcpError):  # noqa: N818 - says what happened
    """The agent's program, or the folder to start it in, does not exist.

    Attributes:
        command: The command that was tried.
        reason: What is missing.
    """

    def __init__(self, command: Sequence[str], reason: str) -> None:
        super().__init__(tuple(command), reason)
        self.command: tuple[str, ...] = tuple(command)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class ProgramNotStarted(ProgramNotFound):
    """The agent's program exists, but the operating system refused to run it."""
