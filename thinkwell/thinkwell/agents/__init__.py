"""Profiles of the known agents: how to start them, and their quirks.

::

    for profile in known_agents():
        print(profile.name, profile.title, profile.version)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell.agents._choosing import choose
from thinkwell.agents._folders import state_folder
from thinkwell.agents._known_errors import KnownError
from thinkwell.agents._names import AgentName
from thinkwell.agents._profile import (
    AgentProfile,
    Archive,
    Binary,
    EnvironmentRules,
    Launch,
    Npx,
    Program,
    Quirk,
    ToolTransport,
    Uvx,
)
from thinkwell.agents._sources import find_agent, known_agents

if TYPE_CHECKING:
    from thinkwell.agents._registry import RegistryChange, RegistryUpdate, SkippedEntry, update_agents

__all__ = (
    "AgentName",
    "AgentProfile",
    "Archive",
    "Binary",
    "EnvironmentRules",
    "KnownError",
    "Launch",
    "Npx",
    "Program",
    "Quirk",
    "RegistryChange",
    "RegistryUpdate",
    "SkippedEntry",
    "ToolTransport",
    "Uvx",
    "choose",
    "find_agent",
    "known_agents",
    "state_folder",
    "update_agents",
)


def __getattr__(name: str) -> object:
    """Import the registry's reader on first use, so that opening an agent does not load it."""
    if name in ("RegistryChange", "RegistryUpdate", "SkippedEntry", "update_agents"):
        from thinkwell.agents import _registry

        return getattr(_registry, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
