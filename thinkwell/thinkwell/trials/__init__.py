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
from thinkwell.trials._checks import Candidate, Check, Command, Judge, Verdict, run_check
from thinkwell.trials._engine.settings import Pace, Ready
from thinkwell.trials._errors import (
    ChangesConflict,
    CheckError,
    DirtyTree,
    NonePassed,
    PlanError,
    StoreError,
    WorkerFailed,
    WorktreeError,
)
from thinkwell.trials._forecast import Forecast
from thinkwell.trials._plan import Input
from thinkwell.trials._plan_file import PlanFile, read_plan
from thinkwell.trials._report import Report
from thinkwell.trials._statistics import AgentSummary, Estimate, pass_at_k
from thinkwell.trials._table import Table
from thinkwell.trials._travel import Repository
from thinkwell.trials._trial import Spent, Status, Trial
from thinkwell.trials._trials import serve_worker, trials
from thinkwell.trials._worktree import OpenWorktree, Worktree

__all__ = (
    "AgentSummary",
    "Candidate",
    "ChangeStat",
    "Changes",
    "ChangesConflict",
    "Check",
    "CheckError",
    "Command",
    "DirtyTree",
    "Estimate",
    "Forecast",
    "Input",
    "Judge",
    "NonePassed",
    "OpenWorktree",
    "Pace",
    "PlanError",
    "PlanFile",
    "Ready",
    "Report",
    "Repository",
    "Spent",
    "Status",
    "StoreError",
    "Table",
    "Trial",
    "Verdict",
    "WorkerFailed",
    "Worktree",
    "WorktreeError",
    "pass_at_k",
    "read_plan",
    "run_check",
    "serve_worker",
    "trials",
)
