"""What has changed in a worktree: the patch, and what can be done with it."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from trials.repositories import ON_POSIX, Repository, files_of, left_of_worktrees

from thinkwell.trials import Changes, ChangesConflict, ChangeStat, DirtyTree, Worktree, WorktreeError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


def work(folder: Path) -> None:
    """Do what agents do to files, and commit some of it."""
    agent = Repository(folder)
    agent.write(
        {"app.py": "one\n2\nthree\n", "docs/more/ü\n.md": "new\n", "empty": "", "sum.log": "ignored\n"}
    )
    (folder / "run.sh").chmod(0o755)
    agent.commit("half of it")
    (folder / "old.txt").unlink()
    (folder / "docs" / "guide.md").rename(folder / "GUIDE.md")
    agent.write(
        {"logo.png": bytes(300), ":(latin).txt": "caf\xe9\n".encode("latin-1"), "crlf.txt": "a\r\nb\r\n"}
    )
    (folder / "link").symlink_to("app.py")


def after_work(repository: Repository, folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the files after the same work, done in a clone."""
    repository.git("clone", "--quiet", str(repository.path), str(folder))
    work(folder)
    (folder / "sum.log").unlink()
    return files_of(folder)


async def changes_of(repository: Repository, files: dict[str, str], untracked: bool = False) -> Changes:
    tree = Worktree(repository.path, dirty="copy", untracked=untracked)
    async with tree as folder:
        Repository(folder.path).write(files)
    return tree.changes


@ON_POSIX
async def test_all_that_an_agent_did_can_be_applied(repository: Repository, tmp_path: Path) -> None:
    tree = Worktree(repository.path)
    async with tree as folder:
        work(folder.path)
        inside = folder.changes
    changes: Changes = pickle.loads(pickle.dumps(tree.changes))
    assert changes == inside
    assert changes
    assert changes.stat == ChangeStat(files=11, insertions=7, deletions=3)
    assert "-two\n+2\n" in changes.diff
    assert "sum.log" not in changes.diff

    expected = after_work(repository, tmp_path / "expected")
    commit = repository.git("rev-parse", "HEAD")
    changes.apply()
    assert files_of(repository.path) == expected
    assert repository.git("rev-parse", "HEAD") == commit
    assert repository.git("diff", "--cached") == ""
    assert not left_of_worktrees(repository)

    changes.save(tmp_path / "patch")
    other = Repository(tmp_path / "other")
    repository.git("clone", "--quiet", str(repository.path), str(other.path))
    other.git("apply", str(tmp_path / "patch"))
    assert files_of(other.path) == expected


@ON_POSIX
async def test_changes_become_a_branch(repository: Repository, tmp_path: Path) -> None:
    tree = Worktree(repository.path)
    async with tree as folder:
        work(folder.path)
    before = repository.state()
    commit = tree.changes.branch("agent/1", message="What it did\n\nIn full.")
    after = repository.state()
    assert after[1:] == before[1:]
    assert repository.git("log", "--format=%H %an %s", "agent/1") == (
        f"{commit} Ada What it did\n{repository.git('rev-parse', 'HEAD')} Ada first"
    )
    expected = after_work(repository, tmp_path / "expected")
    repository.git("checkout", "-q", "agent/1")
    assert files_of(repository.path) == expected

    with pytest.raises(WorktreeError, match="there is a branch 'agent/1' already; choose another name"):
        tree.changes.branch("agent/1")
    with pytest.raises(WorktreeError, match="'-x' cannot be a branch"):
        tree.changes.branch("-x")


async def test_a_branch_of_changes_to_a_dirty_tree(repository: Repository) -> None:
    repository.write({"app.py": "mine\n", "mine.txt": "mine\n"})
    changes = await changes_of(repository, {"docs/guide.md": "theirs\n"}, untracked=True)
    assert "mine" not in changes.diff
    changes.branch("both")
    log = repository.git("log", "--format=%s", "--name-only", "-2", "both")
    uncommitted = "Changes that were not committed\n\napp.py\nmine.txt"
    assert log == f"Changes of an agent\n\ndocs/guide.md\n{uncommitted}"
    changes.apply()
    assert (repository.path / "docs" / "guide.md").read_text() == "theirs\n"
    assert (repository.path / "app.py").read_text() == "mine\n"


