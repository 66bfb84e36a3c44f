"""``--model``: of a run, and of a chat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.typing_in import home

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("home",)


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the built-in agent offer two."""
    monkeypatch.setenv("THINKWELL_BUILTIN_MODELS", "swift,large")
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")


@pytest.mark.parametrize(("options", "model"), [([], "swift"), (["-m", "large"], "large")])
def test_the_model_of_a_run(options: list[str], model: str, home: Path) -> None:
    done = run_command("run", "--agent", "builtin", *options, "--json", "Which files are here?")
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["model"] for event in events if event.get("type") == "session"] == [model]


def test_a_model_that_is_not_offered(home: Path) -> None:
    done = run_command("run", "--agent", "builtin", "--model", "huge", "Which files are here?")
    assert (done.code, done.out) == (3, "")
    assert "This agent has no model 'huge'. It offers 'swift', 'large'" in " ".join(done.err.split())


def test_the_model_of_a_chat_and_of_its_recording(home: Path) -> None:
    options = ("--agent", "builtin", "--model", "large", "--record", "chat.ndjson")
    done = run_command("chat", *options, stdin="What is here?\n")
    assert done.code == 0, done.err
    replayed = run_command("replay", "chat.ndjson", "--speed", "0", "--json")
    events = [json.loads(line) for line in replayed.out.splitlines()]
    assert [event["model"] for event in events if event.get("type") == "session"] == ["large"]
