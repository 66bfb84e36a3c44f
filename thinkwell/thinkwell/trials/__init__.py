"""Runs in rooms of their own: worktrees of a git repository, and what agents have changed in them.

::

    from thinkwell import open_agent
    from thinkwell.trials import Worktree

    tree = Worktree("~/api")
    async with open_agent("claude", cwd=tree) as agent:
        await agent.think().text("Fix the failing test.").run()
    tree.changes.apply()
"""

from __future__ import annotations

from thinkwell.trials._changes import Changes, ChangeStat
from thinkwell.trials._errors import ChangesConflict, DirtyTree, PlanError, WorktreeError
from thinkwell.trials._plan import Input
from thinkwell.trials._travel import Repository
from thinkwell.trials._worktree import OpenWorktree, Worktree

__all__ = (
    "ChangeStat",
    "Changes",
    "ChangesConflict",
    "DirtyTree",
    "Input",
    "OpenWorktree",
    "PlanError",
    "Repository",
    "Worktree",
    "WorktreeError",
)
