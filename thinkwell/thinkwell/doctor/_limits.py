"""How long an agent may take."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from thinkwell._core.exit import OPEN_TIMEOUT

STARTUP_TIMEOUT: Final = 60.0
"""Seconds until an agent has answered its first request, by default."""


class Limits(Struct, frozen=True, kw_only=True):
    """How many seconds an agent may take, and by which names the caller gives it more, or a prompt."""

    startup: float = STARTUP_TIMEOUT
    opening: float = OPEN_TIMEOUT
    startup_name: str = "startup_timeout="
    opening_name: str = "open_timeout="
    prompt_name: str = "diagnose(…, prompt=True)"
