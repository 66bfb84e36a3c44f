"""``thinkwell telegram``: a Telegram bot for an agent."""

from __future__ import annotations

__all__ = ()
