"""Checks: commands, functions and judges."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from daemons import DAEMON, ON_LINUX, is_alive, number_in
from trials.known_agents import know
from trials.repositories import ON_POSIX

from thinkwell import AgentReported, Budget, BudgetExceeded, ThoughtTimeout
from thinkwell.testing import script
from thinkwell.trials import Candidate, CheckError, Command, Judge, Spent, Verdict, Worktree, run_check

if TYPE_CHECKING:
    from pathlib import Path

    from trials.repositories import Repository

    from thinkwell.trials import Check


async def checked(check: Check, folder: Path, result: object = 3) -> Verdict:
    return await run_check(check, input="issue-7", result=result, folder=folder)


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-IS", "-c", code


# Commands


@ON_POSIX
async def test_a_command_passes_by_its_exit_code_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("")
    code = "import os, sys; print('\\x1b[31mno', os.path.exists('here')); sys.exit(3)"
    assert await checked(Command("test -e here"), tmp_path) == Verdict(passed=True)
    verdict = await checked(Command(python(code)), tmp_path)
    assert verdict == Verdict(passed=False, detail="[exit code 3]\nno True")
    killed = "import os; os.kill(os.getpid(), 9)"
    assert (await checked(Command(python(killed)), tmp_path)).detail == "[SIGKILL]"
    shown = Command(python("import os; print(os.environ['WHO'])"), env={"WHO": "Ada"})
    assert (await checked(shown, tmp_path)).detail == "Ada"


async def test_only_the_end_of_much_output_is_kept(tmp_path: Path) -> None:
    verdict = await checked(Command(python("print('x' * 1_000_000); print('3 failed')")), tmp_path)
    assert verdict.detail.endswith("x\n3 failed")
    assert len(verdict.detail) < 30_000


@ON_LINUX
async def test_a_command_that_hangs_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    code = f"import subprocess, time; subprocess.Popen({[*DAEMON, str(started)]!r}); time.sleep(3600)"
    pids: list[int] = []

    async def watch() -> None:
        pids.append(await number_in(started))
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        with anyio.CancelScope() as scope:
            await checked(Command(python(code)), tmp_path)
    assert not is_alive(pids[0])
    verdict = await checked(Command(python("import time; time.sleep(3600)"), timeout=0.2), tmp_path)
    assert verdict == Verdict(passed=False, detail="it did not end within 0.2 s")


async def test_a_command_that_cannot_run(tmp_path: Path) -> None:
    with pytest.raises(
        CheckError, match=r"the check no-such-program does not work: .*no-such-program"
    ) as caught:
        await checked(Command("no-such-program -q"), tmp_path)
    assert caught.value.check == "no-such-program"
    with pytest.raises(ValueError, match="No closing quotation"):
        Command("pytest 'here")
    with pytest.raises(ValueError, match='such as "pytest -q"'):
        Command(" ")


# Functions


async def test_a_function_sees_the_candidate(tmp_path: Path) -> None:
    seen: list[Candidate] = []

    def says(candidate: Candidate) -> bool:
        seen.append(candidate)
        return bool(candidate.result == 3)

    async def scores(candidate: Candidate) -> Verdict:
        await anyio.lowlevel.checkpoint()
        return Verdict(passed=False, score=0.5, detail=str(candidate.input))

    assert await checked(says, tmp_path) == Verdict(passed=True)
    assert await checked(says, tmp_path, 4) == Verdict(passed=False)
    assert await checked(scores, tmp_path) == Verdict(passed=False, score=0.5, detail="issue-7")
    assert (seen[0].input, seen[0].result, seen[0].folder) == ("issue-7", 3, tmp_path)
    assert not seen[0].changes


async def test_an_assertion_fails_a_trial_and_other_errors_are_the_checks(tmp_path: Path) -> None:
    def asserts(candidate: Candidate) -> bool:
        raise AssertionError(f"{candidate.result} is not 4")

    def breaks(candidate: Candidate) -> bool:
        return bool(candidate.result["total"])

    def forgets(candidate: Candidate) -> bool:
        return None  # type: ignore[return-value]

    assert await checked(asserts, tmp_path) == Verdict(passed=False, detail="3 is not 4")
    with pytest.raises(CheckError, match="breaks does not work: TypeError: 'int' object"):
        await checked(breaks, tmp_path)
    with pytest.raises(CheckError, match="forgets does not work: it returned None; return True, False or a"):
        await checked(forgets, tmp_path)


@pytest.mark.virtual_time
async def test_a_function_that_hangs(tmp_path: Path) -> None:
    async def hangs(_: Candidate) -> bool:
        await anyio.sleep_forever()
        return True

    with pytest.raises(CheckError, match="hangs does not work: it took longer than 600 s"):
        await checked(hangs, tmp_path)


# Judges


JUDGING = (
    script.expects("It is right.")
    .expects("Fix it.")
    .expects('"a": 1')
    .expects("+changed")
    .uses("Read app.py", kind="read")
    .returns({"reason": "Half of it.\x1b[2J", "score": 0.5, "passed": False})
    .stops()
)


@pytest.mark.parametrize("least", [None, 0.3])
async def test_another_agent_judges(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, repository: Repository, least: float | None
) -> None:
    know(monkeypatch, tmp_path, judge=JUDGING)
    async with Worktree(repository.path) as tree:
        (tree.path / "app.py").write_text("changed\n")
        candidate = Candidate(input="Fix it.", result={"a": 1}, folder=tree.path, changes=tree.changes)
        verdict = await Judge("judge", "It is right.", least=least).check(candidate)
    assert (verdict.passed, verdict.score, verdict.detail) == (least is not None, 0.5, "Half of it.")
    assert verdict.spent.tool_calls == 1
    assert verdict.spent.cost is None


async def judged(budget: Budget, folder: Path, seconds: float = 60) -> Verdict:
    judge = Judge("judge", "It is right.", timeout=seconds)
    return await run_check(judge, input="a", result="b", folder=folder, budget=budget)


async def test_a_judge_spends_of_the_budget_however_it_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    budget = Budget(max_tool_calls=4)
    works = script.uses("one").uses("two")
    know(monkeypatch, tmp_path, judge=works.returns({"reason": "", "score": 1, "passed": True}))
    assert (await judged(budget, tmp_path)).spent.tool_calls == 2
    know(monkeypatch, tmp_path, judge=works.fails())
    with pytest.raises(AgentReported):
        await judged(budget, tmp_path)
    assert budget.spent.tool_calls == 4
    know(monkeypatch, tmp_path, judge=works.hangs())
    with pytest.raises(BudgetExceeded):
        await judged(budget, tmp_path)
    know(monkeypatch, tmp_path, judge=script.hangs())
    with pytest.raises(ThoughtTimeout):
        await judged(Budget(max_tool_calls=4), tmp_path, 0.1)


async def test_what_a_function_has_spent_counts(tmp_path: Path) -> None:
    budget = Budget(max_cost=1)

    def spends(_: Candidate) -> Verdict:
        return Verdict(passed=True, spent=Spent(tool_calls=1, tokens=5, cost=0.5))

    await run_check(spends, input="a", result="b", folder=tmp_path, budget=budget)
    assert (budget.spent.tool_calls, budget.spent.tokens, budget.spent.cost) == (1, 5, 0.5)


def test_a_judge_needs_criteria() -> None:
    with pytest.raises(ValueError, match="say what makes a good result"):
        Judge("claude", " ")
