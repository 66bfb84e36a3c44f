"""One repository's part of a worktree: that of the repository itself, or of one of its submodules.

Files are read and written with a git folder of our own, beside the repository's. It shares the repository's
objects, keeps new ones to itself, and has an index of its own: the repository's is never touched.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from thinkwell.trials import _marks
from thinkwell.trials._changes import ChangeStat, Part, line_ends
from thinkwell.trials._errors import DirtyTree, WorktreeError
from thinkwell.trials._git import Git, paths

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ("Checkout", "Taken")

AS_PATCH: Final = ("--patch", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color")


class Taken(Struct, frozen=True, kw_only=True):
    """What of a repository's working tree is taken along."""

    ref: str | None = None
    dirty: Literal["refuse", "copy"] = "refuse"
    untracked: bool = False
    ignored: bool = False

    def others(self) -> tuple[str, ...] | None:
        """Return the options of ``git ls-files`` that list what git does not track; ``None`` for none."""
        match self.untracked, self.ignored:
            case False, False:
                return None
            case True, True:
                return ()
            case _:
                return ("--exclude-standard", *(("--ignored",) if self.ignored else ()))


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
        self.root = root
        self.place = place
        self.folder = folder
        self.tree = tree
        self.git: Git = Git(root, stop=stop)
        self.commit = ""
        self.start = ""
        self.submodules: dict[str, str] = {}
        """The commit of each submodule by its path, as the index has it."""
        self._git_folder = root / self.git("rev-parse", "--git-dir")
        self._common = root / self.git("rev-parse", "--git-common-dir")
        self._store = self._common / folder.name
        self._settings: tuple[str, ...] = ()
        self._files = root
        """The working tree that is read: the repository's, and then that of the worktree."""

    # Opening

    def open(self, taken: Taken) -> None:
        """Check it out.

        Raises:
            DirtyTree: There are changes, and they are to be refused.
            WorktreeError: Git cannot do it.
        """
        _marks.sweep(self._common)
        named = "HEAD" if taken.ref is None else taken.ref
        try:
            self.commit = self.git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}"
            )
        except WorktreeError as exc:
            reason = f"there is no commit, branch or tag {named!r}; see `git log --all`"
            if taken.ref is None:
                reason = "it has no commit yet; make one, since a worktree begins at one"
            raise WorktreeError(str(self.root), reason, exc.detail) from None
        self.git.lock = _marks.claim(self._store, self.folder)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._make_store()
        staged = self._read_start(taken)
        self.git("worktree", "add", "--quiet", "--detach", "--no-checkout", str(self.tree), self.commit)
        self._files = self.tree
        self._own("checkout-index", "--all", "--force", "--index")
        known = self.tree / self.git("rev-parse", "--git-dir", cwd=self.tree)
        shutil.copy2(self._store / "index", known / "index")
        self._own("read-tree", "--reset", staged, index=known / "index")
        for path in self.submodules:
            (self.tree / path).mkdir(parents=True, exist_ok=True)

    def _make_store(self) -> None:
        form = self.git("rev-parse", "--show-object-format")
        self._own("init", "--quiet", "--template=", f"--object-format={form}")
        self._settings = line_ends(self.git)
        info = self._store / "info"
        info.mkdir()
        for name in ("exclude", "attributes"):
            if (self._common / "info" / name).exists():
                shutil.copyfile(self._common / "info" / name, info / name)
        # Relative: a line of the file is a path, which may itself have line ends.
        (self._store / "objects" / "info" / "alternates").write_text("../../objects\n")

    def _read_start(self, taken: Taken) -> str:
        """Fill the index with what the tree starts with, and return the tree that the agent's index gets."""
        if taken.ref is not None:
            self._own("read-tree", self.commit)
        elif (self._git_folder / "index").exists():
            shutil.copy2(
                self._git_folder / "index", self._store / "index"
            )  # its time tells what may be stale
        staged = self._own("write-tree")
        flagged = self._leave_out_submodules()
        clean = self._own("write-tree")
        if taken.ref is None:
            self._own("add", "--update")
            head = self._own("rev-parse", f"{self.commit}^{{tree}}")
            now = self._own("write-tree")
            if taken.dirty == "refuse" and (staged != head or now != clean):
                files = {*self._names(head, staged), *self._names(clean, now)}
                raise DirtyTree(str(self.root), sorted(files))
            if (others := taken.others()) is not None:
                self._add_others(self._store / "index", *others)
        self._own("update-index", "-z", "--index-info", stdin=flagged)
        self.start = self._own("write-tree")
        return staged

    def _leave_out_submodules(self) -> bytes:
        """Take submodules out of the index.

        Return the entries of files of which git was told not to see changes, for ``--index-info``.

        With one in the index, git would look into it, and follow the configuration that it finds there.
        """
        flagged = list[str]()
        for line in paths(self._own("ls-files", "-z", "-v", "--stage")):
            about, path = line.split("\t", 1)
            tag, mode, commit, _ = about.split(" ")
            if mode == "160000":
                self.submodules[path] = commit
            elif tag != "H" and os.path.lexists(self.root / path):  # else left out by a sparse checkout
                flagged.append(f"{mode} {commit}\t{path}\0")
        if self.submodules:
            left = "".join(f"{path}\0" for path in self.submodules)
            self._own("update-index", "--force-remove", "-z", "--stdin", stdin=os.fsencode(left))
        return os.fsencode("".join(flagged))

    # What became of it

    def changes(self) -> tuple[Part, list[str]]:
        """Return what has changed since the start, and the repositories in it that git does not track."""
        index = self._store / "index-now"
        self.tree.mkdir(parents=True, exist_ok=True)  # where it is gone, all its files are
        shutil.copy2(self._store / "index", index)
        self._own("add", "--update", index=index)
        nested = self._add_others(index, "--exclude-standard")
        now = self._own("write-tree", index=index)
        files = self._names(self.start, now)
        lines = self._own("diff-tree", "-r", "--no-renames", "--numstat", self.start, now)
        counts = re.findall(r"^(\d+|-)\t(\d+|-)\t", lines, re.MULTILINE)
        added, deleted = (sum(int(each[side]) for each in counts if each[side] != "-") for side in (0, 1))
        part = Part(
            root=str(self.root),
            place=self.place,
            commit=self.commit,
            before=self._patch(self.commit, self.start, self._names(self.commit, self.start)),
            diff=self._patch(self.start, now, files),
            stat=ChangeStat(files=len(files), insertions=added, deletions=deleted),
        )
        return part, [self.place + path for path in nested]

    def _names(self, before: str, now: str) -> list[str]:
        words = ("diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=all", "--name-only")
        return paths(self._own(*words, before, now))

    def _patch(self, before: str, now: str, files: list[str]) -> str:
        """Return the difference of two trees as text. Files that are not UTF-8 are in it as binary ones."""
        whole = self._diff(before, now)
        try:
            return whole.decode()
        except UnicodeDecodeError:
            return "".join(self._file_patches(before, now, files))

    def _file_patches(self, before: str, now: str, files: list[str]) -> Iterator[str]:
        attributes = self._store / "info" / "attributes"
        kept = attributes.read_bytes() if attributes.exists() else b""
        for path in files:
            patch = self._diff(before, now, path)
            try:
                yield patch.decode()
            except UnicodeDecodeError:
                attributes.write_bytes(kept + b"\n* -diff\n")
                yield self._diff(before, now, path).decode()
                attributes.write_bytes(kept)

    def _diff(self, before: str, now: str, *only: str) -> bytes:
        prefixes = (f"--src-prefix=a/{self.place}", f"--dst-prefix=b/{self.place}")
        what = ("-r", "--no-renames", "--ignore-submodules=all", *AS_PATCH, *prefixes, before, now)
        return self.git.raw(
            *self._words(), "--literal-pathspecs", "diff-tree", *what, "--", *only, cwd=self._files
        )

    # The git folder of our own

    def _add_others(self, index: Path, *which: str) -> list[str]:
        """Add files that git does not track, and return the repositories among them, which are left out."""
        listed = paths(self._own("ls-files", "-z", "--others", *which, index=index))
        inside = tuple(f"{path}/" for path in self.submodules)
        mine = [path for path in listed if not path.startswith(inside)]
        files = "".join(f"{path}\0" for path in mine if not path.endswith("/"))
        self._own("update-index", "--add", "-z", "--stdin", index=index, stdin=os.fsencode(files))
        return [path for path in mine if path.endswith("/")]

    def _own(self, *words: str, index: Path | None = None, stdin: bytes = b"") -> str:
        env = {"GIT_INDEX_FILE": str(index or self._store / "index")}
        return self.git(*self._words(), *words, cwd=self._files, env=env, stdin=stdin)

    def _words(self) -> tuple[str, ...]:
        lfs = f"lfs.storage={self._common / 'lfs'}"
        own = ("-c", "core.fsync=none", "-c", "core.compression=0", "-c", lfs, *self._settings)
        return (*own, f"--git-dir={self._store}", f"--work-tree={self._files}")

    # The end

    def close(self) -> None:
        """Remove it."""
        if self.git.lock is not None:
            _marks.remove(self._store, self.folder)
            os.close(self.git.lock)

    def keep(self) -> None:
        """Let it stay as a worktree that is the user's."""
        assert self.git.lock is not None
        shutil.rmtree(self._store)
        os.close(self.git.lock)
