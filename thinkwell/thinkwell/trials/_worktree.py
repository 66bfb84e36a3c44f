"""`Worktree`: a folder of its own for a run."""

from __future__ import annotations

import os
import tempfile
import threading
from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread
from msgspec.structs import replace

from thinkwell._core.exit import existing_folder
from thinkwell.trials import _marks
from thinkwell.trials._changes import Changes
from thinkwell.trials._checkout import Checkout, Taken
from thinkwell.trials._errors import DirtyTree, WorktreeError
from thinkwell.trials._git import Git

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ("OpenWorktree", "Workspace", "Worktree")


class OpenWorktree(os.PathLike[str]):
    """A worktree that is open, or was: what a `Worktree` gives in its block. It can be used as a path."""

    def __init__(self, worktree: Worktree) -> None:
        self._source = Path(existing_folder(worktree._path.expanduser(), "Worktree(…)"))
        self._taken = worktree._taken
        self._home = worktree._home
        self._deliver: Callable[[Changes], Changes] = lambda changes: changes
        """Returns the changes as they are after the block."""
        self._stop = threading.Event()
        self._folder = Path(tempfile.gettempdir()).resolve() / _marks.new_name()
        self._checkouts: list[Checkout] = []
        self._changes: Changes | None = None
        self._mutex = threading.Lock()
        self.path: Path = self._folder
        """The folder to work in. It is gone after the block."""

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<OpenWorktree {self.path}>"

    @property
    def changes(self) -> Changes:
        """What has changed since the start; after the block, what had changed at its end.

        In the block this blocks while git looks at the files.

        Raises:
            WorktreeError: Git could not read the changes.
        """
        with self._mutex:
            return self._read() if self._changes is None else self._changes

    def _open(self) -> None:
        with self._mutex:
            try:
                self._make()
            except OSError as exc:
                raise WorktreeError(str(self._source), f"the worktree could not be made: {exc}") from exc

    def _make(self) -> None:
        git = Git(self._source, stop=self._stop)
        if git("rev-parse", "--is-inside-work-tree") != "true":
            raise WorktreeError(
                str(self._source), "it is a bare repository, or inside .git; give a folder that has files"
            )
        root = Path(git("rev-parse", "--show-toplevel"))
        self.path = self._folder / root.name
        self._add(root, "", self._taken)
        self.path = self.path / git("rev-parse", "--show-prefix")
        if not self.path.is_dir():
            raise WorktreeError(str(self._source), "the folder is not in the commit; give one that is")

    def _add(self, root: Path, place: str, taken: Taken) -> Checkout:
        checkout = Checkout(root, place, self._folder, self.path / place, self._stop)
        self._checkouts.append(checkout)
        checkout.open(taken)
        for path, commit in checkout.submodules.items():
            if (root / path / ".git").exists():  # else it is empty there, too
                inner = taken if taken.ref is None else replace(taken, ref=commit)
                added = self._add(root / path, f"{place}{path}/", inner)
                if added.commit != commit and not taken.dirty:
                    raise DirtyTree(str(root), [path])
        return checkout

    def _read(self) -> Changes:
        if not self._checkouts:
            raise WorktreeError(str(self._source), "its changes could not be read; its block said why")
        parts = [checkout.changes() for checkout in self._checkouts]
        return Changes(
            repository=self._home(parts[0][0].root),
            _parts=tuple(replace(part, root=self._home(part.root)) for part, _ in parts),
            left_out=tuple(path for _, nested in parts for path in nested),
        )

    def _finish(self) -> None:
        """Read the changes, and remove the worktree. If they cannot be read, it stays, so no work is lost."""
        with self._mutex:
            try:
                self._changes = self._read()
            except (WorktreeError, OSError) as exc:
                for checkout in self._checkouts:
                    checkout.keep()
                self._checkouts.clear()
                raise WorktreeError(
                    str(self._source),
                    f"the changes could not be read, so the worktree stays in {self.path}; save what you "
                    "need, and remove it with `git worktree remove --force`",
                    str(exc),
                ) from exc
        self._close()
        self._changes = self._deliver(self._changes)

    def _close(self) -> None:
        with self._mutex:
            for checkout in reversed(self._checkouts):
                checkout.close()


