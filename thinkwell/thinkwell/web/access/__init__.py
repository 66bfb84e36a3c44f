"""Access to a server: callers, hosts, origins, and limits of requests."""

from __future__ import annotations

from thinkwell.web.access._access import SESSION_AGE, Access
from thinkwell.web.access._callers import token_flaw
from thinkwell.web.access._guard import AccessGuard
from thinkwell.web.access._origins import read_authority

__all__ = ("SESSION_AGE", "Access", "AccessGuard", "read_authority", "token_flaw")
