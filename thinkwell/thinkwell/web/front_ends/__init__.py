"""The formats of front ends: the streams of the Vercel AI SDK and of AG-UI, and their requests."""

from __future__ import annotations

from thinkwell.web.front_ends._routes import routes

__all__ = ("routes",)
