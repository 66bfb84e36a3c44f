"""One attempt of a trial: a worktree, an agent in it, the task, the check, and what has changed."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from msgspec.structs import replace
from pydantic_core import to_jsonable_python

from thinkwell import open_agent
from thinkwell._display import phases
from thinkwell._display.summary import error_words
from thinkwell.errors import BudgetExceeded
from thinkwell.trials._checks import run_check
from thinkwell.trials._open_agents import killable
from thinkwell.trials._purse import Purse
from thinkwell.trials._trial import Trial

if TYPE_CHECKING:
    from thinkwell import Budget, ThoughtStream
    from thinkwell.trials._engine.store import Name
    from thinkwell.trials._plan import Plan

__all__ = ("Live", "run_attempt", "words_of")


class Live:
    """An attempt that goes on.

    Args:
        name: The trial.
        total: The budget that it shares.
    """

    def __init__(self, name: Name, total: Budget) -> None:
        given, agent, repeat = name
        self.scope = anyio.CancelScope()
        self.purse = Purse(total)
        self.waiting = Trial(input=given, agent=agent, repeat=repeat)
        self.trial = self.waiting
        """What it has come to, which counts at its end."""
        self.phase = "preparing"
        self.run: ThoughtStream[object] | None = None

    def begin(self, _input: object, run: ThoughtStream[object]) -> None:
        """Note the run."""
        self.run = run

    def now(self) -> Trial:
        """Return what is known of it while it goes on."""
        phase = self.phase if self.run is None else phases.words(self.run.view)
        return replace(self.waiting, status="running", phase=phase, spent=self.purse.counted)

    def given_back(self) -> Trial:
        """Return it for another worker, as this one leaves."""
        return replace(self.waiting, spent=self.purse.counted)


async def run_attempt(plan: Plan, live: Live, recording: str | None) -> Trial:
    """Run a trial once, and return what it has come to. Cancelling this ends its agent.

    Args:
        plan: The plan.
        live: The attempt.
        recording: The file for a recording of the run; ``None``: there is none.
    """
    began = time.monotonic()
    try:
        await _run(plan, live, recording)
    except Exception as exc:  # whatever it is, the other trials go on
        # What the budget has stopped may run again, with a larger one.
        status = "cancelled" if isinstance(exc, BudgetExceeded) else "error"
        live.trial = replace(live.trial, status=status, error=words_of(exc))
    kept = recording if recording is not None and await to_thread.run_sync(Path(recording).exists) else None
    return replace(live.trial, spent=live.purse.counted, seconds=time.monotonic() - began, recording=kept)


async def _run(plan: Plan, live: Live, recording: str | None) -> None:
    given, agent_name, _ = live.trial.name
    builder = plan.builder(given)
    async with AsyncExitStack() as stack:
        tree = None if plan.workspace is None else await to_thread.run_sync(plan.workspace.worktree)
        folder = Path.cwd() if tree is None else Path(await stack.enter_async_context(tree))
        opening = open_agent(agent_name, cwd=folder, permissions=plan.permissions, record=recording)
        async with killable(opening) as agent:
            outcomes = agent.map(
                lambda _: builder,
                [given],
                budget=live.purse,
                timeout=plan.timeout,
                idle_timeout=plan.idle_timeout,
            )
            outcomes._follow(live.begin)
            # Not `results()`, which is patient: when the trial is cancelled, its agent is closed.
            (outcome,) = [outcome async for outcome in outcomes]
        if plan.workspace is not None and tree is not None:
            changed = await to_thread.run_sync(lambda: tree.changes)
            changes = await to_thread.run_sync(plan.workspace.delivered, changed)
            live.trial = replace(live.trial, changes=changes)
        if outcome.error is not None:
            raise outcome.error
        live.trial = replace(live.trial, status="passed", result=to_jsonable_python(outcome.result))
        check = plan.checker()
        if check is None:
            return
        live.phase, live.run = "checking", None
        verdict = await run_check(
            check,
            input=plan.value(given),
            result=live.trial.result,
            folder=folder,
            changes=live.trial.changes,
            budget=live.purse,
        )
        status = "passed" if verdict.passed else "failed"
        live.trial = replace(live.trial, status=status, score=verdict.score, detail=verdict.detail)


def words_of(exc: Exception) -> str:
    """Return what happened, and what to do."""
    words = error_words(exc)
    return "; ".join(filter(None, (words.what, words.next)))
