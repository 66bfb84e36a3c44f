"""Agents that thinkwell knows by name: how to start them, and what they do that no specification says.

::

    for profile in known_agents():
        print(profile.name, profile.title, profile.version)
"""

from __future__ import annotations

from thinkwell.agents._profile import (
    AgentProfile,
    Archive,
    Binary,
    EnvironmentRules,
    Launch,
    Npx,
    Program,
    Quirk,
    Uvx,
)
from thinkwell.agents._sources import find_agent, known_agents

__all__ = (
    "AgentProfile",
    "Archive",
    "Binary",
    "EnvironmentRules",
    "Launch",
    "Npx",
    "Program",
    "Quirk",
    "Uvx",
    "find_agent",
    "known_agents",
)
