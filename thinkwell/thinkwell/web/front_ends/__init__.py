"""The stream formats that front ends speak: the Vercel AI SDK's and AG-UI's, and what their clients post."""

from __future__ import annotations

from thinkwell.web.front_ends._routes import routes

__all__ = ("routes",)
