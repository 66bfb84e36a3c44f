"""Agents that fail in ways that a profile knows."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from thinkwell import Retry, open_agent
from thinkwell.agents import AgentProfile, KnownError, Program
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from thinkwell import Agent, Opening
    from thinkwell.testing import Script

__all__ = ("BUSY", "EMPTY", "EXPIRED", "FULL", "NOW", "known", "opening", "played")

NOW = Retry(random=lambda: 0.0)
"""Tries again at once."""

BUSY = script.fails(-32603, "overloaded")
EMPTY = script.fails(-32603, "quota")
EXPIRED = script.fails(-32603, "expired")
FULL = script.fails(-32603, "context")


def known(name: str, command: tuple[str, ...] = ("no-such-program-7",)) -> AgentProfile:
    """Return the profile of an agent whose errors have classes."""
    rows = [
        (r"overloaded(?: for (?P<retry_after>[-\d.]+))?", "Overloaded"),
        (r"quota(?: until (?P<resets_at>\d+))?", "QuotaExhausted"),
        ("expired", "LoginExpired"),
        ("context", "ContextFull"),
    ]
    errors = tuple(
        KnownError(said=said, error=error, hint="-", version="1", seen=dt.date(2026, 1, 1))
        for said, error in rows
    )
    return AgentProfile(name=name, program=Program(command=command), errors=errors)


def played(told: Script, **options: Any) -> ScriptedAgent:
    """Return an agent that may play less than it could."""
    return ScriptedAgent(told, complete=False, **options)


def opening(agent: ScriptedAgent, name: str = "first", **options: Any) -> Opening[Agent]:
    """Open an agent that a profile knows, in memory."""
    return open_agent(known(name), transport=agent.connect(), **options)
