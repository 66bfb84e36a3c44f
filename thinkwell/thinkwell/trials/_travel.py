"""Repositories that travel: to the worker that needs one, and its changes back.

A repository travels as a git bundle of its commit, with the changes that are not committed as a patch, and so
does each of its submodules; or it is fetched from its URL. A worker checks it out once, in its cache, and
opens worktrees of that.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from thinkwell._display.urls import without_password
from thinkwell.agents import state_folder
from thinkwell.trials._changes import Changes, Part, object_format
from thinkwell.trials._checkout import Taken
from thinkwell.trials._errors import PlanError
from thinkwell.trials._git import Git
from thinkwell.trials._remote_files import check_files, read_file, write_file
from thinkwell.trials._worktree import OpenWorktree, Workspace, Worktree

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("Parcel", "Place", "Repository", "pack")

LARGEST: Final = 5_000_000
"""Most bytes of a repository or of changes in the store; what is larger needs a URL for files."""

KEPT: Final = 30 * 86_400
"""Seconds after which a repository in the cache that was not used is removed."""

NEED_FILES: Final = 'Give a URL for what is large: Repository(…, files="s3://…")'

FETCHES: Final = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
"""For git, where it fetches what the user has named."""


class Place(Taken, frozen=True, kw_only=True, tag_field="kind", tag="place"):
    """A worktree of a repository on this machine, as data."""

    path: str

    def worktree(self) -> Worktree:
        """Return the worktree."""
        tree = Worktree(self.path)
        tree._taken = self
        return tree

    def alike(self) -> Place:
        """Return what is the same for all worktrees with the same content."""
        return self

    def delivered(self, changes: Changes) -> Changes:
        """Return the changes as they are kept."""
        return changes


class Packed(Struct, frozen=True, kw_only=True):
    """A repository that was packed, or one of its submodules."""

    root: str
    """Its folder at home."""
    place: str
    """Where it is in the first one: empty, or the path of a submodule with a slash at its end."""
    commit: str
    digest: str = ""
    """A hash of the changes that are not committed."""
    before: str = ""
    """These changes, as a patch."""
    bundle: bytes = b""
    """The commit with its history."""


class Parcel(Struct, frozen=True, kw_only=True, tag_field="kind", tag="parcel", omit_defaults=True):
    """A repository as data, which any machine can open."""

    name: str
    """The name of its folder."""
    folder: str = ""
    """The folder in it to work in."""
    url: str = ""
    """The repository's URL, where it is not packed."""
    commit: str = ""
    """The commit there."""
    packed: tuple[Packed, ...] = ()
    stored: str = ""
    """The URL of what is packed, where it is too large for the store."""
    ignored: bool = False
    files: str = ""
    """The URL for what is large."""

    def alike(self) -> Parcel:
        """Return what is the same for all with the same content; git packs that in several ways."""
        return replace(self, stored="", packed=_without_content(self.packed))

    def worktree(self) -> Worktree:
        """Fetch the repository, unless it is in the cache, and return a worktree of it. This blocks.

        Raises:
            PlanError: A file cannot be fetched, or none could be written afterwards.
            WorktreeError: Git cannot fetch the repository.
        """
        if self.files:
            check_files(self.files)
        cache = _cache()
        root = cache / _hash(msgspec.json.encode(self.alike())) / self.name
        if not root.exists():
            new = Path(tempfile.mkdtemp(prefix=".new-", dir=cache))
            try:
                self._check_out(new / self.name)
                with suppress(OSError):  # another worker was faster
                    new.rename(root.parent)
            finally:
                shutil.rmtree(new, ignore_errors=True)
        os.utime(root.parent)
        tree = Worktree(root / self.folder, dirty="copy", untracked=True, ignored=self.ignored)
        homes = {str(root / part.place): part.root for part in self.packed}
        tree._home = lambda root: homes.get(root, self.url)
        return tree

    def delivered(self, changes: Changes) -> Changes:
        """Return the changes as they are kept: those that are large in a file at the URL. This blocks.

        Raises:
            PlanError: They are too large, and there is no URL. They are kept in a file of this machine.
        """
        content = msgspec.json.encode(changes._parts)
        if len(content) <= LARGEST:
            return changes
        name = _hash(content)
        if self.files:
            small = tuple(replace(part, before="", diff="") for part in changes._parts)
            stored = write_file(self.files, f"{name}.json", content)
            return replace(changes, _parts=small, _stored=stored)
        kept = _cache() / f"{name}.patch"
        changes.save(kept)
        raise PlanError(
            self.name,
            f"the changes have {len(content):,} bytes, and up to {LARGEST:,} are kept; they are in {kept} on "
            f"this machine. {NEED_FILES}",
        )

    def _check_out(self, root: Path) -> None:
        if self.url:
            root.mkdir()
            git = Git(root)
            git("clone", "--quiet", "--no-checkout", "--", self.url, ".", env=FETCHES)
            git("checkout", "--quiet", "--detach", self.commit, env=FETCHES)
            git("submodule", "--quiet", "update", "--init", "--recursive", env=FETCHES)
        packed = self.packed
        if self.stored:
            packed = msgspec.msgpack.decode(read_file(self.stored), type=tuple[Packed, ...])
        for part in packed:
            folder = root / part.place
            folder.mkdir(parents=True, exist_ok=True)
            bundle = root.parent / "bundle"
            bundle.write_bytes(part.bundle)
            git = Git(folder)
            git("init", "--quiet", "--template=", object_format(part.commit))
            git("bundle", "unbundle", str(bundle))
            git("config", "lfs.fetchexclude", "*")  # they are not in the bundle
            git("checkout", "--quiet", "--detach", part.commit)
            bundle.unlink()
            if part.before:
                depth = f"-p{part.place.count('/') + 1}"
                git("apply", "--whitespace=nowarn", depth, "-", stdin=part.before)


