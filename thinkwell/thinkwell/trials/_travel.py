"""Repositories that travel: to the worker that needs one, and its changes back."""

from __future__ import annotations

from msgspec import Struct

from thinkwell.trials._worktree import Worktree

__all__ = ("Workspace", "workspace_data")


class Workspace(Struct, frozen=True, kw_only=True):
    """A worktree as data."""

    path: str
    ref: str | None = None
    dirty: bool = False
    untracked: bool = False
    ignored: bool = False

    def worktree(self) -> Worktree:
        """Return the worktree."""
        return Worktree(
            self.path,
            ref=self.ref,
            dirty="copy" if self.dirty else "refuse",
            untracked=self.untracked,
            ignored=self.ignored,
        )


def workspace_data(tree: Worktree) -> Workspace:
    """Return a worktree as data."""
    taken = tree._taken
    return Workspace(
        path=str(tree._path.expanduser().resolve()),
        ref=taken.ref,
        dirty=taken.dirty == "copy",
        untracked=taken.untracked,
        ignored=taken.ignored,
    )
