"""The command ``thinkwell``, for which the extra ``cli`` is needed: ``pip install 'thinkwell[cli]'``."""

from __future__ import annotations

__all__ = ()
