"""``thinkwell serve``: runs behind HTTP, for browsers and programs."""

from __future__ import annotations

__all__ = ()
