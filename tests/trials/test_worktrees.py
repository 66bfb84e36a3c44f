"""Worktrees: what is in them, what they refuse, and that nothing is left of them."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from sync.playing import playing
from trials.repositories import ON_POSIX, Repository, executable, files_of, left_of_worktrees

from thinkwell import AgentNotFound, open_agent
from thinkwell.testing import ScriptedAgent, script
from thinkwell.trials import ChangesConflict, DirtyTree, Worktree, WorktreeError

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.anyio


async def test_an_agent_works_in_a_folder_of_its_own(repository: Repository) -> None:
    before, tree = repository.state(), Worktree(repository.path)
    played = ScriptedAgent(script.says("Done."))
    async with played.open(cwd=tree) as agent:
        assert await agent.think().text("Go.").run() == "Done."
        (folder,) = [Path(session.cwd) for session in played.sent.sessions]
        assert files_of(folder) == files_of(repository.path)
        assert Repository(folder).git("status", "--porcelain", "--branch") == "## HEAD (no branch)"
        (folder / "app.py").write_text("better\n")
    assert not folder.exists()
    assert (tree.changes.stat.files, tree.changes.stat.insertions, tree.changes.stat.deletions) == (1, 1, 3)
    assert repository.state() == before
    assert not left_of_worktrees(repository)


def test_the_blocking_api_opens_it_too(repository: Repository) -> None:
    tree = Worktree(repository.path)
    with playing(script.says("Done."), cwd=tree) as agent:
        assert agent.think().text("Go.").run() == "Done."
        assert not tree.changes
        with pytest.raises(RuntimeError, match="open already; make another"):
            playing(script.says("Done."), cwd=tree).start()
    assert not left_of_worktrees(repository)


async def test_an_agent_that_does_not_start_leaves_none(repository: Repository) -> None:
    tree = Worktree(repository.path)
    with pytest.raises(AgentNotFound):
        async with open_agent(command="no-such-agent", cwd=tree):
            pytest.fail("it is not there")
    assert not tree.changes
    assert not left_of_worktrees(repository)


async def test_only_open_agent_opens_it(repository: Repository) -> None:
    tree = Worktree(repository.path)
    with pytest.raises(RuntimeError, match="has no changes before it was opened"):
        _ = tree.changes
    async with ScriptedAgent(script.says("Done.")).open() as agent:
        with pytest.raises(TypeError, match=r"session\(cwd=…\): open Worktree\('.*'\) first"):
            agent.session(cwd=tree)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        async with tree as folder, agent.session(cwd=folder) as session:
            assert await session.think().text("Go.").run() == "Done."
    assert repr(folder) == f"<OpenWorktree {folder.path}>"
    async with tree as another:  # when it is left, it can be opened again
        assert another.path != folder.path


async def test_it_is_gone_after_an_exception_too(repository: Repository) -> None:
    tree = Worktree(repository.path)

    async def fail() -> None:
        async with tree as folder:
            (folder.path / "new.py").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert tree.changes.stat.files == 1
    assert not left_of_worktrees(repository)


# What is in it


def make_dirty(repository: Repository) -> None:
    repository.write({"app.py": "staged\n", "docs/new.md": "new\n", "logo.png": bytes(9)})
    repository.git("add", "app.py", "docs/new.md")
    repository.write({"app.py": "not staged\n", "free.txt": "untracked\n", "all.log": "ignored\n"})
    (repository.path / "old.txt").unlink()
    (repository.path / "run.sh").chmod(0o755)


async def test_changes_that_are_not_committed_are_taken_along(repository: Repository) -> None:
    make_dirty(repository)
    before, tree = repository.state(), Worktree(repository.path, dirty="copy")
    async with tree as folder:
        copied = Repository(folder.path)
        expected = files_of(repository.path)
        del expected["free.txt"], expected["all.log"]
        assert files_of(folder.path) == expected
        # What is staged is staged there, too.
        assert copied.git("diff", "--cached", "--raw") == repository.git("diff", "--cached", "--raw")
        assert copied.git("diff") == repository.git("diff")
        assert not folder.changes
    assert repository.state() == before


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, []),
        ({"untracked": True}, ["free.txt"]),
        ({"ignored": True}, ["all.log"]),
        ({"untracked": True, "ignored": True}, ["all.log", "free.txt"]),
    ],
    ids=str,
)
async def test_files_that_git_does_not_track_are_taken_along_by_choice(
    repository: Repository, options: dict[str, Any], names: list[str]
) -> None:
    repository.write({"free.txt": "untracked\n", "all.log": "ignored\n"})
    (repository.path / "elsewhere" / ".git").mkdir(parents=True)
    async with Worktree(repository.path, **options) as folder:
        assert sorted({"free.txt", "all.log"} & files_of(folder.path).keys()) == names
        assert not folder.changes


@pytest.mark.parametrize("how", ["not staged", "staged", "staged and undone", "deleted"])
async def test_a_dirty_tree_is_refused(repository: Repository, how: str) -> None:
    content = (repository.path / "app.py").read_text()
    repository.write({"app.py": "changed\n"})
    if how.startswith("staged"):
        repository.git("add", "app.py")
    if how.endswith("undone"):
        repository.write({"app.py": content})
    if how == "deleted":
        (repository.path / "app.py").unlink()
    with pytest.raises(DirtyTree, match=r"uncommitted changes \('app.py'\); commit or stash them") as failure:
        async with Worktree(repository.path):
            pytest.fail("it is dirty")
    assert failure.value.files == ("app.py",)
    assert not left_of_worktrees(repository)


async def test_a_change_in_the_moment_of_a_commit(repository: Repository, settings: Path) -> None:
    """The file has the size and the time that git knows. Only the time of the index tells it to look."""
    with settings.open("a") as file:
        file.write("[core]\n trustctime = false\n")
    app, index = repository.path / "app.py", repository.path / ".git" / "index"
    repository.git("status")
    time = app.stat().st_mtime_ns
    app.write_text("one\n2wo\nthree\n")
    for path in (app, index):
        os.utime(path, ns=(time, time))
    with pytest.raises(DirtyTree):
        async with Worktree(repository.path):
            pytest.fail("it is dirty")


async def test_a_file_whose_changes_git_was_told_not_to_see(repository: Repository) -> None:
    for option, name in (("--skip-worktree", "app.py"), ("--assume-unchanged", "old.txt")):
        repository.git("update-index", option, name)
        repository.write({name: "mine\n"})
    async with Worktree(repository.path) as folder:
        assert (folder.path / "app.py").read_text() == "one\ntwo\nthree\n"
        for name in ("app.py", "old.txt"):
            (folder.path / name).write_text("the agent's\n")
        assert folder.changes.stat.files == 2


async def test_a_sparse_checkout_stays_sparse(repository: Repository) -> None:
    repository.git("sparse-checkout", "set", "docs")
    async with Worktree(repository.path) as folder:
        assert files_of(folder.path) == files_of(repository.path)
        assert not (folder.path / "docs" / "missing").exists()
        assert not folder.changes


async def test_it_begins_at_another_commit(repository: Repository) -> None:
    repository.git("tag", "v1")
    repository.write({"app.py": "second\n"})
    repository.commit("second")
    repository.write({"app.py": "not committed\n"})
    async with Worktree(repository.path, ref="v1") as folder:
        assert (folder.path / "app.py").read_text() == "one\ntwo\nthree\n"
        assert Repository(folder.path).git("status", "--porcelain") == ""
        assert not folder.changes


@pytest.mark.parametrize("ref", ["missing", "-x", "--all", "v1:app.py", ""])
async def test_a_ref_that_does_not_exist(repository: Repository, ref: str) -> None:
    with pytest.raises(WorktreeError, match=f"there is no commit, branch or tag '{ref}'"):
        async with Worktree(repository.path, ref=ref):
            pytest.fail("it does not exist")
    assert not left_of_worktrees(repository)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dirty": "keep"}, 'choose "refuse" or "copy"'),
        ({"ref": "main", "dirty": "copy"}, "leave one out"),
        ({"ref": "main", "untracked": True}, "leave one out"),
        ({"ref": "main", "ignored": True}, "leave one out"),
    ],
    ids=str,
)
def test_settings_that_contradict_each_other(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Worktree(".", **options)


@ON_POSIX
@pytest.mark.parametrize("name", ["a b", "a\nb", "-a", "ü\\'\"$(x)", "a\n"], ids=repr)
async def test_paths_with_odd_characters(tmp_path: Path, name: str) -> None:
    repository = Repository.make(tmp_path / name / name, {f"{name}/{name}": "x\n"})
    async with Worktree(repository.path / name) as folder:
        assert folder.path.name == name
        (folder.path / name).write_text("y\n")
        (folder.path / f"{name}2").write_text("z\n")
        changes = folder.changes
    assert changes.stat.files == 2
    changes.apply()
    assert (repository.path / name / f"{name}2").read_text() == "z\n"
    assert not left_of_worktrees(repository)


@ON_POSIX
async def test_a_folder_below_the_root(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(repository.path))
    async with Worktree("~/docs") as folder:
        assert files_of(Path(folder)).keys() == {"guide.md"}
        (folder.path.parent / "app.py").unlink()
        assert folder.changes.stat.files == 1
    (repository.path / "made").mkdir()
    with pytest.raises(WorktreeError, match="the folder is not in the commit"):
        async with Worktree("~/made"):
            pytest.fail("it is not there")
    assert not left_of_worktrees(repository)


async def test_a_worktree_of_a_worktree_with_a_detached_head(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "other"))
    other = Repository(tmp_path / "other")
    other.write({"app.py": "dirty\n"})
    before = other.state()
    async with Worktree(other.path, dirty="copy") as folder:
        assert (folder.path / "app.py").read_text() == "dirty\n"
        (folder.path / "new").touch()
    assert other.state() == before
    assert [path.name for path in left_of_worktrees(repository)] == ["other"]


async def test_a_clone_of_which_nothing_is_checked_out(repository: Repository, tmp_path: Path) -> None:
    repository.git("clone", "--quiet", "--no-checkout", str(repository.path), str(tmp_path / "clone"))
    async with Worktree(tmp_path / "clone", dirty="copy") as folder:
        assert not files_of(folder.path)


async def test_sha256(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "new")
    repository.path.mkdir()
    repository.git("init", "-q", "--object-format=sha256")
    repository.write({"a": b"\0"})
    repository.commit("first")
    async with Worktree(repository.path) as folder:
        (folder.path / "a").write_bytes(b"\0\1")
        changes = folder.changes
    changes.apply()
    assert (repository.path / "a").read_bytes() == b"\0\1"


# What it refuses


@pytest.mark.parametrize(
    "error",
    [
        WorktreeError("/api", "it has no commit yet", "fatal"),
        DirtyTree("/api", [f"{number}.py" for number in range(12)]),
        ChangesConflict("/api", ["app.py"], "error: app.py"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_are_values(error: WorktreeError) -> None:
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert str(again) == str(error)
    assert str(error).startswith("/api: ")
    if isinstance(error, DirtyTree):
        assert "'9.py' and 2 more" in str(error)


async def refused(path: Path) -> WorktreeError:
    with pytest.raises(WorktreeError) as failure:
        async with Worktree(path):
            pytest.fail("it is refused")
    return failure.value


async def test_folders_that_are_no_working_trees(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    error = await refused(tmp_path / "empty")
    assert "no git repository" in error.reason
    assert error.detail.startswith("fatal: not a git repository")
    assert error.repository == str(tmp_path / "empty")
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare"))
    assert "it is a bare repository" in (await refused(tmp_path / "bare")).reason
    assert "or inside .git" in (await refused(repository.path / ".git")).reason
    repository.git("init", "--quiet", str(tmp_path / "new"))
    assert "it has no commit yet" in (await refused(tmp_path / "new")).reason
    with pytest.raises(NotADirectoryError, match=r"Worktree\(…\): there is no folder"):
        async with Worktree(tmp_path / "missing"):
            pytest.fail("it is not there")


async def test_no_git(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "there is no program git" in str(await refused(repository.path))


@ON_POSIX
async def test_no_folder_for_temporary_files(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    assert "the worktree could not be made: [Errno 2] No such file" in str(await refused(repository.path))
    assert not left_of_worktrees(repository)


async def test_a_merge_that_is_not_finished(repository: Repository) -> None:
    repository.git("branch", "other")
    repository.write({"app.py": "mine\n"})
    repository.commit("mine")
    repository.git("checkout", "-q", "other")
    repository.write({"app.py": "theirs\n"})
    repository.commit("theirs")
    repository.git("merge", "main", ok=False)
    assert "in the middle of a merge" in (await refused(repository.path)).reason
    assert not left_of_worktrees(repository)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files away")
async def test_a_repository_of_another_user(repository: Repository) -> None:
    os.chown(repository.path, 65534, 65534)
    os.chown(repository.path / ".git", 65534, 65534)
    error = await refused(repository.path)
    assert "it belongs to another user" in error.reason
    assert "git config --global --add safe.directory" in error.detail


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk that is nearly full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk(repository: Repository, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write({"large": os.urandom(100_000)})
    repository.commit("large")
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    error = await refused(repository.path)
    assert "if the disk is full, make room, or set TMPDIR" in error.reason
    assert "unable to write file large" in error.detail
    assert not left_of_worktrees(repository)


async def test_no_room_in_the_repository(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    repository = Repository.make(small_disk / "api")
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free))
    assert "could not be made: [Errno 28] No space left" in (await refused(repository.path)).reason
    assert not left_of_worktrees(repository)


# Beside each other, and when it is given up


async def test_ten_at_once(repository: Repository) -> None:
    numbers = set[str]()

    async def one(number: int) -> None:
        async with Worktree(repository.path) as folder:
            (folder.path / "app.py").write_text(f"{number}\n")
            numbers.add(folder.changes.diff.splitlines()[-1])

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(one, number)
    assert numbers == {f"+{number}" for number in range(10)}
    assert not left_of_worktrees(repository)


@pytest.fixture
def stuck(repository: Repository, settings: Path, tmp_path: Path) -> Path:
    """A pipe that is closed when a worktree is half made, and git waits for a filter that never ends."""
    reached = tmp_path / "reached"
    os.mkfifo(reached)
    code = f"import time\nopen({str(reached)!r}, 'w').close()\ntime.sleep(600)\n"
    program = executable(tmp_path / "filter", code)
    with settings.open("a") as file:
        file.write(f'[filter "stuck"]\n smudge = {program}\n')
    repository.write({".gitattributes": "*.md filter=stuck\n"})
    repository.commit("a filter")
    return reached


@ON_POSIX
async def test_opening_is_cancelled(repository: Repository, stuck: Path) -> None:
    async def until_stuck(scope: anyio.CancelScope) -> None:
        await anyio.to_thread.run_sync(stuck.read_bytes)
        scope.cancel()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(until_stuck, group.cancel_scope)
            async with Worktree(repository.path):
                pytest.fail("it never opens")
    assert not left_of_worktrees(repository)


@ON_POSIX
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_cancels_the_opening_and_the_block(repository: Repository, stuck: Path) -> None:
    import asyncio

    inside = asyncio.Event()
    tree = Worktree(repository.path)

    async def work() -> None:
        async with tree as folder:
            (folder.path / "new.py").touch()
            inside.set()
            await asyncio.sleep(600)

    task = asyncio.create_task(work())
    await anyio.to_thread.run_sync(stuck.read_bytes)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not left_of_worktrees(repository)

    repository.write({".gitattributes": ""})
    repository.commit("no filter")
    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tree.changes.stat.files == 1
    assert not left_of_worktrees(repository)
