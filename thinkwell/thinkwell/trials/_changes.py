"""What has changed in a worktree, and what can be done with it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from thinkwell.trials._backup import backed_up
from thinkwell.trials._errors import ChangesConflict, WorktreeError
from thinkwell.trials._git import Git, paths
from thinkwell.trials._remote_files import read_file

if TYPE_CHECKING:
    import os

__all__ = ("NO_CHANGES", "ChangeStat", "Changes", "Part", "object_format", "settings_of")

FOLLOWED: Final = ("core.autocrlf", "core.eol", "lfs.fetchexclude", "lfs.fetchinclude")
"""What is followed of a repository's configuration: its line ends, and which files of LFS stay pointers."""


class ChangeStat(Struct, frozen=True, kw_only=True):
    """How much has changed."""

    files: int = 0
    """How many files."""
    insertions: int = 0
    """Lines added; those of binary files do not count."""
    deletions: int = 0
    """Lines deleted."""


class Part(Struct, frozen=True, kw_only=True):
    """The changes in one repository: that of the worktree, or one of its submodules."""

    root: str
    place: str
    commit: str
    before: str
    diff: str
    stat: ChangeStat


class Changes(Struct, frozen=True, kw_only=True):
    """What has changed in a worktree since it was opened.

    It can be kept, pickled and compared when the worktree is gone. Its methods block while git runs; in a
    program that must not wait, call them in a thread.
    """

    repository: str
    """The folder of the repository."""
    _parts: tuple[Part, ...]
    left_out: tuple[str, ...] = ()
    """Repositories that were made in the worktree, as by ``git clone``: they are not part of the changes."""
    _stored: str = ""
    """The URL of the parts, where they are too large for a store."""

    def __bool__(self) -> bool:
        return bool(self.stat.files)

    @property
    def diff(self) -> str:
        """The patch, as ``git diff --binary`` writes one. It has new and deleted files, modes and commits."""
        return "".join(part.diff for part in self._whole())

    @property
    def stat(self) -> ChangeStat:
        """How much has changed."""
        stats = [part.stat for part in self._parts]
        return ChangeStat(
            files=sum(stat.files for stat in stats),
            insertions=sum(stat.insertions for stat in stats),
            deletions=sum(stat.deletions for stat in stats),
        )

    def apply(self) -> None:
        """Make the changes in the working tree of the repository. Nothing is staged or committed.

        Raises:
            ChangesConflict: They do not fit what is there now, and nothing was changed.
            WorktreeError: Git failed for another reason, such as a full disk, and nothing was changed.
        """
        if not self:
            return
        self._check_here()
        git = Git(Path(self.repository))
        with tempfile.TemporaryDirectory(prefix="thinkwell-") as own:
            words = ("--git-dir", own, "--work-tree", self.repository)
            git(*words, "init", "--quiet", "--template=", object_format(self._parts[0].commit))
            apply = (*settings_of(git), *words, "apply", "--whitespace=nowarn")
            diff = self.diff
            try:
                listed = git(*apply, "--check", "--numstat", "-z", "-", stdin=diff)
            except WorktreeError as exc:
                at = re.findall(r"^error: (?:patch failed: )?(.+?):(?: |\d+$)", exc.detail, re.MULTILINE)
                if not at:  # pragma: no cover - git was broken off
                    raise
                raise ChangesConflict(self.repository, list(dict.fromkeys(at)), exc.detail) from None
            with backed_up(git, [line.split("\t", 2)[2] for line in paths(listed)]):
                git(*apply, "-", stdin=diff)

    def branch(self, name: str, *, message: str = "Changes of an agent") -> str:
        """Commit the changes on a new branch of the repository, and return the commit.

        What is checked out there stays. Changes that were not committed when the worktree was opened become
        a commit of their own, before. A submodule with changes gets a branch of the same name.

        Args:
            name: The branch.
            message: The message of the commit.

        Raises:
            WorktreeError: There is such a branch, the name cannot be one, or git failed.
        """
        self._check_here()
        tips = list[tuple[Git, str]]()
        links = dict[str, str]()
        for part in reversed(self._whole()):  # a submodule before what it is in, which gets its commit
            git = Git(Path(part.root))
            _check_branch(git, name)
            inner = {
                place[len(part.place) : -1]: links.pop(place)
                for place in list(links)
                if place.startswith(part.place)
            }
            if part.before or part.diff or inner or not part.place:
                tips.append((git, _commit(git, part, inner, message)))
                links[part.place] = tips[-1][1]
        for git, tip in tips:
            git("update-ref", f"refs/heads/{name}", tip, "")
        return tips[-1][1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the patch to a file, for ``git apply``.

        Raises:
            OSError: The file cannot be written.
        """
        Path(path).write_bytes(self.diff.encode())

    def _whole(self) -> tuple[Part, ...]:
        """Return the parts with their patches."""
        if not self._stored:
            return self._parts
        return msgspec.json.decode(read_file(self._stored), type=tuple[Part, ...])

    def _check_here(self) -> None:
        if not Path(self.repository).is_dir():
            raise WorktreeError(
                self.repository,
                "it is no folder of this machine; write the patch to a file with changes.save(…), and use "
                "`git apply` in a clone",
            )


NO_CHANGES: Final = Changes(repository="", _parts=())
"""Those of a run without a worktree."""


def object_format(commit: str) -> str:
    """Return the option of ``git init`` for the objects that a commit has."""
    return "--object-format=" + ("sha1" if len(commit) == 40 else "sha256")


def settings_of(git: Git) -> tuple[str, ...]:
    """Return what is followed of a repository's configuration."""
    settings = (line.split("\n", 1) for line in paths(git("config", "--null", "--list")))
    followed = ["=".join(setting) for setting in settings if setting[0] in FOLLOWED]
    lfs = git.repository / git("rev-parse", "--git-common-dir") / "lfs"
    return tuple(word for setting in (*followed, f"lfs.storage={lfs}") for word in ("-c", setting))


def _check_branch(git: Git, name: str) -> None:
    if git("for-each-ref", f"refs/heads/{name}"):
        raise git.failure(f"there is a branch {name!r} already; choose another name, or delete it")
    try:
        git("check-ref-format", "--branch", name)
    except WorktreeError as exc:
        raise git.failure(f"{name!r} cannot be a branch", exc.detail) from None


def _commit(git: Git, part: Part, links: dict[str, str], message: str) -> str:
    """Commit the changes of a repository, and return the last commit.

    Args:
        git: Git for it.
        part: The changes.
        links: The new commits of its submodules, by their paths.
        message: The message of the commit.
    """
    depth = f"-p{part.place.count('/') + 1}"
    commit = part.commit
    with tempfile.TemporaryDirectory(prefix="thinkwell-") as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder, "index"))}

        def add(patch: str, about: str) -> str:
            if patch:
                git("apply", "--cached", "--whitespace=nowarn", depth, "-", env=env, stdin=patch)
            tree = git("write-tree", env=env)
            return git("commit-tree", tree, "-p", commit, "-F", "-", stdin=about)

        git("read-tree", commit, env=env)
        if part.before:
            commit = add(part.before, "Changes that were not committed")
        for path, tip in links.items():
            git("update-index", "--cacheinfo", f"160000,{tip},{path}", env=env)
        if part.diff or links:
            commit = add(part.diff, message)
    return commit