async def test_no_changes(repository: Repository) -> None:
    changes = await changes_of(repository, {})
    assert not changes
    assert changes.stat == ChangeStat()
    changes.apply()
    assert changes.branch("same") == repository.git("rev-parse", "main")


async def test_changes_that_do_not_fit_change_nothing(repository: Repository) -> None:
    changes = await changes_of(
        repository, {"app.py": "theirs\n", "docs/guide.md": "theirs\n", "new": "theirs\n"}
    )
    repository.write({"app.py": "mine\n", "new": "mine\n"})
    before, files = repository.state(), files_of(repository.path)
    with pytest.raises(ChangesConflict, match=r"do not fit what is there now \('app.py', 'new'\)") as failure:
        changes.apply()
    assert failure.value.files == ("app.py", "new")
    assert "error: patch failed: app.py:1" in failure.value.detail
    assert (repository.state(), files_of(repository.path)) == (before, files)


async def test_changes_that_the_disk_has_no_room_for_change_nothing(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    repository = Repository.make(small_disk / "api")
    repository.write({"app.py": "one\nmine\nthree\n"})
    changed = {"a/large": "large\n" * 200_000, "app.py": "one\nmine\n3\n", "old.txt/is a folder": "now\n"}
    tree = Worktree(repository.path, dirty="copy")
    async with tree as folder:
        (folder.path / "old.txt").unlink()
        Repository(folder.path).write(changed)
    filler = small_disk / "filler"
    before = files_of(repository.path)
    for spare, why in ((500_000, "git could not write"), (0, ".*No space left")):
        filler.unlink(missing_ok=True)
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - spare))
        with pytest.raises(WorktreeError, match=f"nothing was changed: {why}.*; if the disk is full, make"):
            tree.changes.apply()
        assert files_of(repository.path) == before
    assert not left_of_worktrees(repository)
    assert not (repository.path / "a").exists()
    filler.unlink()
    tree.changes.apply()
    assert {name: (repository.path / name).read_text() for name in changed} == changed


KILLING = """
import os, pathlib, pickle, signal, sys
text = sys.stdin.read()
if "second" in text:
    pickle.loads(pathlib.Path({first!r}).read_bytes()).apply()
    pathlib.Path({seen!r}).write_text(str(len([*pathlib.Path({git!r}).glob("thinkwell-*")])))
    os.kill(int(os.environ["VICTIM"]), signal.{how})
print(text, end="")
"""


@ON_POSIX
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
async def test_an_apply_that_a_signal_ends(
    repository: Repository, settings: Path, tmp_path: Path, how: str
) -> None:
    repository.write({".gitattributes": "*.md filter=kill\n"})
    repository.commit("a filter that kills who applies")
    first = await changes_of(repository, {"app.py": "first\n"})
    second = await changes_of(repository, {"docs/guide.md": "second\n"})
    for name, changes in (("first", first), ("second", second)):
        (tmp_path / name).write_bytes(pickle.dumps(changes))
    git, seen = repository.path / ".git", tmp_path / "seen"
    (tmp_path / "kill.py").write_text(
        KILLING.format(first=str(tmp_path / "first"), seen=str(seen), git=str(git), how=how)
    )
    plain = settings.read_text()
    settings.write_text(
        f'{plain}[filter "kill"]\n clean = cat\n smudge = {sys.executable} {tmp_path / "kill.py"}\n'
    )
    code = "import os, pickle, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "os.environ['VICTIM'] = str(os.getpid()); pickle.load(sys.stdin.buffer).apply()"
    env = os.environ | {"TMPDIR": str(tmp_path)}
    with (tmp_path / "second").open("rb") as given:
        subprocess.run([sys.executable, "-c", code], stdin=given, env=env, check=False)
    assert seen.read_text() == "1"  # the other apply, while it lived, has left it alone
    if how == "SIGINT":
        assert (repository.path / "docs" / "guide.md").read_text() == "# Guide\n"
        assert not left_of_worktrees(repository)
        return
    with anyio.fail_after(30):
        while (repository.path / "docs" / "guide.md").read_text() != "second\n":  # noqa: ASYNC110 - git's
            await anyio.sleep(0.01)
    assert [*git.glob("thinkwell-*")]
    settings.write_text(plain)
    third = await changes_of(repository, {"run.sh": "third\n"})
    third.apply()
    assert not left_of_worktrees(repository)


