"""``thinkwell agents`` and ``thinkwell doctor``: other programs, with the same options."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import TYPE_CHECKING

from cli.command import run_command
from cli.described import options_of
from cli.typing_in import home

from thinkwell.agents import __main__ as agents_program
from thinkwell.agents import known_agents
from thinkwell.doctor import __main__ as doctor_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def test_one_agent(home: Path) -> None:
    assert run_command("agents", "show", "claude").out.startswith("claude: ")
    assert json.loads(run_command("agents", "show", "claude", "--json").out)[0]["name"] == "claude"
    done = run_command("agents", "show", "nobody")
    assert (done.code, done.out) == (1, "")
    misplaced = run_command("agents", "--json", "show", "claude")
    assert misplaced.code == 2
    assert "behind show" in misplaced.err


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
