"""The fixtures of a Python that is warm: see there."""

from __future__ import annotations

from warm import warm_python, warm_server

__all__ = ("warm_python", "warm_server")