class Repository(Workspace):
    """A repository that travels to the workers of other machines, and their changes back.

    It can also be used in place of a `Worktree`: ``async with Repository(…) as tree:``. Like that, it can be
    opened again when its block is left, but not twice at once.

    Args:
        source: The repository's URL, which each worker fetches with a login of its own; or a `Worktree`,
            which is packed: its commit with the history, and what it takes along. Files of Git LFS stay
            pointers.
        ref: The commit, branch or tag at the URL; by default, its ``HEAD``.
        files: A URL for what has more than 5 MB, the packed repository or the changes. All workers must be
            able to write there: ``s3://bucket/folder``, or another that the package fsspec knows.

    Raises:
        TypeError: `source` is neither.
        ValueError: A URL has a password in it, or there is a `ref` beside a worktree.
    """

    def __init__(self, source: str | Worktree, *, ref: str | None = None, files: str | None = None) -> None:
        if not isinstance(cast("object", source), str | Worktree):
            raise TypeError(f'Repository({source!r:.100}): give a URL, or a Worktree("…")')
        if isinstance(source, Worktree) and ref is not None:
            raise ValueError("Repository(Worktree(…), ref=…): give the ref to the Worktree")
        for url in (source, files):
            if isinstance(url, str) and without_password(url) != url:
                raise ValueError(
                    f"Repository({without_password(url)!r:.200}): the password would be stored; leave it "
                    "out, and let each worker log in: with git's credential helper, or a key"
                )
        super().__init__()
        self._source = source
        self._ref = ref
        self._files = files or ""

    def __repr__(self) -> str:
        return f"Repository({self._source!r})"

    def _prepare(self) -> OpenWorktree:
        parcel = self.pack()
        tree = OpenWorktree(parcel.worktree())
        tree._deliver = parcel.delivered
        return tree

    def pack(self) -> Parcel:
        """Return the repository as data. This blocks.

        Raises:
            PlanError: It is too large, or there is no such URL or ref.
            WorktreeError: Git failed.
        """
        if self._files:
            check_files(self._files)
        return self._fetched(self._source) if isinstance(self._source, str) else self._packed(self._source)

    def _fetched(self, url: str) -> Parcel:
        name = re.sub(r"\.git/?$|/$", "", url).replace(":", "/").rpartition("/")[2] or "repository"
        commit = ref = self._ref or "HEAD"
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", ref):
            found = Git(Path.cwd())("ls-remote", "--quiet", "--", url, ref, f"{ref}^{{}}", env=FETCHES)
            if not found:
                raise PlanError(url, f"there is no branch or tag {ref!r}; see `git ls-remote {url}`")
            commit = found.splitlines()[-1].split("\t")[0]  # a tag's commit is last
        return Parcel(name=name, url=url, commit=commit, files=self._files)

    def _packed(self, worktree: Worktree) -> Parcel:
        with _opened(worktree) as tree:
            name, *folder = tree.path.relative_to(tree._folder).parts
            parts = tree.changes._parts
            packed = tuple(_bundled(part, tree._folder / name / part.place) for part in parts)
        parcel = Parcel(
            name=name,
            folder="/".join(folder),
            packed=packed,
            ignored=worktree._taken.ignored,
            files=self._files,
        )
        size = sum(len(part.bundle) + len(part.before) for part in packed)
        if size <= LARGEST:
            return parcel
        if not self._files:
            raise PlanError(
                str(worktree._path),
                f"packed, it has {size:,} bytes, and up to {LARGEST:,} are kept. {NEED_FILES}",
            )
        content = msgspec.msgpack.encode(packed)
        name = f"{_hash(content)}.parcel"
        small = _without_content(packed)
        return replace(parcel, packed=small, stored=write_file(self._files, name, content))


