"""``thinkwell trials``: a plan is read, run, resumed and forecast."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import TYPE_CHECKING

import anyio
import pytest
from cli.command import run_command
from msgspec.structs import replace
from trials.repositories import ON_POSIX, Repository, use_git_settings

from thinkwell.trials import Spent, read_plan

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """
task = "Greet"
inputs = ["Ada", "Bob"]
agents = ["builtin"]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """The file of a plan."""
    file = tmp_path / "plan.toml"
    file.write_text(PLAN, "utf-8")
    return file


def test_a_plan_is_run_and_not_run_again(plan: Path) -> None:
    done = run_command("trials", str(plan), "--dry-run")
    assert done.code == 0
    assert "2 trials would run, 4 at a time.\nThey have no limit: set one, such as max_cost" in done.out
    assert not plan.with_suffix(".sqlite").exists()

    done = run_command("trials", str(plan))
    assert done.code == 0, done.err
    assert "2/2 trials done" in done.err
    assert done.out.splitlines()[1].split()[:2] == ["builtin", "2/2"]

    done = run_command("trials", str(plan))
    assert done.code == 2
    assert "plan.sqlite has 2 trials of this plan (2 have ended); go on with --resume" in " ".join(
        done.err.split()
    )

    plan.write_text(PLAN.replace('"Ada", "Bob"', '"Eve"'))
    done = run_command("trials", str(plan))
    assert "plan.sqlite has 2 trials of this plan (0 have ended)" in " ".join(done.err.split())
    plan.write_text(PLAN)

    done = run_command("trials", str(plan), "--resume", "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert [trial["attempts"] for trial in json.loads(done.out)["trials"]] == [1, 1]
    assert (
        run_command("trials", str(plan), "--dry-run").out
        == "0 trials would run, 4 at a time. 2 of 2 have ended.\n"
    )


def test_a_forecast_knows_what_the_dearest_trial_has_cost(plan: Path) -> None:
    def forecast(more: str) -> list[str]:
        plan.write_text(f"{PLAN}repeat = 5\n{more}")
        made = anyio.run(read_plan(plan).forecast)
        return str(replace(made, kept=4, ended=4, spent=Spent(cost=0.4), dearest=0.2)).splitlines()

    unlimited = "They have no limit: set one, such as max_cost, in [budget]. At the dearest so far, they cost"
    assert forecast("") == [
        "6 trials would run, 4 at a time. 4 of 10 have ended.",
        f"{unlimited} 1.20 USD.",
    ]
    assert forecast("budget = {max_cost = 2}")[1:] == [
        "All of them together may use at most 2 USD (spent: 0.4).",
        (
            "Agents report what they use late, some at the end of a turn: a limit may be exceeded by what 4 "
            "trials had not reported, about 0.80 USD at the dearest so far. Each crash may add as much."
        ),
    ]


@pytest.mark.long
def test_errors_run_again_only_where_that_is_said(plan: Path) -> None:
    mended = plan.parent / "mended"
    plan.write_text(f"{PLAN}check = '{mended}'\n")
    assert run_command("trials", str(plan)).code == 1
    mended.write_text("#!/bin/sh\n", "utf-8")
    mended.chmod(0o755)
    assert run_command("trials", str(plan), "--resume").code == 1
    told = run_command("trials", str(plan), "--rerun-errors", "--dry-run").out
    assert told.startswith("2 trials would run, 4 at a time.\n"), told
    assert run_command("trials", str(plan), "--resume", "--rerun-errors").code == 0


def test_there_is_nothing_to_resume(plan: Path) -> None:
    done = run_command("trials", str(plan), "--resume")
    assert done.code == 2
    assert "there are no trials of this plan in" in done.err


FUNCTIONS = """
from dataclasses import dataclass
from thinkwell import think

@dataclass
class Greeting:
    text: str

def greet(given):
    return think(Greeting).text(f"Greet {given['name']} in {given['language']}")

def is_greeting(candidate):
    return isinstance(candidate.result["text"], str) and candidate.input["name"] == "Ada"

answer = 42
"""


@pytest.mark.long
def test_functions_and_inputs_are_in_files_beside_the_plan(plan: Path) -> None:
    folder = plan.parent
    (folder / "greetings.py").write_text(FUNCTIONS, "utf-8")
    (folder / "people.json").write_text(
        json.dumps(
            {"ada": {"name": "Ada", "language": "French"}, "bob": {"name": "Bob", "language": "Dutch"}}
        )
    )
    plan.write_text(
        'task = {function = "greetings:greet"}\ninputs = "people.json"\nagents = ["builtin"]\n'
        'check = {function = "greetings:is_greeting"}\nstore = "kept.db"\nrecordings = "runs"\n'
    )
    done = run_command("trials", str(plan), "--json")
    assert done.code == 0, done.err
    found = {trial["input"]: trial["status"] for trial in json.loads(done.out)["trials"]}
    assert found == {"ada": "passed", "bob": "failed"}
    assert (folder / "kept.db").exists()
    assert len(list((folder / "runs").iterdir())) == 2


@pytest.mark.long
def test_a_budget_that_is_used_up_can_be_raised(plan: Path) -> None:
    folder = plan.parent
    (folder / "shape.json").write_text('{"type": "integer"}')
    (folder / "names.txt").write_text("Ada\n\nBob\n")
    text = (
        'task = {text = "Count", schema = "shape.json", system = "Be brief."}\ninputs = "names.txt"\n'
        'agents = ["builtin"]\nlimit = 1\nbudget = {max_tool_calls = %d}\n'
    )
    plan.write_text(text % 1)
    done = run_command("trials", str(plan))
    assert done.code == 5, done.err
    done = run_command("trials", str(plan), "--dry-run")
    assert "All of them together may use at most 1 tool calls (spent: " in done.out
    plan.write_text(text % 100)
    assert run_command("trials", str(plan), "--resume").code == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PLAN + "repeet = 2", "plan.toml: 'repeet': there is no such key; do you mean repeat?"),
        (PLAN + "colour = 2", "'colour': there is no such key. Those are task, inputs, agents, repeat, "),
        (
            PLAN + "[workspace]\nrepo = 1",
            "workspace.'repo': there is no such key. Those are repository, ref, ",
        ),
        (PLAN + 'repeat = "two"', "repeat: expected a whole number, got a text"),
        (PLAN + "agents = 3", "plan.toml: Cannot overwrite a value"),
        (PLAN.replace('"Greet"', '{system = "Be brief."}') + "repeat = 0", "repeat=0: give a whole number"),
        (PLAN + "budget = {max_cost = -1}", "budget: Budget(max_cost=-1"),
        (PLAN + "budget = {}", "budget: Budget(): set a limit"),
        (PLAN + "check = {}", "check: give one of command, function and judge"),
        (PLAN + "check = {judge = 'builtin'}", "check: Judge(…, criteria): say what makes a good result"),
        (
            PLAN + "check = {function = 'nowhere'}",
            "check: 'nowhere' is no import path; write \"module:name\"",
        ),
        (PLAN + "check = {function = 'nowhere:f'}", "nowhere:f: the module nowhere cannot be imported here"),
        (
            PLAN + "check = {function = 'json:lods'}",
            "json:lods: there is no 'lods' in json; it has JSONDecoder, JSONDecodeError",
        ),
        (PLAN + "check = 'unclosed \"'", "check: Command("),
        (PLAN + "workspace = '.'", "it is no git repository; give a folder of one"),
        (PLAN + "workspace = 'gone'", "workspace: Worktree(…): there is no folder"),
        (PLAN + "workspace = '~nobody-here/api'", "no user of that name has a home here"),
        (
            PLAN + "workspace = {repository = 'https://h/r', dirty = 'copy'}",
            "are for a folder, not for a URL",
        ),
        (PLAN + "workspace = 'https://me:secret@h/r'", "me:***@h/r'): the password would be stored"),
        (PLAN + "store = 'postgresql://me:secret@h/db'", "store: a password does not belong in this file"),
        ('task = "a"\nagents = []\ninputs = [1]', "agents=[]: give one or more"),
        ('task = "a"\nagents = ["builtin"]\ninputs = []', "inputs: there are none"),
        ('task = "a"\nagents = ["builtin"]\ninputs = ["a", "a"]', "those at 0 and 1 have the same key"),
        ('task = "a"\nagents = ["builtin"]\ninputs = "gone.txt"', "inputs: "),
        ('task = "a"\nagents = ["builtin"]\ninputs = "bad.jsonl"', "inputs: "),
        ('task = "a"\nagents = ["builtin"]', "there is no inputs"),
        ('task = {output = "json"}\nagents = ["builtin"]\ninputs = [1]', "task: 'json' is no import path"),
        ('task = {output = "builtins:int", schema = "s"}\nagents = ["builtin"]\ninputs = [1]', "not both"),
        (
            'task = {function = "json:loads", text = "x"}\nagents = ["builtin"]\ninputs = [1]',
            "has no meaning",
        ),
        ("task = ", "plan.toml: Invalid value"),
    ],
)
def test_a_plan_that_cannot_be_used(plan: Path, text: str, why: str) -> None:
    (plan.parent / "bad.jsonl").write_text("{")
    plan.write_text(text, "utf-8")
    done = run_command("trials", str(plan), "--dry-run")
    assert done.code == 2
    assert why in " ".join(done.err.split())
    assert "secret" not in done.err


