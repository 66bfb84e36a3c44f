"""``thinkwell chat``: a conversation with an agent."""

from __future__ import annotations

__all__ = ()
