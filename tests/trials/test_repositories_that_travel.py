"""Repositories that travel: to a worker of another machine, and the changes back."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from debian_packages import find_program
from trials.repositories import ON_POSIX, files_of, left_of_worktrees
from trials.repositories import Repository as Git

from thinkwell import ThinkBuilder, think
from thinkwell.trials import Input, PlanError, Report, Repository, Worktree, WorktreeError, trials

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the repositories that were fetched."""
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "state"))
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


async def test_a_repository_is_fetched_from_its_url(repository: Git, tmp_path: Path) -> None:
    lib = Git.make(tmp_path / "lib", {"lib.py": "lib\n"})
    repository.git("submodule", "--quiet", "add", "--", lib.path.as_uri(), "lib")
    tagged = repository.commit("with lib")
    repository.git("tag", "-a", "-m", "first", "v1")
    repository.write({"app.py": "later\n"})
    repository.commit("later")
    url = repository.path.as_uri()
    async with Repository(url) as tree:
        assert (tree.path / "app.py").read_text() == "later\n"
    for ref in ("v1", tagged):
        there = Repository(url, ref=ref)
        assert repr(there) == f"Repository({url!r})"
        async with there as tree:
            assert not there.changes
            assert (tree.path / "app.py").read_text() == "one\ntwo\nthree\n"
            (tree.path / "lib" / "lib.py").write_text("better\n")
        assert there.changes.repository == url
        assert "+better" in there.changes.diff
        with pytest.raises(WorktreeError, match=r"no folder of this machine; .* changes.save"):
            there.changes.apply()
    assert not left_of_worktrees(repository)


async def test_another_worktree_of_it_needs_no_second_copy(repository: Git, cache: Path) -> None:
    (repository.path / "docs" / "guide.md").write_text("better\n")
    there = Repository(Worktree(repository.path / "docs", dirty="copy"))
    async with there as tree:
        assert (tree.path / "guide.md").read_text() == "better\n"
        assert tree.path.name == "docs"
    (kept,) = cache.iterdir()
    (old := cache / "old").mkdir()
    os.utime(old, (0, 0))
    made = kept.stat().st_ino
    async with there as tree:
        (tree.path / "guide.md").write_text("best\n")
    assert there.changes.stat.files == 1
    (kept,) = cache.iterdir()
    assert kept.stat().st_ino == made


async def test_it_is_open_once_at_a_time(repository: Git) -> None:
    there = Repository(Worktree(repository.path))
    async with there as tree:
        with pytest.raises(RuntimeError, match=r"open already; make another Repository"):
            await there.__aenter__()
        (tree.path / "app.py").write_text("better\n")
    assert there.changes.stat.files == 1
    async with there:
        assert not there.changes
    assert not tree.path.exists()


LARGE = random.Random(0).randbytes(6_000_000)


@pytest.fixture
def files(tmp_path: Path) -> str:
    """A URL for what is large."""
    return (tmp_path / "files").as_uri()


@pytest.mark.long
async def test_what_is_large_goes_by_a_url(repository: Git, files: str, tmp_path: Path) -> None:
    repository.write({"logo.png": LARGE})
    worktree = Worktree(repository.path, dirty="copy")
    with pytest.raises(PlanError, match=r"api: packed, it has [67],.*Repository\(…, files="):
        await Repository(worktree).__aenter__()
    there = Repository(worktree, files=files)
    async with there as tree:
        assert (tree.path / "logo.png").read_bytes() == LARGE
        (tree.path / "logo.png").write_bytes(LARGE[::-1])
    assert there.changes
    assert len(pickle.dumps(there.changes)) < 10_000
    there.changes.apply()
    assert (repository.path / "logo.png").read_bytes() == LARGE[::-1]
    assert there.changes.branch("large")
    for file in (tmp_path / "files").iterdir():
        file.unlink()
    with pytest.raises(PlanError, match=r"files/[0-9a-f]+\.json: it cannot be read"):
        there.changes.save(tmp_path / "patch")


async def test_changes_that_are_too_large_are_kept_where_they_were_made(repository: Git, cache: Path) -> None:
    there = Repository(Worktree(repository.path))
    with pytest.raises(PlanError, match=r"the changes have .* they are in .* on this machine"):
        async with there as tree:
            (tree.path / "large").write_bytes(LARGE)
    (kept,) = cache.glob("*.patch")
    repository.git("apply", str(kept))
    assert (repository.path / "large").read_bytes() == LARGE


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            "nowhere://files",
            "nowhere://files/thinkwell-.*: it cannot be written .*Protocol not known: nowhere",
        ),
        ("s3://bucket", "it needs a package that is not installed.* s3fs"),
        pytest.param("file:///dev/null", "null/thinkwell-.*: it cannot be written", marks=ON_POSIX),
    ],
)
async def test_a_url_that_cannot_be_written_is_refused_before_the_work(
    repository: Git, files: str, why: str
) -> None:
    with pytest.raises(PlanError, match=why):
        await Repository(Worktree(repository.path), files=files).__aenter__()