def pack(workspace: Worktree | Repository, *, travels: bool) -> Place | Parcel:
    """Return a workspace as data. This blocks.

    Args:
        workspace: The workspace.
        travels: Whether workers may be on other machines.

    Raises:
        PlanError: It cannot travel.
        WorktreeError: Git failed.
    """
    if isinstance(workspace, Repository):
        return workspace.pack()
    if travels:
        return Repository(workspace).pack()
    with _opened(workspace):  # what is wrong with it is wrong for each trial
        path = workspace._path.expanduser().resolve()
    return Place(path=str(path), **asdict(workspace._taken))


@contextmanager
def _opened(worktree: Worktree) -> Generator[OpenWorktree]:
    tree = OpenWorktree(worktree)
    try:
        tree._open()
        yield tree
    finally:
        tree._close()


def _bundled(part: Part, tree: Path) -> Packed:
    git = Git(tree)
    if git("rev-parse", "--is-shallow-repository") == "true":
        raise PlanError(
            part.root,
            "it is a shallow clone, which cannot be packed; use `git fetch --unshallow`, or give its URL: "
            'Repository("https://…")',
        )
    with tempfile.TemporaryDirectory(prefix="thinkwell-") as folder:
        bundle = Path(folder, "bundle")
        git("bundle", "create", "--quiet", str(bundle), "HEAD")
        return Packed(
            root=part.root,
            place=part.place,
            commit=part.commit,
            digest=_hash(part.before.encode()),
            before=part.before,
            bundle=bundle.read_bytes(),
        )


def _without_content(packed: tuple[Packed, ...]) -> tuple[Packed, ...]:
    return tuple(replace(part, before="", bundle=b"") for part in packed)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _cache() -> Path:
    """Return the folder of the cache; what was not used for long is removed."""
    folder = (state_folder() / "repositories").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if time.time() - path.stat().st_mtime > KEPT and not path.name.endswith(".patch"):
            shutil.rmtree(path, ignore_errors=True)
    return folder