class Workspace(AbstractAsyncContextManager[OpenWorktree]):
    """What a worktree is made of, for a block: a `Worktree`, or a `Repository`."""

    def __init__(self) -> None:
        self._tree: OpenWorktree | None = None
        self._is_open = False

    @property
    def changes(self) -> Changes:
        """The changes in the worktree that is open, or was open last; see `OpenWorktree.changes`.

        Raises:
            RuntimeError: It was never opened.
        """
        if self._tree is None:
            raise RuntimeError(f"{self!r} has no changes before it was opened, by `async with` or open_agent")
        return self._tree.changes

    @abstractmethod
    def _prepare(self) -> OpenWorktree:
        """Return a worktree to open. This may block."""

    async def __aenter__(self) -> OpenWorktree:
        """Make the worktree.

        Raises:
            NotADirectoryError: The folder does not exist.
            DirtyTree: There are changes that are not committed.
            WorktreeError: The worktree cannot be made.
            PlanError: The repository is too large, or there is no such URL or ref.
            RuntimeError: It is open already.
        """
        if self._is_open:
            raise RuntimeError(
                f"{self!r} is open already; make another {type(self).__name__} for another run"
            )
        self._is_open = True
        tree: OpenWorktree | None = None
        try:
            tree = await anyio.to_thread.run_sync(self._prepare)
            await _in_thread(tree._open)
        except BaseException:  # asyncio's own cancellation, too: the thread goes on until it is stopped
            self._is_open = False
            if tree is not None:
                tree._stop.set()
                with anyio.CancelScope(shield=True):
                    await _in_thread(tree._close)
            raise
        self._tree = tree
        return tree

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._tree is not None
        self._is_open = False
        with anyio.CancelScope(shield=True):  # bounded by the limit of each call of git
            await _in_thread(self._tree._finish)


class Worktree(Workspace):
    """A folder of its own for a run: a worktree of a git repository, which is removed after the block.

    Open it with ``async with Worktree("~/api") as tree:``, or have `thinkwell.open_agent` do that with
    ``open_agent("claude", cwd=Worktree("~/api"))``. The repository's own files, index and branches stay as
    they are. It can be opened again when its block is left, but not twice at once.

    Args:
        path: A folder of the repository. In a folder below its root, the agent works in the same folder of
            the worktree.
        ref: A commit, branch or tag to start at. By default the worktree starts at what is checked out.
        dirty: What to do with changes that are not committed: ``refuse`` raises `DirtyTree`, ``copy`` takes
            them along. With `ref` they are left where they are.
        untracked: Whether to copy the files that git does not track.
        ignored: Whether to copy the files that git ignores.

    Raises:
        ValueError: `dirty` is neither, or something is to be copied beside a `ref`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        ref: str | None = None,
        dirty: Literal["refuse", "copy"] = "refuse",
        untracked: bool = False,
        ignored: bool = False,
    ) -> None:
        if dirty not in ("refuse", "copy"):
            raise ValueError(f'Worktree(dirty={dirty!r:.100}): choose "refuse" or "copy"')
        if ref is not None and (dirty == "copy" or untracked or ignored):
            raise ValueError(
                "Worktree(ref=…): what is not committed there does not go with it; leave one out"
            )
        super().__init__()
        self._path = Path(path)
        self._taken = Taken(ref=ref, dirty=dirty == "copy", untracked=untracked, ignored=ignored)
        self._home: Callable[[str], str] = str
        """Returns the repository that changes name, for the folder of one."""

    def __repr__(self) -> str:
        return f"Worktree({str(self._path)!r})"

    def _prepare(self) -> OpenWorktree:
        return OpenWorktree(self)


async def _in_thread(function: Callable[[], None]) -> None:
    """Call a function in a thread that need not wait for those of others."""
    await anyio.to_thread.run_sync(function, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
