"""One repository's part of a worktree: that of the repository itself, or of one of its submodules.

Files are read and written with a git folder of our own, beside the repository's. It shares the repository's
objects, keeps new ones to itself, and has an index of its own: the repository's is never touched.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell.trials import _marks
from thinkwell.trials._changes import ChangeStat, Part, object_format, settings_of
from thinkwell.trials._errors import DirtyTree, WorktreeError
from thinkwell.trials._git import Git, paths

if TYPE_CHECKING:
    import threading
    from pathlib import Path

__all__ = ("Checkout", "Taken")

AS_PATCH: Final = ("--patch", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color")

OWN: Final = ("-c", "core.fsync=none", "-c", "core.compression=0")
"""What is written is removed again after the run."""


class Taken(Struct, frozen=True, kw_only=True):
    """What of a repository is taken along."""

    ref: str | None = None
    dirty: bool = False
    """Whether changes that are not committed go with it; else they are refused."""
    untracked: bool = False
    ignored: bool = False


class Checkout:
    """A checkout of a commit, with what is taken along.

    Args:
        root: The working tree of the repository.
        place: Where it is in the worktree: empty, or the path of a submodule with a slash at its end.
        folder: The worktree's own folder.
        tree: Where to check out.
        stop: Once it is set, git is broken off.
    """

    def __init__(self, root: Path, place: str, folder: Path, tree: Path, stop: threading.Event) -> None:
        self.commit = ""
        self.submodules: dict[str, str] = {}
        """The commit of each submodule by its path, as the index has it."""
        self._root = root
        self._place = place
        self._folder = folder
        self._tree = tree
        self._git = Git(root, stop)
        self._common = root / self._git("rev-parse", "--git-common-dir")
        self._store = self._common / folder.name
        self._index = self._store / "index"
        self._files = root
        """The working tree that is read: the repository's, and then that of the worktree."""
        self._settings: tuple[str, ...] = ()
        self._start = ""

    # Opening

    def open(self, taken: Taken) -> None:
        """Check it out.

        Raises:
            DirtyTree: There are changes, and they are to be refused.
            WorktreeError: Git cannot do it.
        """
        _marks.sweep(self._common)
        named = "HEAD" if taken.ref is None else taken.ref
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}")
        try:
            self.commit = self._git(*words)
        except WorktreeError as exc:
            missing = f"there is no commit, branch or tag {named!r}; see `git log --all`"
            unborn = "it has no commit yet; make one, since a worktree begins at one"
            raise self._git.failure(unborn if taken.ref is None else missing, exc.detail) from None
        self._git.locks = [_marks.claim(self._store, self._folder)]
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._make_store()
        staged = self._read_start(taken)
        with _marks.alone(self._common) as lock:
            self._git.locks += lock
            self._git("worktree", "add", "--quiet", "--detach", "--no-checkout", str(self._tree), self.commit)
            del self._git.locks[1:]
        self._files = self._tree
        self._own("checkout-index", "--all", "--force", "--index")
        # The agent's index: what is staged is staged there, too, and no file has to be read again.
        index = self._tree / self._git("rev-parse", "--git-path", "index", cwd=self._tree)
        shutil.copy2(self._index, index)
        self._own("read-tree", "--reset", staged, index=index)
        for path in self.submodules:
            (self._tree / path).mkdir(parents=True, exist_ok=True)

    def _make_store(self) -> None:
        self._own("init", "--quiet", "--template=", object_format(self.commit))
        self._settings = settings_of(self._git)
        info = self._store / "info"
        info.mkdir()
        for name in ("exclude", "attributes"):
            if (self._common / "info" / name).exists():
                shutil.copyfile(self._common / "info" / name, info / name)
        # Relative: a line of the file is a path, which may itself have line ends.
        (self._store / "objects" / "info" / "alternates").write_bytes(b"../../objects\n")

    def _read_start(self, taken: Taken) -> str:
        """Fill the index with what the tree starts with, and return the tree that the agent's index gets."""
        index = self._root / self._git("rev-parse", "--git-path", "index")
        if taken.ref is not None:
            self._own("read-tree", self.commit)
        elif index.exists():
            shutil.copy2(index, self._index)  # with its time, which tells what git has to read again
        staged = self._own("write-tree")
        unseen = self._leave_out_submodules()
        if taken.ref is None:
            clean = self._own("write-tree")
            self._own("add", "--update")
            now = self._own("write-tree")
            files = {*self._names(self.commit, staged), *self._names(clean, now)}
            if files and not taken.dirty:
                raise DirtyTree(str(self._root), sorted(files))
            if taken.untracked or taken.ignored:
                only = ("--exclude-standard", "--ignored")[: 1 + taken.ignored]
                self._add_others(self._index, *(() if taken.untracked and taken.ignored else only))
        self._own("update-index", "-z", "--index-info", stdin=unseen)
        self._start = self._own("write-tree")
        return staged

    def _leave_out_submodules(self) -> str:
        """Take submodules out of the index: git would look into them, and follow the configuration there.

        Returns:
            The entries of the files of which git was told not to see changes, for ``--index-info``.
        """
        unseen = ""
        for line in paths(self._own("ls-files", "-z", "-v", "--stage")):
            about, path = line.split("\t", 1)
            tag, mode, content, _ = about.split(" ")
            if mode == "160000":
                self.submodules[path] = content
            elif tag != "H" and os.path.lexists(self._root / path):  # else left out by a sparse checkout
                unseen += f"{mode} {content}\t{path}\0"
        left_out = "".join(f"{path}\0" for path in self.submodules)
        self._own("update-index", "--force-remove", "-z", "--stdin", stdin=left_out)
        return unseen

    # Afterwards

    def changes(self) -> tuple[Part, list[str]]:
        """Return what has changed since the start, and the repositories in it that git does not track."""
        index = self._store / "index-now"
        shutil.copy2(self._index, index)
        self._tree.mkdir(parents=True, exist_ok=True)  # where it is gone, all its files are
        self._own("add", "--update", index=index)
        nested = self._add_others(index, "--exclude-standard")
        now = self._own("write-tree", index=index)
        listed = paths(self._own("diff-tree", "-r", "-z", "--no-renames", "--numstat", self._start, now))
        lines = [[0 if count == "-" else int(count) for count in row.split("\t")[:2]] for row in listed]
        added, deleted = (sum(row[side] for row in lines) for side in (0, 1))
        part = Part(
            root=str(self._root),
            place=self._place,
            commit=self.commit,
            before=self._patch(self.commit, self._start),
            diff=self._patch(self._start, now),
            stat=ChangeStat(files=len(lines), insertions=added, deletions=deleted),
        )
        return part, [self._place + path for path in nested]

    def _patch(self, before: str, now: str) -> str:
        """Return the difference of two trees as text. Files that are not UTF-8 are in it as binary ones."""
        patch = self._diff(before, now)
        if _is_text(patch):
            return patch
        patches = {path: self._diff(before, now, path) for path in self._names(before, now)}
        attributes = self._store / "info" / "attributes"
        kept = attributes.read_bytes() if attributes.exists() else b""
        attributes.write_bytes(kept + b"\n* -diff\n")
        for path, patch in patches.items():
            patches[path] = patch if _is_text(patch) else self._diff(before, now, path)
        attributes.write_bytes(kept)
        return "".join(patches.values())

    def _diff(self, before: str, now: str, *only: str) -> str:
        prefixes = (f"--src-prefix=a/{self._place}", f"--dst-prefix=b/{self._place}")
        what = (*AS_PATCH, *prefixes, "--ignore-submodules=all", before, now, "--", *only)
        patch = self._own("--literal-pathspecs", "diff-tree", "-r", "--no-renames", *what)
        return f"{patch}\n" if patch else ""

    def _names(self, before: str, now: str) -> list[str]:
        return paths(self._own("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, now))

    # With the git folder of our own

    def _add_others(self, index: Path, *which: str) -> list[str]:
        """Add files that git does not track, and return the repositories among them, which are left out."""
        listed = paths(self._own("ls-files", "-z", "--others", *which, index=index))
        inside = tuple(f"{path}/" for path in self.submodules)
        found = [path for path in listed if not path.startswith(inside)]
        files = "".join(f"{path}\0" for path in found if not path.endswith("/"))
        self._own("update-index", "--add", "-z", "--stdin", index=index, stdin=files)
        return [path for path in found if path.endswith("/")]

    def _own(self, *words: str, index: Path | None = None, stdin: str = "") -> str:
        places = (f"--git-dir={self._store}", f"--work-tree={self._files}")
        env = {"GIT_INDEX_FILE": str(index or self._index)}
        return self._git(*OWN, *self._settings, *places, *words, cwd=self._files, env=env, stdin=stdin)

    # The end

    def close(self) -> None:
        """Remove it."""
        if self._git.locks:
            _marks.remove(self._store, self._folder, self._git.locks[0])

    def keep(self) -> None:
        """Let it stay: it is the user's worktree from now on."""
        _marks.forget(self._store, self._git.locks[0])


def _is_text(patch: str) -> bool:
    return not re.search("[\udc80-\udcff]", patch)
