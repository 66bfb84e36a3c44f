"""Let an agent read and write files, and run commands, through your program."""

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