def test_a_plan_for_a_repository_with_changes(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_git_settings(monkeypatch, tmp_path)
    repository = Repository.make(tmp_path / "api")
    repository.write({"app.py": "changed\n"})
    plan.write_text(f"{PLAN}workspace = {str(repository.path)!r}")
    done = run_command("trials", str(plan), "--dry-run")
    assert re.search(
        r"workspace: .*there are uncommitted changes \('app.py'\); .* with dirty=\"copy\"",
        " ".join(done.err.split()),
    )


def test_a_file_that_is_no_plan(tmp_path: Path) -> None:
    assert "No such file" in run_command("trials", str(tmp_path / "plan.toml")).err
    (tmp_path / "plan.toml").write_bytes(b"\xff")
    done = run_command("trials", str(tmp_path / "plan.toml"))
    assert "plan.toml: " in done.err
    assert done.code == 2


@ON_POSIX
def test_where_the_trials_are_kept(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "postgresql://me:secret@127.0.0.1:1/trials"
    done = run_command("trials", str(plan), "--db", secret)
    assert done.code == 2
    assert "all users of this machine can read a password on the command line" in done.err
    assert "secret" not in done.err

    address = plan.parent / "address"
    address.write_text(secret)
    done = run_command("trials", str(plan), "--db-file", str(address))
    assert "chmod 600" in done.err
    address.chmod(0o600)
    assert "not both" in run_command("trials", str(plan), "--db-file", str(address), "--db", "x").err
    for options in (("--db-file", str(address)), ()):
        done = run_command("trials", str(plan), *options, "--dry-run")
        assert done.code == 1
        assert "me:***@127.0.0.1:1/trials" in done.err
        assert "secret" not in done.err
        monkeypatch.setenv("THINKWELL_DB", secret)
    monkeypatch.delenv("THINKWELL_DB")
    plan.write_text(PLAN + 'store = "postgresql://me@127.0.0.1:1/trials"')
    assert (
        "me@127.0.0.1:1/trials: it could not be opened" in run_command("trials", str(plan), "--dry-run").err
    )
    other = plan.parent / "other.sqlite"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE songs (name TEXT)")
    file.close()
    done = run_command("trials", str(plan), "--db", str(other), "--dry-run")
    assert (done.code, "another program's database" in done.err) == (1, True)


def test_an_agent_that_is_unknown(plan: Path) -> None:
    plan.write_text(PLAN.replace("builtin", "cloude"))
    done = run_command("trials", str(plan), "--dry-run")
    assert (done.code, "did you mean 'claude'" in done.err) == (3, True)
