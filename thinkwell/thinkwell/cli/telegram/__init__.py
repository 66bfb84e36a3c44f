"""``thinkwell telegram``: a bot in Telegram, with an agent behind it."""

from __future__ import annotations

__all__ = ()
