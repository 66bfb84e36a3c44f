"""The child process of this platform."""

from __future__ import annotations

import sys

if sys.platform == "win32":  # pragma: no cover - the tests run on POSIX
    from thinkwell_acp._windows import READ_SIZE, Process, read_descriptor, write_descriptor
else:
    from thinkwell_acp._posix import READ_SIZE, Process, read_descriptor, write_descriptor

__all__ = ("READ_SIZE", "Process", "read_descriptor", "write_descriptor")
