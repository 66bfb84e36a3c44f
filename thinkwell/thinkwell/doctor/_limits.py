"""Time limits for an agent."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from thinkwell._core.exit import OPEN_TIMEOUT

STARTUP_TIMEOUT: Final = 60.0
"""Default seconds for an agent to answer its first request."""


class Limits(Struct, frozen=True, kw_only=True):
    """Time limits in seconds, and the names of the caller's options for more time, or a prompt."""

    startup: float = STARTUP_TIMEOUT
    opening: float = OPEN_TIMEOUT
    startup_name: str = "startup_timeout="
    opening_name: str = "open_timeout="
    prompt_name: str = "diagnose(…, prompt=True)"