async def test_changes_of_a_repository_that_is_elsewhere(repository: Repository, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    shutil.move(repository.path / ".git", small_disk / "git")
    repository.write({".git": f"gitdir: {small_disk / 'git'}\n"})
    changes = await changes_of(repository, {"app.py": "theirs\n"})
    changes.apply()
    assert (repository.path / "app.py").read_text() == "theirs\n"


async def test_where_changes_cannot_go(repository: Repository, settings: Path, tmp_path: Path) -> None:
    changes = await changes_of(repository, {"app.py": "theirs\n"})
    settings.write_text("[user]\n useConfigOnly = true\n")
    with pytest.raises(WorktreeError, match=r"git does not know who commits; set user\.name"):
        changes.branch("anonymous")
    with pytest.raises(FileNotFoundError):
        changes.save(tmp_path / "missing" / "patch")
    repository.path.rename(tmp_path / "moved")
    with pytest.raises(WorktreeError, match=r"it is no folder of this machine; .* changes\.save"):
        changes.apply()


async def test_a_filter_that_fails(repository: Repository, settings: Path) -> None:
    repository.write({".gitattributes": "*.md filter=late\n"})
    repository.commit("a filter that is not there yet")
    changes = await changes_of(repository, {"docs/guide.md": "theirs\n"})
    with settings.open("a") as file:
        file.write('[filter "late"]\n clean = cat\n smudge = false\n required\n')
    with pytest.raises(
        WorktreeError, match=r"`git .* apply .*` failed with exit code \d+; see what git says"
    ):
        changes.apply()


async def test_line_ends_are_those_of_the_repository(repository: Repository) -> None:
    repository.git("config", "core.autocrlf", "true")
    (repository.path / "app.py").unlink()
    repository.git("checkout", "app.py")
    assert b"one\r\n" in (repository.path / "app.py").read_bytes()
    changes = await changes_of(repository, {"app.py": "one\r\n2\r\nthree\r\n"})
    assert changes.stat == ChangeStat(files=1, insertions=1, deletions=1)
    changes.apply()
    assert (repository.path / "app.py").read_bytes() == b"one\r\n2\r\nthree\r\n"


async def test_ignored_by_the_user_alone(repository: Repository) -> None:
    repository.write({".git/info/exclude": "*.tmp\n"})
    assert not await changes_of(repository, {"a.tmp": ""})


async def test_large_files_of_lfs_stay_pointers_without_it(repository: Repository) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    repository.write({".gitattributes": "*.iso filter=lfs diff=lfs merge=lfs -text\n", "disk.iso": pointer})
    repository.commit("a pointer")
    async with Worktree(repository.path) as folder:
        assert (folder.path / "disk.iso").read_text() == pointer
        assert not folder.changes


# Submodules, and other repositories inside


@pytest.fixture
def with_submodules(repository: Repository, tmp_path: Path) -> Repository:
    """A repository with a submodule, that has one itself; both are checked out."""
    deep = Repository.make(tmp_path / "deep", {"d.txt": "deep\n"})
    library = Repository.make(tmp_path / "library", {"l.txt": "library\n"})
    library.submodule("in/deep", deep)
    repository.submodule("library", library)
    repository.git("submodule", "--quiet", "update", "--init", "--recursive")
    return repository


@ON_POSIX
async def test_submodules_are_there_and_their_changes_too(with_submodules: Repository) -> None:
    repository, tree = with_submodules, Worktree(with_submodules.path)
    library, deep = Repository(repository.path / "library"), Repository(repository.path / "library/in/deep")
    files = files_of(repository.path)
    async with tree as folder:
        assert files_of(folder.path) == files
        assert Repository(folder.path).git("status", "--porcelain") == ""
        work(folder.path)
        agent = Repository(folder.path / "library")
        agent.write({"l.txt": "better\n"})
        agent.commit("better")
        Repository(folder.path / "library/in/deep").write({"more.txt": "new\n"})
    changes = tree.changes
    assert changes.stat.files == 13
    assert "+++ b/library/in/deep/more.txt" in changes.diff

    changes.branch("all")
    assert repository.git("rev-parse", "all:library") == library.git("rev-parse", "all")
    assert library.git("rev-parse", "all:in/deep") == deep.git("rev-parse", "all")
    assert library.git("show", "all:l.txt") == "better"
    assert deep.git("show", "all:more.txt") == "new"

    changes.apply()
    assert (library.path / "l.txt").read_text() == "better\n"
    assert (deep.path / "more.txt").read_text() == "new\n"
    assert not left_of_worktrees(repository, library, deep)


async def test_a_submodule_that_has_changed(with_submodules: Repository) -> None:
    library = Repository(with_submodules.path / "library")
    library.write({"l.txt": "dirty\n"})
    with pytest.raises(DirtyTree, match="library: there are uncommitted changes"):
        async with Worktree(with_submodules.path):
            pytest.fail("it is dirty")
    async with Worktree(with_submodules.path, dirty="copy") as folder:
        assert (folder.path / "library" / "l.txt").read_text() == "dirty\n"
        assert not folder.changes
    library.commit("another commit than that of the repository")
    with pytest.raises(DirtyTree, match="'library'"):
        async with Worktree(with_submodules.path):
            pytest.fail("it is dirty")
    async with Worktree(with_submodules.path, ref="HEAD") as folder:
        assert (folder.path / "library" / "l.txt").read_text() == "library\n"
        assert folder.changes.branch("same") == with_submodules.git("rev-parse", "HEAD")
    assert not left_of_worktrees(with_submodules, library)


async def test_a_submodule_that_is_not_checked_out_stays_empty(with_submodules: Repository) -> None:
    with_submodules.git("submodule", "--quiet", "deinit", "--all", "--force")
    async with Worktree(with_submodules.path) as folder:
        assert not list((folder.path / "library").iterdir())
        assert not folder.changes


async def test_a_worktree_of_a_submodule(with_submodules: Repository) -> None:
    library = Repository(with_submodules.path / "library")
    async with Worktree(library.path) as folder:
        assert files_of(folder.path) == files_of(library.path)
        (folder.path / "l.txt").write_text("better\n")
        changes = folder.changes
    changes.apply()
    assert library.git("status", "--porcelain") == " M l.txt"


async def test_repositories_that_an_agent_makes_are_left_out(with_submodules: Repository) -> None:
    async with Worktree(with_submodules.path) as folder:
        agent = Repository(folder.path)
        agent.git("init", "--quiet", "no-commit")
        agent.git("clone", "--quiet", str(with_submodules.path / "library"), "library/cloned")
        agent.write({"library/own.txt": ""})
        changes = folder.changes
    assert changes.left_out == ("no-commit/", "library/cloned/")
    assert changes.stat.files == 1


async def test_a_submodule_that_is_gone(with_submodules: Repository) -> None:
    async with Worktree(with_submodules.path) as folder:
        (folder.path / "library" / "l.txt").write_text("better\n")
        changes = folder.changes
    shutil.rmtree(with_submodules.path / "library")
    with pytest.raises(WorktreeError, match="git could not be started there"):
        changes.branch("better")


async def test_a_submodule_that_an_agent_removes(with_submodules: Repository) -> None:
    async with Worktree(with_submodules.path) as folder:
        Repository(folder.path).git("rm", "--quiet", "-f", "library")
        changes = folder.changes
    changes.apply()
    assert not (with_submodules.path / "library" / "l.txt").exists()
