"""Serves runs to real clients of Letta: `letta-client` for Python and for TypeScript, and letta-code.

What they call an agent is a conversation with one of the agents that are served.
"""

from __future__ import annotations

from thinkwell.web.letta._routes import routes

__all__ = ("routes",)
