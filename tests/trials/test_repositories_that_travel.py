"""Repositories that travel: to a worker of another machine, and the changes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trials.repositories import Repository as Git
from trials.repositories import files_of, left_of_worktrees

from thinkwell.trials import Repository, Worktree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the repositories that were fetched."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "thinkwell" / "repositories"


async def test_a_worktree_travels_with_its_submodule_and_what_is_not_committed(
    repository: Git, tmp_path: Path
) -> None:
    inner = repository.submodule("lib", Git.make(tmp_path / "lib", {"lib.py": "lib\n"}))
    repository.write({"app.py": "one\ntwo, too\nthree\n", "new.txt": "new\n", "kept.log": "log\n"})
    inner.write({"lib.py": "lib, too\n"})
    before = repository.state()
    there = Repository(Worktree(repository.path, dirty="copy", untracked=True, ignored=True))
    async with there as tree:
        assert files_of(tree.path) == files_of(repository.path)
        assert tree.path.name == "api"
        (tree.path / "app.py").write_text("better\n")
        (tree.path / "lib" / "more.py").write_text("more\n")
    assert repository.state() == before
    assert not left_of_worktrees(repository)
    assert there.changes.repository == str(repository.path)
    assert there.changes.branch("better")
    assert inner.git("show", "better:more.py") == "more"
    assert repository.git("show", "better:new.txt") == "new"
    there.changes.apply()
    assert files_of(repository.path)["app.py"][1] == b"better\n"
    assert files_of(repository.path)["lib/more.py"][1] == b"more\n"
