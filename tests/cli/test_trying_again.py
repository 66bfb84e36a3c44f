"""``--retry`` and ``--fallback`` of a chat and of a server."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from cli.command import run_command
from cli.serve_process import serving_web, started, watched
from cli.typing_in import home, scripted

from thinkwell.testing import script

__all__ = ("home",)


@pytest.fixture(autouse=True)
def agents(home: Path) -> None:
    """Let `busy` be overloaded once, and `other` work."""
    busy = script.says("Let me see.").fails(-32603, "overloaded") + script.says("I see.")
    lines: list[str] = []
    for name, told in (("busy", busy), ("other", script.says("I do it."))):
        (home / name).mkdir()
        command = json.dumps(shlex.split(scripted(home / name, told)))
        lines.append(f"[tool.thinkwell.agents.{name}.program]\ncommand = {command}\n")
    known = 'said = "overloaded"\nerror = "Overloaded"\nhint = "-"\nversion = "1"\nseen = 2026-11-28\n'
    lines.append(f"[[tool.thinkwell.agents.busy.errors]]\n{known}")
    (home / "pyproject.toml").write_text("".join(lines), "utf-8")


def test_a_turn_of_a_chat_is_tried_again() -> None:
    done = run_command("chat", "--agent", "busy", "--retry", "1", stdin="What is here?\n")
    assert (done.code, done.out) == (0, "I see.\n"), done.err
    assert "busy: Overloaded; it tries again" in done.err


def test_another_agent_is_talked_with() -> None:
    done = run_command("chat", "--command", "/nowhere/mine", "--fallback", "other", stdin="What is here?\n")
    assert (done.code, done.out) == (0, "I do it.\n"), done.err
    assert "mine: AgentNotFound; other takes over" in done.err


def test_a_fallback_of_a_chat_that_cannot_be_used() -> None:
    done = run_command("chat", "--agent", "busy", "--fallback", "busy", stdin="What is here?\n")
    assert (done.code, done.out) == (2, "")
    assert "busy is the agent itself" in " ".join(done.err.split())


@pytest.mark.parametrize("in_file", [False, True], ids=["options", "file"])
def test_the_agents_of_a_server_try_again_and_are_replaced(in_file: bool) -> None:
    Path("busy.toml").write_text('journal = "memory"\n[agents.busy]\nretry = 1\n', "utf-8")
    Path("gone.toml").write_text(
        'journal = "memory"\n[agents.mine]\ncommand = "/nowhere/mine"\nfallback = ["other"]\n', "utf-8"
    )
    options = ("--journal", "memory")
    busy = ("--config", "busy.toml") if in_file else (*options, "--agent", "busy", "--retry", "1")
    gone = (*options, "--command", "/nowhere/mine", "--fallback", "other")
    with serving_web(*busy) as web, web.client() as client:
        log = watched(client, started(client, "What is here?"))
        assert [event["error"] for event in log if event.get("type") == "try_failed"] == ["Overloaded"]
        assert log[-1]["result"] == "I see."
    with serving_web(*(("--config", "gone.toml") if in_file else gone)) as web, web.client() as client:
        log = watched(client, started(client, "What is here?"))
        assert [event["next_agent"] for event in log if event.get("type") == "try_failed"] == ["other"]
        assert log[-1]["result"] == "I do it."
