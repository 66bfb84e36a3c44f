"""How `thinkwell run` ends: exit codes, and what is said on standard error."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from cli.command import Done, run_command
from cli.typing_in import home, scripted
from doctor.patients import ODD

from thinkwell import errors
from thinkwell.testing import Script, script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ("home",)


@pytest.mark.parametrize(
    ("played", "arguments", "code", "problem"),
    [
        (script.refuses(), (), 1, "refused"),
        (script.says("no idea").stops().says("none"), ("--type", "builtins:int"), 1, "without a result"),
        (script.says("a").crashes(7), (), 3, "exited with code 7"),
        (script.hangs_up(), (), 3, "before it had finished"),
        (script.fails(message="out of order"), (), 3, "out of order"),
        (script.hangs(), ("--timeout", "0.3"), 5, "give a longer --timeout"),
        (script.hangs(), ("--idle-timeout", "0.3"), 5, "give a longer --idle-timeout"),
    ],
    ids=lambda value: None if isinstance(value, Script) else str(value),
)
def test_exit_codes(played: Script, arguments: tuple[str, ...], code: int, problem: str, home: Path) -> None:
    done = run_command("run", "go", "--command", scripted(home, played), *arguments)
    assert (done.code, done.out) == (code, "")
    assert problem in done.err
    assert "Traceback" not in done.err


def test_an_agent_that_is_not_known(home: Path) -> None:
    done = run_command("run", "go", "--agent", "claud")
    assert (done.code, done.out) == (3, "")
    assert (
        done.err
        == "Error: Agent 'claud' was not found: no known agent has that name; did you mean 'claude'?\n"
    )
    done = run_command("run", "go", "--agent", "nobody-at-all")
    assert done.err.endswith("Next, type: thinkwell agents\n")


def test_an_agent_that_does_not_start(home: Path) -> None:
    done = run_command("run", "go", "--command", f"{sys.executable} -c 'import sys; sys.exit(9)'")
    assert done.code == 3
    assert "could not be started" in done.err
    (home / "pyproject.toml").write_text(
        f"[tool.thinkwell.agents.mine.program]\ncommand = {json.dumps([sys.executable, '-c', '1'])}\n",
        "utf-8",
    )
    assert "Next, type: thinkwell doctor mine\n" in run_command("run", "go", "-a", "mine").err
    missing = run_command("run", "go", "--command", "/nowhere/agent")
    assert missing.code == 3
    assert "there is no program /nowhere/agent" in missing.err


def test_an_agent_that_wants_a_login(home: Path) -> None:
    (home / "pyproject.toml").write_text(
        f"[tool.thinkwell.agents.mine.program]\ncommand = {json.dumps([sys.executable, ODD, 'login'])}\n",
        "utf-8",
    )
    done = run_command("run", "go", "--agent", "mine")
    assert done.code == 4
    assert "Next, type: thinkwell login mine" in done.err
    done = run_command("run", "go", "--command", shlex.join([sys.executable, ODD, "login"]))
    assert done.code == 4
    assert 'Next, type: thinkwell login --command "…"' in done.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--agent", "claude@latest", "--command", "x"], "the command says which version; leave @… out"),
        (["--command", "'x"], "close the quotes"),
        (["--command", ""], "the command is empty"),
        (["--timeout", "0"], "give seconds above 0"),
        (["--idle-timeout", "nan"], "give seconds above 0"),
        (["--max-cost", "-1"], "give a number above 0"),
        (["--permissions", "perhaps"], "not deny, ask, allow or a file of rules"),
        (["--permissions", "parser.py"], "parser.py"),
        (["--mcp", "nowhere.json"], "nowhere.json"),
        (["--protocol", "ndjson"], "ndjson: give --command too"),
        (["--protocol", "ndjson", "--command", "x", "--mcp", "nowhere.json"], "ndjson: not with --mcp"),
        (["--protocol", "ndjson", "--command", "x", "--model", "m"], "ndjson: not with --model"),
        (["--model", ""], "it is empty; leave it out, or give a name"),
        (["--cwd", "nowhere"], "nowhere"),
        (["--style", "loud"], "loud"),
        (["--json", "--quiet"], "not both"),
    ],
)
def test_wrong_usage_starts_nothing(arguments: list[str], problem: str, home: Path) -> None:
    done = run_command("run", "go", *arguments)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err


def test_a_variable_that_cannot_be_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_AGENT_CMD", "'x")
    done = run_command("run", "go")
    assert done.code == 2
    assert "THINKWELL_AGENT_CMD" in done.err


@pytest.fixture
def failing(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], Done]:
    """Run the command, in which an error is raised as soon as there is an event loop."""

    def failing(failed: Exception) -> Done:
        def run(*_: object) -> None:
            raise failed

        monkeypatch.setattr(anyio, "run", run)
        return run_command("run", "go")

    return failing


def test_what_was_denied_is_named_with_the_option(failing: Callable[[Exception], Done]) -> None:
    assert failing(errors.ResultMissing("end_turn", "", denied=["rm -rf"])).err == (
        "Error: The agent ended its turn (end_turn) without a result\nIt said nothing\n"
        "Next: allow what it needs by --permissions\n"
    )
    assert failing(errors.ResultRefused("a" * 1_000_000)).err.count("a") < 10_000


def test_a_budget(home: Path) -> None:
    done = run_command("run", "go", "--max-tokens", "1000", "--max-cost", "0.5")
    assert done.code == 0, done.err


def test_a_budget_that_is_spent(failing: Callable[[Exception], Done]) -> None:
    done = failing(errors.BudgetExceeded("tokens", 5, 7))
    assert done.code == 5
    assert "\nNext: give a larger --max-tokens" in done.err


def test_a_recording_that_cannot_be_written(home: Path) -> None:
    done = run_command("run", "go", "--record", "nowhere/run.ndjson")
    assert (done.code, done.out) == (2, "")
    assert "there is no folder nowhere" in done.err


def test_what_an_agent_says_of_an_error_controls_no_terminal(home: Path) -> None:
    played = script.fails(message="\x1b]0;title\x07\x1b[2Jgone\x9b")
    done = run_command("run", "go", "--command", scripted(home, played))
    assert done.code == 3
    assert "gone" in done.err
    assert "\x1b" not in done.err


def test_a_bug_of_ours_is_shown_as_one(failing: Callable[[Exception], Done]) -> None:
    with pytest.raises(ZeroDivisionError):
        failing(ZeroDivisionError())


@pytest.mark.parametrize(
    ("failed", "code"),
    [
        (errors.LoginFailed("a", "b", "c"), 4),
        (errors.BufferOverflow(1), 5),
        (errors.RecordingCut("a", "b"), 6),
        (errors.ThoughtCancelled(), 130),
        (errors.ProfileError("a", "b"), 2),
        (errors.QuestionsStopped("enough"), 1),
        (OSError(), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_its_code(failed: Exception, code: int, failing: Callable[[Exception], Done]) -> None:
    done = failing(failed)
    assert (done.code, done.out) == (code, "")
    assert "open_agent(" not in done.err


def test_another_agent_takes_over_and_one_that_exits_is_started_again(home: Path) -> None:
    other = shlex.split(scripted(home, script.says("yes")))
    (home / "pyproject.toml").write_text(
        f"[tool.thinkwell.agents.other.program]\ncommand = {json.dumps(other)}\n", "utf-8"
    )
    done = run_command("run", "go", "--command", "/nowhere/mine", "--fallback", "other")
    assert (done.code, done.out) == (0, "yes\n"), done.err
    assert "mine: AgentNotFound; other takes over" in done.err
    (home / "dying").mkdir()
    dies = scripted(home / "dying", script.crashes(7))
    done = run_command("run", "go", "--command", dies, "--retry", "1")
    assert (done.code, done.out) == (3, "")
    assert done.err.count("AgentExited; it tries again") == 1


def test_a_wrong_fallback_is_refused(home: Path) -> None:
    done = run_command("run", "go", "--agent", "codex", "--fallback", "codex")
    assert (done.code, done.out) == (2, "")
    assert "codex is the agent itself" in " ".join(done.err.split())
    assert run_command("run", "go", "--fallback", "nobody").code == 3
