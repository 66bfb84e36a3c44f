"""Trials with agents that this project did not write: known by name, in a worker, several at a time."""

from __future__ import annotations

import os
import re
import tempfile
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from trials.repositories import Repository, left_of_worktrees, use_git_settings

from interop.agents import CLAUDE_DIRECT, CODEX, OPENCODE, VENDOR_PREFIXES
from interop.live import NPM, TIMEOUT, fetch_for_npx, nothing_runs, shell
from interop.model_server import Ask, CallTool, ModelServer, Say, Step
from thinkwell import think
from thinkwell.trials import ChangeStat, Command, Worktree, trials

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

TRIED = (CLAUDE_DIRECT, CODEX, OPENCODE)

WORDS = {"first": "alpha", "second": "beta"}


def choose(ask: Ask) -> Step:
    """Edit two files, return a result, end the turn; which of them is next, the conversation tells."""
    if "The result was accepted" in ask.raw:
        return Say("Done.")
    if "edited-2" in ask.raw:
        return CallTool("return_result", {"result": 7})
    word = re.findall(r"Add the word (\w+)", ask.raw)[-1]
    recipe = next(recipe for recipe in TRIED if recipe.shell in {tool.name for tool in ask.tools})
    return shell(recipe, f"echo {word} | tee -a app.py lib/lib.py; echo edited-$((1 + 1))")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """The model of all agents. The environment leads to it: a worker and its agents inherit that."""
    for name in [name for name in os.environ if name.startswith(VENDOR_PREFIXES)]:
        monkeypatch.delenv(name)
    for recipe in TRIED:
        fetch_for_npx(recipe)
    use_git_settings(monkeypatch, tmp_path)
    home = tmp_path / "home"
    # Short, since agents put sockets there.
    with (
        ModelServer(choose=choose) as server,
        tempfile.TemporaryDirectory(prefix="agents-", ignore_cleanup_errors=True) as temporary,
    ):
        monkeypatch.setattr(tempfile, "tempdir", temporary)
        for recipe in TRIED:
            env = recipe.settle(home, server.url)
            for name, value in {**env, **NPM, "TMPDIR": temporary}.items():
                monkeypatch.setenv(name, value)
        yield server
        anyio.run(nothing_runs, home)


@pytest.fixture
def repository(models: ModelServer, tmp_path: Path) -> Repository:
    """A repository with a submodule, another worktree, and changes that are not committed."""
    made = Repository.make(tmp_path / "api")
    inner = made.submodule("lib", Repository.make(tmp_path / "lib", {"lib.py": "lib\n"}))
    made.git("worktree", "add", "--quiet", "-b", "mine", str(tmp_path / "mine"))
    made.write({"app.py": "staged\n", "docs/new.md": "staged\n"})
    made.git("add", "app.py", "docs/new.md")
    made.write({"docs/guide.md": "not staged\n", "free.txt": "untracked\n", "all.log": "ignored\n"})
    (made.path / "old.txt").unlink()
    inner.write({"lib.py": "not staged\n"})
    return made


def contents(folder: Path) -> dict[Path, bytes]:
    """Return all that is in a folder, with git's own; only opencode keeps an id there, by itself."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "opencode")
    return {path: path.read_bytes() for path in files}


async def test_each_agent_edits_files_in_worktrees_and_the_users_own_stay(
    models: ModelServer, repository: Repository, tmp_path: Path
) -> None:
    before = contents(repository.path)
    run = partial(
        trials,
        think(int).text("Add the word "),
        inputs=WORDS,
        agents=[recipe.profile for recipe in TRIED],
        repeat=2,
        workspace=Worktree(repository.path, dirty="copy", untracked=True),
        check=Command("grep -qxE 'alpha|beta' lib/lib.py"),
        store=tmp_path / "trials.sqlite",
    )
    with anyio.fail_after(5 * TIMEOUT):
        # One of each first: two of codex that make its database at the same time fail.
        await run(inputs={"first": WORDS["first"]}, repeat=1)
        report = await run()
    assert [(each.agent, each.status, each.error, each.detail) for each in report.trials] == [
        (recipe.profile, "passed", None, "") for _ in range(4) for recipe in TRIED
    ]
    for each in report.trials:
        word = WORDS[each.input]
        assert each.changes.stat == ChangeStat(files=2, insertions=2), each.agent
        assert re.findall(r"^[+-]\w.*", each.changes.diff, re.MULTILINE) == [f"+{word}"] * 2
        assert (each.result, each.attempts) == (7, 1)
    assert contents(repository.path) == before
    assert [path.name for path in left_of_worktrees(repository, Repository(repository.path / "lib"))] == [
        "mine"
    ]
    asked = len(models.requests)
    assert (await run()).trials == report.trials
    assert len(models.requests) == asked
    report.best("second").changes.apply()
    assert (repository.path / "lib" / "lib.py").read_text() == "not staged\nbeta\n"
