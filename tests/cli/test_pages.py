"""The pages about the command: their examples run, and the reference has what the app has."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.described import PATHS, exit_codes, options_of
from cli.typing_in import home

__all__ = ("home",)

DOCS = Path(__file__).parents[2] / "docs"
HOWTO = DOCS / "howto" / "command.md"
REFERENCE = DOCS / "reference" / "command.md"

COMMIT = "git add . && git -c user.name=a -c user.email=a@b commit -qm x"
TWO_COMMITS = f"git init -q && {COMMIT} && echo >> report.py && {COMMIT}\n"

SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^## thinkwell ?(.*)$", re.MULTILINE)


def sections() -> dict[tuple[str, ...], str]:
    """The sections of the reference, by the command that they are about."""
    _, *parts = SECTION.split(REFERENCE.read_text("utf-8"))
    return {tuple(name.split()): text for name, text in zip(parts[::2], parts[1::2], strict=True)}


def test_the_reference_has_every_command() -> None:
    assert set(sections()) == set(PATHS)


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_the_reference_has_every_option_and_no_other(path: tuple[str, ...]) -> None:
    table = "\n".join(line for line in sections()[path].splitlines() if line.startswith("|"))
    told = set(re.findall(r"`(--?[a-z][a-z-]*)", "".join(row.split("|")[1] for row in table.splitlines())))
    assert told == options_of(*path)


@pytest.mark.parametrize("page", [HOWTO, REFERENCE], ids=lambda page: page.parent.name)
def test_the_pages_have_every_exit_code(page: Path) -> None:
    table = page.read_text("utf-8").partition("| Exit code |")[2].partition("\n\n")[0]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == exit_codes()


def examples() -> list[object]:
    text = HOWTO.read_text("utf-8")
    return [
        pytest.param(match[1], id=f"line {text.count(chr(10), 0, match.start()) + 1}")
        for match in SHELL.finditer(text)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX systems")
@pytest.mark.parametrize("code", examples())
def test_the_examples_run(code: str, home: Path, tmp_path: Path) -> None:
    """With the built-in agent, which answers to the name of claude here."""
    (home / "report.py").write_text("def report(): pass\n", "utf-8")
    (home / "src").mkdir()
    (home / "src" / "a.py").write_text("def f(): pass\n", "utf-8")
    (home / "pyproject.toml").write_text(
        "[tool.thinkwell.agents.claude.program]\n"
        f"command = {json.dumps([sys.executable, '-P', '-m', 'thinkwell.builtin'])}\n",
        "utf-8",
    )
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "thinkwell").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -W error -m thinkwell "$@"\n', "utf-8"
    )
    (tools / "thinkwell").chmod(0o755)
    ran = subprocess.run(
        ["bash", "-c", f"set -eu -o pipefail\n{TWO_COMMITS if 'git ' in code else ''}{code}"],
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.strip()
    assert "did not work" not in ran.stdout
