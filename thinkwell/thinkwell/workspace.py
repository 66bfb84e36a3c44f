"""What of the machine an agent may reach through its client: folders to read and write, and commands."""

from thinkwell._workspace.workspace import (
    MAX_READ_BYTES,
    MAX_TERMINALS,
    MAX_WRITE_BYTES,
    OUTPUT_LIMIT,
    Workspace,
)

__all__ = (
    "MAX_READ_BYTES",
    "MAX_TERMINALS",
    "MAX_WRITE_BYTES",
    "OUTPUT_LIMIT",
    "Workspace",
)
