"""Serves runs to real clients of Letta: `letta-client` for Python and for TypeScript, and letta-code.

A Letta agent is a conversation with one of the served agents.
"""

from __future__ import annotations

from thinkwell.web.letta._routes import routes

__all__ = ("routes",)
