"""The kind of machine that the tests run on."""

from __future__ import annotations

import platform
from typing import Final

_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_MACHINE: Final = platform.machine().lower()

HERE: Final = f"{platform.system().lower()}-{_MACHINES.get(_MACHINE, _MACHINE)}"
"""What the registry calls it."""
