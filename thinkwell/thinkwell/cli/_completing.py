"""What the shell completes: names of agents."""

from __future__ import annotations


def agent_names(incomplete: str) -> list[str]:
    """Return the names of the agents that begin like this.

    A completion says nothing where it fails: whatever was printed would stand in the line that is typed.
    """
    import logging

    logging.disable()
    from thinkwell.agents._sources import BUILTIN, names_of_agents

    return [name for name in (BUILTIN.name, *names_of_agents()) if name.startswith(incomplete)]
