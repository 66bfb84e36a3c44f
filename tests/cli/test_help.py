"""What the help says, and what it costs."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from cli.command import run_command
from cli.described import PATHS, commands_of, exit_codes

from thinkwell import __version__


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_the_help_fits_a_terminal_of_80_columns(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    done = run_command(*path, "--help")
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    assert run_command(*path, "-h").out == done.out


@pytest.mark.parametrize(
    "path", [path for path in PATHS if len(path) == 1 and path != ("version",)], ids=" ".join
)
def test_the_help_of_each_command_has_examples(path: tuple[str, ...]) -> None:
    text = run_command(*path, "--help").out
    examples = re.findall(rf"^ +(?:.*\| )?thinkwell {path[0]}\b", text, re.MULTILINE)
    assert len(examples) > 1


def test_the_help_of_run_has_the_exit_codes() -> None:
    assert len(exit_codes()) == 9
    assert "6." in run_command("replay", "--help").out


def test_the_commands_stand_in_their_order() -> None:
    for path in PATHS:
        assert [(*path, name) for name in commands_of(path)] == [
            each for each in PATHS if len(each) == len(path) + 1 and each[: len(path)] == path
        ]
    bare, text = run_command(), run_command("--help").out
    assert text in (bare.out, bare.err)


def test_the_version() -> None:
    done = run_command("version")
    assert done.out.startswith(f"thinkwell {__version__} (")
    assert run_command("--version") == done


@pytest.mark.parametrize("arguments", [["shout"], ["run", "--nonsense"], ["replay"]])
def test_wrong_usage(arguments: list[str]) -> None:
    done = run_command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: thinkwell" in done.err


def test_the_help_loads_nothing_that_only_runs_need() -> None:
    code = (
        "import sys, json; sys.argv = ['thinkwell', '--help']\n"
        "import runpy\n"
        "try: runpy.run_module('thinkwell', run_name='__main__')\n"
        "except SystemExit as exc: assert exc.code == 0; print(json.dumps(list(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    loaded = set(json.loads(ran.stdout.splitlines()[-1]))
    only_for_runs = {"pydantic", "rich.console", "asyncio", "jsonschema", "thinkwell.progress"}
    assert loaded & {*only_for_runs, "thinkwell._names", "thinkwell.agents", "thinkwell_acp"} == set()
