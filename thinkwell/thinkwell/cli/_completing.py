"""What the shell completes: names of agents."""

from __future__ import annotations


def agent_names(incomplete: str) -> list[str]:
    """Return the names of the agents that begin like this.

    Nothing is said of what goes wrong: it would stand in the line that is being typed.
    """
    from thinkwell.agents import known_agents
    from thinkwell.cli._terminal import silence_logs
    from thinkwell.errors import ThinkwellError

    silence_logs()
    try:
        names = [profile.name for profile in known_agents()]
    except ThinkwellError:
        names = []
    return [name for name in ("builtin", *names) if name.startswith(incomplete)]
