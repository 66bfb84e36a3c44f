"""One attempt of a trial: a worktree, an agent in it, the task, the check, and what has changed."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec.structs import replace
from pydantic_core import to_jsonable_python

from thinkwell import open_agent
from thinkwell._display import phases
from thinkwell._display.summary import error_words
from thinkwell.errors import BudgetExceeded
from thinkwell.trials._changes import NO_CHANGES
from thinkwell.trials._checks import run_check
from thinkwell.trials._engine.values import Ended, Running
from thinkwell.trials._open_agents import killable

if TYPE_CHECKING:
    from thinkwell import ThoughtStream
    from thinkwell.events import JsonValue
    from thinkwell.trials._checks import Check
    from thinkwell.trials._engine.values import Name
    from thinkwell.trials._plan import Plan
    from thinkwell.trials._purse import Purse

__all__ = ("Progress", "run_attempt", "words_of")


class Progress:
    """What an attempt has come to so far.

    Args:
        purse: What it may spend.
    """

    def __init__(self, purse: Purse) -> None:
        self.purse = purse
        self._words = "preparing"
        self._run: ThoughtStream[object] | None = None

    def begin(self, _input: object, run: ThoughtStream[object]) -> None:
        """Note the run."""
        self._run = run

    def check(self) -> None:
        """Note that the run has ended, and is checked."""
        self._words, self._run = "checking", None

    def now(self) -> Running:
        """Return it."""
        words = self._words if self._run is None else phases.words(self._run.view)
        return Running(phase=words, spent=self.purse.counted)


async def run_attempt(
    plan: Plan,
    name: Name,
    progress: Progress,
    recording: str | None,
) -> Ended:
    """Run a trial once, and return what it has come to. Cancelling this ends its agent.

    Args:
        plan: The plan.
        name: The trial.
        progress: What it has come to so far, and what it may spend.
        recording: The file for a recording of the run; ``None``: there is none.
    """
    began = time.monotonic()
    try:
        ended = await _run(plan, name, progress, recording)
    except Exception as exc:  # whatever it is, the other trials go on
        ended = _failed(exc)
    kept = recording if recording is not None and await to_thread.run_sync(Path(recording).exists) else None
    return replace(ended, spent=progress.purse.counted, seconds=time.monotonic() - began, recording=kept)


async def _run(plan: Plan, name: Name, progress: Progress, recording: str | None) -> Ended:
    given, agent_name, _ = name
    builder = plan.builder(given)
    async with AsyncExitStack() as stack:
        tree = None if plan.workspace is None else await to_thread.run_sync(plan.workspace.worktree)
        folder = Path.cwd() if tree is None else Path(await stack.enter_async_context(tree))
        opening = open_agent(agent_name, cwd=folder, permissions=plan.permissions, record=recording)
        async with killable(opening) as agent:
            outcomes = agent.map(
                lambda _: builder,
                [given],
                budget=progress.purse,
                timeout=plan.timeout,
                idle_timeout=plan.idle_timeout,
            )
            outcomes._follow(progress.begin)
            # Not `results()`, which is patient: when the trial is cancelled, its agent is closed.
            (outcome,) = [outcome async for outcome in outcomes]
        changes = NO_CHANGES
        if plan.workspace is not None and tree is not None:
            changed = await to_thread.run_sync(lambda: tree.changes)
            changes = await to_thread.run_sync(plan.workspace.delivered, changed)
        if outcome.error is not None:
            return replace(_failed(outcome.error), changes=changes)
        result = to_jsonable_python(outcome.result)
        ended = Ended(status="passed", result=result, changes=changes)
        check = plan.checker()
        return ended if check is None else await _checked(check, plan.value(given), ended, folder, progress)


async def _checked(check: Check, given: JsonValue, ended: Ended, folder: Path, progress: Progress) -> Ended:
    progress.check()
    try:
        verdict = await run_check(
            check,
            input=given,
            result=ended.result,
            folder=folder,
            changes=ended.changes,
            budget=progress.purse,
        )
    except Exception as exc:  # the result is there, but not what it is worth
        failed = _failed(exc)
        return replace(ended, status=failed.status, error=failed.error)
    status = "passed" if verdict.passed else "failed"
    return replace(ended, status=status, score=verdict.score, detail=verdict.detail)


def _failed(exc: Exception) -> Ended:
    # What the budget has stopped may run again, with a larger one.
    return Ended(status="cancelled" if isinstance(exc, BudgetExceeded) else "error", error=words_of(exc))


def words_of(exc: Exception) -> str:
    """Return what happened, and what to do."""
    words = error_words(exc)
    return "; ".join(filter(None, (words.what, words.next)))
