"""What agents write runs nothing and removes nothing, and what dead processes have left is removed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from trials.repositories import ON_POSIX, Repository, executable, files_of, left_of_worktrees

from thinkwell.trials import Worktree, WorktreeError

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.anyio

LEAVING = Path(__file__).with_name("leaving.py")


# What an agent writes


@pytest.fixture
def trap(tmp_path: Path) -> Generator[Path]:
    """A program that must not be run."""
    sprung = tmp_path / "sprung"
    yield executable(tmp_path / "trap", f"import sys\nopen({str(sprung)!r}, 'a').write(repr(sys.argv))\n")
    assert not sprung.exists(), sprung.read_text()


def set_traps(agent: Repository, trap: Path) -> None:
    """Have git run a program wherever it can, by the configuration that it shares with its repository."""
    hooks = agent.path / agent.git("rev-parse", "--git-common-dir") / "hooks"
    for name in ("post-checkout", "post-index-change", "reference-transaction", "post-commit", "pre-commit"):
        executable(hooks / name, trap.read_text().split("\n", 1)[1])
    settings = {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(trap),
        "core.pager": str(trap),
        "core.editor": str(trap),
        "core.sshCommand": str(trap),
        "diff.external": str(trap),
        "diff.evil.command": str(trap),
        "diff.evil.textconv": str(trap),
        "filter.evil.clean": str(trap),
        "filter.evil.smudge": str(trap),
        "filter.evil.process": str(trap),
        "merge.evil.driver": str(trap),
        "gpg.program": str(trap),
        "commit.gpgSign": "true",
        "alias.apply": f"!{trap}",
        "core.attributesFile": str(agent.path / "attributes"),
    }
    for name, value in settings.items():
        agent.git("config", name, value)
    agent.write({".gitattributes": "* filter=evil diff=evil merge=evil\n", "attributes": "* filter=evil\n"})


async def test_nothing_that_an_agent_configures_is_run(repository: Repository, trap: Path) -> None:
    tree = Worktree(repository.path)
    async with tree as folder:
        agent = Repository(folder.path)
        agent.write({"app.py": "changed\n"})
        set_traps(agent, trap)
    assert "+changed\n" in tree.changes.diff
    tree.changes.branch("agent")
    tree.changes.apply()
    assert (repository.path / "app.py").read_text() == "changed\n"
    async with Worktree(repository.path, dirty="copy", untracked=True) as folder:
        assert (folder.path / "attributes").exists()
    async with Worktree(repository.path, ref="agent") as folder:
        assert (folder.path / "app.py").read_text() == "changed\n"
    assert not left_of_worktrees(repository)


async def test_nothing_that_an_agent_configures_in_a_submodule_is_run(
    repository: Repository, trap: Path, tmp_path: Path
) -> None:
    library = repository.submodule("library", Repository.make(tmp_path / "library", {"l.txt": "library\n"}))
    tree = Worktree(repository.path)
    async with tree as folder:
        agent = Repository(folder.path / "library")
        agent.write({"l.txt": "changed\n"})
        set_traps(agent, trap)
        Repository(folder.path).git("init", "--quiet", "own")
        Repository(folder.path / "own").git("config", "core.fsmonitor", str(trap))
    tree.changes.branch("agent")
    tree.changes.apply()
    assert (library.path / "l.txt").read_text() == "changed\n"
    async with Worktree(repository.path, dirty="copy"):
        pass
    assert not left_of_worktrees(repository, library)


async def test_nothing_is_fetched_by_what_an_agent_configures(repository: Repository, trap: Path) -> None:
    tree = Worktree(repository.path)
    async with tree as folder:
        agent = Repository(folder.path)
        agent.write({"app.py": "changed\n"})
        for name, value in (("url", f"ext::{trap}"), ("promisor", "true")):
            agent.git("config", f"remote.evil.{name}", value)
        agent.git("config", "protocol.ext.allow", "always")
    content = repository.git("rev-parse", "HEAD:app.py")
    (repository.path / ".git" / "objects" / content[:2] / content[2:]).unlink()
    with pytest.raises(WorktreeError, match="transport 'ext' not allowed"):
        tree.changes.branch("agent")


async def test_hooks_of_the_repository_are_not_run(repository: Repository, trap: Path) -> None:
    executable(repository.path / ".git" / "hooks" / "post-checkout", trap.read_text().split("\n", 1)[1])
    async with Worktree(repository.path) as folder:
        assert files_of(folder.path) == files_of(repository.path)


@ON_POSIX
async def test_filters_of_the_user_are_run(repository: Repository, settings: Path, tmp_path: Path) -> None:
    upper = executable(tmp_path / "upper", "import sys\nprint(sys.stdin.read().upper(), end='')\n")
    lower = executable(tmp_path / "lower", "import sys\nprint(sys.stdin.read().lower(), end='')\n")
    with settings.open("a") as file:
        file.write(f'[filter "shout"]\n smudge = {upper}\n clean = {lower}\n')
    repository.write({".gitattributes": "*.md filter=shout\n"})
    repository.commit("a filter")
    tree = Worktree(repository.path)
    async with tree as folder:
        assert (folder.path / "docs" / "guide.md").read_text() == "# GUIDE\n"
        assert not folder.changes
        (folder.path / "docs" / "guide.md").write_text("# BETTER\n")
    assert "+# better\n" in tree.changes.diff
    (repository.path / "docs" / "guide.md").unlink()
    repository.git("checkout", "docs")
    tree.changes.apply()
    assert (repository.path / "docs" / "guide.md").read_text() == "# BETTER\n"


async def test_variables_of_git_lead_nowhere_else(
    repository: Repository, settings: Path, monkeypatch: pytest.MonkeyPatch, trap: Path, tmp_path: Path
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "missing"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap))
    with settings.open("a") as file:
        file.write(f"[diff]\n external = {trap}\n")
    async with Worktree(repository.path) as folder:
        (folder.path / "new").touch()
        assert folder.changes.stat.files == 1


@pytest.mark.parametrize("how", ["another repository", "no file", "a folder"])
async def test_the_file_that_says_where_the_repository_is(
    repository: Repository, tmp_path: Path, how: str
) -> None:
    other = Repository.make(tmp_path / "other", {"secret": "s\n"})
    before = other.state(), files_of(other.path)
    tree = Worktree(repository.path)
    async with tree as folder:
        (folder.path / ".git").unlink()
        if how == "another repository":
            (folder.path / ".git").write_text(f"gitdir: {other.path}/.git\n")
        if how == "a folder":
            Repository(folder.path).git("init", "--quiet")
        (folder.path / "new").touch()
    assert tree.changes.stat.files == 1
    assert (other.state(), files_of(other.path)) == before
    assert not left_of_worktrees(repository)


async def test_a_tree_that_is_gone(repository: Repository) -> None:
    tree = Worktree(repository.path)
    async with tree as folder:
        folder.path.rename(folder.path.with_name("elsewhere"))
    assert tree.changes.stat.files == len(files_of(repository.path))
    assert not left_of_worktrees(repository)


@ON_POSIX
async def test_a_link_in_the_place_of_a_folder(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "guide.md").write_text("secret\n")
    tree = Worktree(repository.path)
    async with tree as folder:
        (folder.path / "docs" / "guide.md").unlink()
        (folder.path / "docs").rmdir()
        (folder.path / "docs").symlink_to(tmp_path / "secrets")
    assert "secret\n" not in tree.changes.diff
    assert (tmp_path / "secrets" / "guide.md").exists()
    tree.changes.apply()
    assert (repository.path / "docs").is_symlink()


@ON_POSIX
async def test_changes_that_cannot_be_read_are_not_thrown_away(repository: Repository) -> None:
    tree = Worktree(repository.path)

    async def work() -> None:
        async with tree as folder:
            (folder.path / "app.py").unlink()
            os.mkfifo(folder.path / "app.py")
            (folder.path / "work").touch()

    with pytest.raises(
        WorktreeError, match=r"could not be read, so the worktree stays in .*; save"
    ) as failure:
        await work()
    folder = Path(failure.value.reason.split("stays in ")[1].split(";")[0])
    assert "app.py" in failure.value.detail
    assert (folder / "work").exists()
    with pytest.raises(WorktreeError, match="could not be read"):
        _ = tree.changes
    async with Worktree(repository.path):
        assert (folder / "work").exists()
    repository.git("worktree", "remove", "--force", str(folder))
    folder.parent.rmdir()
    assert not left_of_worktrees(repository)


# What the dead have left


@contextmanager
def leaving(repository: Repository) -> Generator[subprocess.Popen[str]]:
    """Run a program that has a worktree, and kill it at the end."""
    command = [sys.executable, str(LEAVING), str(repository.path)]
    env = os.environ | {"TMPDIR": tempfile.gettempdir()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


async def test_the_worktrees_of_dead_processes_are_removed(repository: Repository) -> None:
    repository.git("worktree", "add", "--quiet", "--detach", str(Path(tempfile.gettempdir(), "mine")))
    with leaving(repository), leaving(repository) as dying:
        dying.kill()
        dying.wait()
        assert len(left_of_worktrees(repository)) == 7  # 2 folders, 2 marks, 3 worktrees
        async with Worktree(repository.path):
            assert len(left_of_worktrees(repository)) == 7
        assert len(left_of_worktrees(repository)) == 4
    async with Worktree(repository.path):
        pass
    assert [path.name for path in left_of_worktrees(repository)] == ["mine"]


async def test_a_mark_removes_no_folder_of_another_name(repository: Repository, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    git_folder = repository.path / ".git"
    for name in ("thinkwell-0123456789abcdef", "thinkwell-notes"):
        (git_folder / name).mkdir()
        (git_folder / name / "lock").write_text(str(precious))
    (git_folder / "thinkwell-file").touch()
    old = time.time() - 3600
    os.utime(git_folder / "thinkwell-0123456789abcdef", (old, old))
    (git_folder / "thinkwell-fedcba9876543210").mkdir()  # another process is about to take its lock
    async with Worktree(repository.path):
        pass
    assert precious.exists()
    assert sorted(path.name for path in git_folder.glob("thinkwell-*")) == [
        "thinkwell-fedcba9876543210",
        "thinkwell-file",
        "thinkwell-notes",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="something is mounted in the tree")
async def test_what_cannot_be_removed_is_removed_later(
    repository: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    async with Worktree(repository.path) as folder:
        busy = folder.path / "busy"
        busy.mkdir()
        (folder.path / "link").symlink_to(repository.path)
        command = ["mount", "-t", "tmpfs", "tmpfs", str(busy)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("no file system can be mounted here")
    assert [record.levelno for record in caplog.records if record.name == "thinkwell"] == [logging.WARNING]
    assert "could not be removed; the next worktree of that repository tries it again" in caplog.text
    assert (repository.path / "app.py").exists()
    subprocess.run(["umount", busy], check=True)
    async with Worktree(repository.path):
        pass
    assert not left_of_worktrees(repository)
