"""How npx is asked to start an agent. That it does, the tests with real agents see."""

from __future__ import annotations

from thinkwell.agents import Npx


def test_a_fixed_version_that_is_there_starts_without_a_network() -> None:
    agent = Npx(package="@acme/agent", version="1.2.3", args=("--acp",))
    assert agent.command == ("npx", "--yes", "--prefer-offline", "@acme/agent@1.2.3", "--acp")


def test_the_newest_version_is_asked_for_each_time() -> None:
    assert Npx(package="agent").command == ("npx", "--yes", "agent@latest")
