"""The pages about trials: the plan that they show is run, and their tables have every key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from docs.pages import DOCS, files
from trials.repositories import Repository, use_git_settings

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "howto" / "trial-plans.md"
TEXT = PAGE.read_text("utf-8")


def keys(heading: str) -> set[str]:
    """Return the keys in the first column of a table."""
    rows = TEXT.partition(heading)[2].partition("\n\n")[0]
    first = re.findall(r"^\| (`.*?`) \|", rows, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", " ".join(first)))


@pytest.mark.parametrize(
    ("heading", "section"),
    [("| Key | |", ""), ("| Key of `[task]` | |", "task"), ("| Key of `[workspace]` | |", "workspace")],
)
def test_the_tables_have_every_key_and_no_other(tmp_path: Path, heading: str, section: str) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(
        'agents = []\ninputs = []\ntask = ""\n' if section != "task" else "agents = []\ninputs = []\n"
    )
    with file.open("a") as opened:
        opened.write(f"[{section}]\nqqqqqqqq = 1\n" if section else "qqqqqqqq = 1\n")
    told = run_command("trials", str(file)).err
    found = re.search(r"'qqqqqqqq': there is no such key. Those are (.*)$", told, re.MULTILINE)
    assert found is not None, told
    assert keys(heading) == set(found[1].split(", "))


def test_the_plan_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_git_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Repository.make(tmp_path / "api")
    (tmp_path / "plan.toml").write_text(files(PAGE)["plan.toml"], "utf-8")
    done = run_command("trials", str(tmp_path / "plan.toml"), "--dry-run")
    assert done.code == 0, done.err
    assert done.out in TEXT