@pytest.mark.parametrize(
    ("source", "options", "kind", "why"),
    [
        (3, {}, TypeError, "give a URL, or a Worktree"),
        (Worktree("."), {"ref": "main"}, ValueError, "give the ref to the Worktree"),
        ("https://me:secret@host/api.git", {}, ValueError, "me:\\*\\*\\*@host.* let each worker log in"),
        ("https://host/api", {"files": "ftp://me:secret@host/"}, ValueError, "the password would be stored"),
    ],
)
def test_a_repository_that_cannot_be_one(source: Any, options: Any, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why) as caught:
        Repository(source, **options)
    assert "secret" not in str(caught.value)


@pytest.mark.long
async def test_files_of_lfs(repository: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(find_program('git-lfs').path).parent}{os.pathsep}{os.environ['PATH']}")
    repository.git("lfs", "install", "--skip-repo")
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "served.git"))
    repository.git("lfs", "track", "*.png")
    repository.git("rm", "-q", "--cached", "logo.png")
    repository.commit("to LFS")
    url = (tmp_path / "served.git").as_uri()
    repository.git("lfs", "push", url, "main")
    repository.git("push", "--quiet", url, "main")
    pointer = repository.git("show", "HEAD:logo.png").encode() + b"\n"
    logo = (repository.path / "logo.png").read_bytes()

    async def seen(workspace: Worktree | Repository) -> bytes:
        async with workspace as tree:
            assert not tree.changes
            return (tree.path / "logo.png").read_bytes()

    assert await seen(Worktree(repository.path)) == logo
    assert await seen(Repository(url)) == logo
    assert await seen(Repository(Worktree(repository.path))) == pointer
    monkeypatch.setenv("GIT_LFS_SKIP_SMUDGE", "1")
    repository.git("clone", "--quiet", url, str(tmp_path / "pointers"))
    assert await seen(Worktree(tmp_path / "pointers")) == pointer


async def test_a_repository_that_git_does_not_find(repository: Git, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no branch or tag 'v9'; see `git ls-remote file:"):
        await Repository(repository.path.as_uri(), ref="v9").__aenter__()
    with pytest.raises(WorktreeError, match=r"`git ls-remote .*` failed"):
        await Repository((tmp_path / "none").as_uri()).__aenter__()
    with pytest.raises(WorktreeError, match=r"ext.* not allowed"):
        await Repository("ext::touch made").__aenter__()
    with pytest.raises(WorktreeError, match="no git repository"):
        await Repository(Worktree(tmp_path)).__aenter__()
    repository.git("clone", "-q", "--depth=1", "--bare", repository.path.as_uri(), str(tmp_path / "bare"))
    with pytest.raises(WorktreeError, match="bare repository"):
        await Repository(Worktree(tmp_path / "bare")).__aenter__()
    with pytest.raises(RuntimeError, match="no changes before it was opened"):
        _ = Repository("https://host/api").changes


async def test_a_shallow_clone_cannot_be_packed(repository: Git, tmp_path: Path) -> None:
    repository.write({"app.py": "later\n"})
    repository.commit("later")
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth=1", repository.path.as_uri(), str(clone))
    with pytest.raises(PlanError, match=r"shallow clone.*git fetch --unshallow"):
        await Repository(Worktree(clone)).__aenter__()
    options: Any = {"inputs": ["a"], "agents": ["builtin"], "store": "postgresql://127.0.0.1:1/x"}
    with pytest.raises(PlanError, match="shallow clone"):  # with a database, a worktree has to travel
        await trials(think().text("Go: "), workspace=Worktree(clone), **options)
    assert not left_of_worktrees(Git(clone))


def improve() -> str:
    """Change a file in the worktree of the only trial under way."""
    (file,) = Path(os.environ["TMPDIR"]).glob("thinkwell-*/api/lib/lib.py")
    file.write_text(file.read_text() + "better\n")
    return "improved"


def improving(given: str) -> ThinkBuilder[int]:
    """Return a task whose agent changes a file."""
    return think(int).tool(improve).text(f"How many lines has lib.py? {given}")


async def test_a_trial_in_a_repository_that_travels(
    repository: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    inner = repository.submodule("lib", Git.make(tmp_path / "lib", {"lib.py": "lib\n"}))
    inner.write({"lib.py": "lib, too\n"})
    before = repository.state()
    there = Repository(Worktree(repository.path, dirty="copy"))
    given = [Input("", key="a")]

    async def run() -> Report:
        return await trials(
            improving, inputs=given, agents=["builtin"], workspace=there, store=tmp_path / "store"
        )

    report = await run()
    assert [(trial.error, trial.attempts) for trial in report.trials] == [(None, 1)]
    assert [trial.attempts for trial in (await run()).trials] == [1]  # packed anew, it is the same plan
    best = report.best("a").changes
    assert best.repository == str(repository.path)
    assert repository.state() == before
    best.apply()
    assert (repository.path / "lib" / "lib.py").read_text() == "lib, too\nbetter\n"
    assert not left_of_worktrees(repository)
