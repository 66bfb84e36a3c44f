"""Programs of `thinkwell` and the agents that they start are run by a Python that is warm."""

from __future__ import annotations

from cli.typing_in import home

__all__ = ("home",)
