"""``thinkwell agents`` and ``thinkwell doctor``: other programs, with the same options."""

from __future__ import annotations

import json
import re
import shlex
import sys
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import TYPE_CHECKING

from cli.command import run_command
from cli.described import options_of
from cli.remembering import remember, remembering
from cli.typing_in import home

from thinkwell.agents import known_agents
from thinkwell.agents import program as agents_program
from thinkwell.doctor import program as doctor_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

__all__ = ("home",)


def options_of_program(main: Callable[[list[str]], int], *path: str) -> set[str]:
    """Return the options that the help of a program names."""
    with redirect_stdout(StringIO()) as out, suppress(SystemExit):
        main([*path, "--help"])
    return set(re.findall(r"(?<![\w-])--[a-z-]+", out.getvalue())) - {"--help"}


def options_of_command(*path: str) -> set[str]:
    return {option for option in options_of(*path) if option.startswith("--")}


def test_the_options_are_the_same() -> None:
    assert options_of_command("doctor") == options_of_program(doctor_program.main)
    for name in ("list", "show", "update"):
        assert options_of_command("agents", name) == options_of_program(agents_program.main, name)


def test_the_doctor_is_given_a_folder_like_every_other_command() -> None:
    done = run_command("doctor", "--cwd", "/nowhere/at/all")
    assert (done.code, done.out) == (2, "")
    assert "the folder /nowhere/at/all does not exist" in " ".join(done.err.split())


def test_agents_are_listed(home: Path) -> None:
    done = run_command("agents")
    names = [line.split()[0] for line in done.out.splitlines()]
    assert names == ["builtin", *(profile.name for profile in known_agents())]
    assert run_command("agents", "list") == done
    listed = json.loads(run_command("agents", "--json").out)
    assert [agent["name"] for agent in listed] == names
    assert json.loads(run_command("agents", "list", "--json").out) == listed


def test_one_agent(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_cache", str(home / "npm"))  # else an installed one would be started
    assert run_command("agents", "show", "claude").out.startswith("claude: ")
    assert json.loads(run_command("agents", "show", "claude", "--json").out)[0]["name"] == "claude"
    done = run_command("agents", "show", "nobody")
    assert (done.code, done.out) == (1, "")
    misplaced = run_command("agents", "--json", "show", "claude")
    assert misplaced.code == 2
    assert "behind show" in misplaced.err


def test_which_are_installed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_cache", str(home / "npm"))
    builtin, *others = (line.split("  ") for line in run_command("agents").out.splitlines())
    assert "installed" in builtin
    (claude,) = (line for line in others if line[0] == "claude")
    assert "installed" not in claude
    listed = {agent["name"]: agent["installed"] for agent in json.loads(run_command("agents", "--json").out)}
    assert (listed["builtin"], listed["claude"]) == (True, False)


def test_the_models_of_one_that_is_installed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_MODELS", "swift,large")
    done = run_command("agents", "show", "builtin")
    assert "installed  yes\nmodels     swift\n           large\n" in done.out
    (shown,) = json.loads(run_command("agents", "show", "builtin", "--json").out)
    assert [model["value"] for model in shown["models"]] == ["swift", "large"]
    monkeypatch.setenv("THINKWELL_BUILTIN_MODELS", "")
    assert "models     it offers no choice\n" in run_command("agents", "show", "builtin").out


def test_the_models_of_one_that_is_not_there_are_not_known(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_cache", str(home / "npm"))
    assert "models     not known: it is not installed; `thinkwell doctor claude`" in (
        run_command("agents", "show", "claude").out
    )
    (shown,) = json.loads(run_command("agents", "show", "claude", "--json").out)
    assert (shown["installed"], shown["models"]) == (False, None)


def test_an_agent_that_does_not_tell_its_models_says_why(home: Path) -> None:
    own_profile(home, "gone", [sys.executable, "-c", "raise SystemExit(3)"])
    done = run_command("agents", "show", "gone")
    assert done.code == 0
    assert "models     not known: Agent 'gone' could not be started: " in done.out


def test_the_session_in_which_it_is_asked_is_forgotten(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = remember(home, [{"sessionId": "session-1", "cwd": str(home)}])
    monkeypatch.setenv("SESSIONS", str(file))
    own_profile(home, "keeps", shlex.split(remembering("delete", "options")))
    done = run_command("agents", "show", "keeps")
    assert "models     small (Small)\n           large (Large)\n" in done.out
    assert json.loads(file.read_text("utf-8")) == []


def own_profile(home: Path, name: str, command: list[str]) -> None:
    """Write what a user knows of an agent of their own."""
    folder = home.parent / "settings" / "thinkwell" / "agents"
    folder.mkdir(parents=True)
    (folder / f"{name}.toml").write_text(f"[program]\ncommand = {json.dumps(command)}\n", "utf-8")


def test_the_registry(home: Path) -> None:
    entry = {"id": "odd", "version": "1", "distribution": {"npx": {"package": "odd@1"}}}
    (home / "registry.json").write_text(json.dumps({"agents": [entry]}), "utf-8")
    done = run_command("agents", "update", "registry.json")
    assert done.code == 0, done.err
    assert "new      odd" in done.out


def test_the_doctor(home: Path) -> None:
    done = run_command("doctor", "builtin", "--json", "--timeout", "30", "--cwd", str(home))
    assert done.code == 0, done.err
    assert json.loads(done.out)["agent"] == "builtin"


def test_the_doctor_names_itself(home: Path) -> None:
    done = run_command("doctor", "--timeout", "soon", "--command=x")
    assert done.code == 2
    assert "usage: thinkwell doctor" in done.err
    assert "--timeout" in done.err
    both = run_command("doctor", "builtin", "claude", "--command", "x")
    assert "give one agent with --command, or none" in both.err
