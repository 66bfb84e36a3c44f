"""Trials in a file: what they come to, and that nothing is lost, run twice or left of them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from daemons import ON_LINUX, is_alive, number_in, wait_gone
from trials.kills import kill_programs
from trials.known_agents import know, outliving
from trials.repositories import Repository, left_of_worktrees
from warm import TRUE

from thinkwell import AgentNotFound, Budget, ThinkBuilder, think
from thinkwell.testing import script
from thinkwell.trials import (
    Candidate,
    Command,
    Input,
    Judge,
    StoreError,
    WorkerFailed,
    Worktree,
    serve_worker,
    trials,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.trials import Report, Trial

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("trials")]

QUESTION = think(int).text("How many lines has `app.py`? Input: ")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The built-in agent speaks without pauses, and programs see the folder for temporary files."""
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.chdir(tmp_path)


def counted() -> str:
    """Count a call."""
    with Path("calls").open("a") as file:
        file.write("x")
    return "counted"


def with_a_tool(given: str) -> ThinkBuilder[int]:
    """Return a task whose agent calls a tool."""
    return think(int).tool(counted).text(f"How many files are there? {given}")


def improve() -> str:
    """Change a file in the worktrees that are open: that of the only trial under way."""
    for file in Path(os.environ["TMPDIR"]).glob("thinkwell-*/api/app.py"):
        file.write_text("better\n")
    return "improved"


def improving(given: str) -> ThinkBuilder[int]:
    """Return a task whose agent changes a file."""
    return think(int).tool(improve).text(f"How many lines has app.py? {given}")


def is_short(candidate: Candidate) -> bool:
    """Check an answer."""
    assert candidate.folder.joinpath("app.py").exists()
    return bool(candidate.input == "short")


def breaks(_: Candidate) -> bool:
    """Fail as a check."""
    raise OSError("no disk")


def workers(of: int) -> list[int]:
    """Return the workers that a process has started."""
    found = list[int]()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == of and b"thinkwell.trials._engine.worker" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def statuses(report: Report) -> list[tuple[str, int, str, int]]:
    """Return what each trial has come to: its input, its repeat, its status and how often it was begun."""
    return [(trial.input, trial.repeat, trial.status, trial.attempts) for trial in report.trials]


async def test_each_input_is_tried_by_each_agent(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, tmp_path, breaker=script.fails(message="out of order"))
    before = repository.state()
    seen: list[Sequence[Trial]] = []
    report = await trials(
        improving,
        inputs={"a": "short", "b": "long"},
        agents=["builtin", "breaker"],
        limit=1,
        workspace=Worktree(repository.path),
        check=is_short,
        store=tmp_path / "trials.sqlite",
        recordings=tmp_path / "recordings",
        on_change=seen.append,
    )
    first, broken, second, _ = report.trials
    assert [trial.name for trial in report.trials] == [
        (given, agent, 1) for given in "ab" for agent in ("builtin", "breaker")
    ]
    assert (first.status, second.status) == ("passed", "failed"), first
    assert isinstance(first.result, int)
    assert "+better" in first.changes.diff
    report.best("a").changes.apply()
    assert (repository.path / "app.py").read_text() == "better\n"
    repository.git("checkout", "app.py")
    assert broken.status == "error"
    assert broken.error is not None
    assert "out of order" in broken.error
    assert first.recording is not None
    assert "How many lines has app.py? short" in Path(first.recording).read_text()
    assert [trial.status for trial in seen[-1]] == [trial.status for trial in report.trials]
    assert repository.state() == before
    assert not left_of_worktrees(repository)


@pytest.mark.parametrize("options", [{"agents": ["cloude"]}, {"check": Judge("cloude", "It is right.")}])
async def test_an_agent_that_is_unknown_is_an_error_of_the_call(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"agents": ["builtin"], "store": "trials.sqlite", **options}
    with pytest.raises(AgentNotFound, match="no known agent has that name; did you mean 'claude'"):
        await trials(QUESTION, inputs=["a"], **given)
    assert not Path("trials.sqlite").exists()


@pytest.mark.long
async def test_a_check_that_does_not_work_is_an_error() -> None:
    (trial,) = (await trials(QUESTION, inputs=["a"], agents=["builtin"], check=breaks)).trials
    assert trial.status == "error"
    assert isinstance(trial.result, int)
    assert "breaks does not work: OSError: no disk" in str(trial.error)


@pytest.mark.long
async def test_the_time_of_all_runs_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know(monkeypatch, tmp_path, waiter=script.hangs())
    budget = Budget(max_seconds=0.2)
    report = await trials(think().text("Go: "), inputs=["a", "b"], agents=["waiter"], budget=budget)
    assert [trial.status for trial in report.trials] == ["cancelled"] * 2
    assert "budget" in str(report.trials[0].error).lower()


async def test_what_has_ended_is_not_run_again(tmp_path: Path) -> None:
    async def run(*inputs: object, repeat: int) -> Report:
        return await trials(
            with_a_tool, inputs=inputs, agents=["builtin"], repeat=repeat, store=tmp_path / "trials.sqlite"
        )

    first = await run(Input("one", key="1"), repeat=1)
    assert statuses(first) == [("1", 1, "passed", 1)], first.trials
    assert first.trials[0].spent.tool_calls
    assert statuses(await run(Input("one", key="1"), repeat=1)) == statuses(first)
    assert (tmp_path / "calls").read_text() == "x"
    again = await run(Input("one", key="1"), Input("two", key="2"), repeat=2)
    assert statuses(again) == [(key, n, "passed", 1) for n in (1, 2) for key in "12"]
    assert (tmp_path / "calls").read_text() == "xxxx"
    assert sorted(path.name for path in tmp_path.glob("trials.*")) == ["trials.sqlite"]


async def test_errors_run_again_only_where_that_is_said(tmp_path: Path) -> None:
    mended = tmp_path / "mended"

    async def run(*keys: str, rerun_errors: bool = False) -> Report:
        return await trials(
            QUESTION,
            inputs=[Input("one", key=key) for key in keys],
            agents=["builtin"],
            check=Command((str(mended),)),
            store=tmp_path / "trials.sqlite",
            rerun_errors=rerun_errors,
        )

    assert statuses(await run("1", "2")) == [("1", 1, "error", 1), ("2", 1, "error", 1)]
    mended.write_text("#!/bin/sh\n", "utf-8")
    mended.chmod(0o755)
    assert statuses(await run("1")) == [("1", 1, "error", 1)]
    assert statuses(await run("1", rerun_errors=True)) == [("1", 1, "passed", 2)]
    assert statuses(await run("1", "2")) == [("1", 1, "passed", 2), ("2", 1, "error", 1)]
    assert statuses(await run("1", "2", rerun_errors=True)) == [("1", 1, "passed", 2), ("2", 1, "passed", 2)]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"task": "Solve it"}, r"task='Solve it': give a task: think\(\)\.text\('Solve it'\)"),
        ({"workspace": "."}, r"workspace='.': give a Worktree\('.'\) or a Repository"),
        ({"check": "pytest -q"}, r"check='pytest -q': give Command\('pytest -q'\), a Judge or a function"),
        ({"budget": 5}, r"budget=5: give a Budget, such as Budget\(max_cost=5\)"),
    ],
)
async def test_what_a_plan_file_says_by_a_text_is_an_object_here(wrong: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"task": QUESTION, "inputs": ["a"], "agents": ["builtin"]} | wrong
    with pytest.raises(TypeError, match=told):
        await trials(given.pop("task"), **given)


@pytest.mark.long
async def test_a_worker_that_starts_slowly_is_no_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code = "import sys, time\nif 'thinkwell.trials._engine.worker' in sys.orig_argv: time.sleep(9)\n"
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    report = await trials(QUESTION, inputs=["one"], agents=["builtin"])
    assert report.trials[0].status == "passed"
    assert "no worker" not in caplog.text


async def test_a_budget_is_that_of_all(tmp_path: Path) -> None:
    async def run(calls: int) -> Report:
        return await trials(
            with_a_tool,
            inputs=list("abcdef"),
            agents=["builtin"],
            store=tmp_path / "trials.sqlite",
            limit=1,
            budget=Budget(max_tool_calls=calls),
        )

    def spent(report: Report) -> int:
        return sum(trial.spent.tool_calls for trial in report.trials)

    report = await run(5)
    over = [trial for trial in report.trials if trial.status == "cancelled"]
    assert 0 < len(over) < 6
    assert all(trial.error and "budget" in trial.error.lower() for trial in over)
    assert spent(report) in (5, 6)
    report = await run(1000)
    assert {trial.status for trial in report.trials} == {"passed"}
    assert spent(report) > 6


async def test_a_budget_that_is_used_exactly_begins_no_other_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, tmp_path, talker=script.uses("look").says("Done."))
    budget = Budget(max_tool_calls=1)
    report = await trials(think().text("Go: "), inputs=["a", "b"], agents=["talker"], limit=1, budget=budget)
    first, second = report.trials
    assert (first.status, first.spent.tool_calls) == ("passed", 1)
    assert (second.status, second.spent.tool_calls) == ("cancelled", 0)
    assert second.error is not None
    assert "1 of 1 tool calls" in second.error


@pytest.mark.long
async def test_a_judge_spends_of_the_budget_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = script.pauses(0.5).uses("one").uses("two").hangs()
    know(monkeypatch, tmp_path, talker=script.says("Done."), judge=judge)
    phases: list[str] = []
    report = await trials(
        think().text("Go: "),
        inputs=["a"],
        agents=["talker"],
        check=Judge("judge", "It is right."),
        budget=Budget(max_tool_calls=1),
        on_change=lambda now: phases.append(now[0].phase),
    )
    (trial,) = report.trials
    assert (trial.status, trial.result, trial.spent.tool_calls) == ("cancelled", "Done.", 2), trial
    assert trial.error is not None
    assert "budget" in trial.error
    assert "checking" in phases


async def test_cancelled_trials_end_their_agents_and_run_again(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = script.uses("look").hangs(deaf=True)
    know(monkeypatch, tmp_path, stubborn=deaf, another=deaf)
    running = anyio.Event()

    def look(now: Sequence[Trial]) -> None:
        if any(trial.spent.tool_calls for trial in now):  # the turn has begun
            running.set()

    async def run() -> Report:
        return await trials(
            think().text("Go: "),
            inputs=["a"],
            agents=["stubborn", "another"],
            limit=1,
            workspace=Worktree(repository.path),
            store=tmp_path / "trials.sqlite",
            on_change=look,
        )

    began = 0.0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(60):
            await running.wait()
        began = time.monotonic()
        tasks.cancel_scope.cancel()
    assert time.monotonic() - began < 15
    assert not left_of_worktrees(repository)
    know(monkeypatch, tmp_path, stubborn=script.says("Done."), another=script.says("Done."))
    report = await run()
    assert sorted((trial.status, trial.attempts) for trial in report.trials) == [("passed", 1), ("passed", 2)]


@ON_LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
async def test_a_worker_that_ends_by_a_signal_is_started_again(
    tmp_path: Path, number: signal.Signals
) -> None:
    killed: list[int] = []

    def kill(now: Sequence[Trial]) -> None:
        if not killed and now[0].status == "running":
            killed.extend(workers(os.getpid()))
            for process in killed:
                os.kill(process, number)

    report = await trials(
        QUESTION, inputs=["a"], agents=["builtin"], store=tmp_path / "trials.sqlite", on_change=kill
    )
    assert killed
    assert statuses(report) == [(report.trials[0].input, 1, "passed", 2)]


@pytest.mark.long
async def test_a_worker_that_others_take_for_dead_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, tmp_path, slow=script.pauses(2).says("Done."))
    store, taken = tmp_path / "trials.sqlite", list[bool]()

    def take(now: Sequence[Trial]) -> None:
        if not taken and now[0].status == "running":
            taken.append(True)
            with closing(sqlite3.connect(store)) as file, file:
                file.execute("DELETE FROM thinkwell_workers")

    report = await trials(think().text("Go: "), inputs=["a"], agents=["slow"], store=store, on_change=take)
    assert statuses(report) == [(report.trials[0].input, 1, "passed", 2)]


async def test_a_worker_that_cannot_start_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", TRUE)
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['dbos'] = None")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(WorkerFailed, match=r"exit code 1, several times(.|\n)*import of dbos halted"):
        await trials(QUESTION, inputs=["a"], agents=["builtin"])


def another_program(store: Path, when: str = "on_change=lambda _: ") -> subprocess.Popen[str]:
    """Start a program that runs trials in a store, and return it when it does.

    Args:
        store: The store.
        when: More arguments of the trials, up to what says that they run.
    """
    code = (
        "import anyio; from thinkwell import think; from thinkwell.trials import Judge, trials\n"
        "anyio.run(lambda: trials(think().text('Go'), inputs=['a'], agents=['waiter'], "
        f"store={str(store)!r}, {when}print('on', flush=True)))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    return process


@pytest.mark.long
@ON_LINUX
async def test_a_judge_that_does_not_listen_ends_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, tmp_path, waiter=script.says("Done."), judge=script.uses("look").hangs(deaf=True))
    outliving(tmp_path, "judge")
    judge = 'check=Judge("judge", "It is right."), on_change=lambda now: now[0].spent.tool_calls and '
    with another_program(tmp_path / "trials.sqlite", judge) as process:
        left = [*workers(process.pid), int((tmp_path / "pid").read_text())]
        process.kill()
        assert process.stdout is not None
        process.stdout.close()
    for pid in left:
        await wait_gone(pid)


@pytest.mark.long
@ON_LINUX
async def test_an_agent_that_only_starts_ends_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, tmp_path)
    outliving(tmp_path, "waiter")  # without a script, it answers nothing
    with another_program(tmp_path / "trials.sqlite") as process:
        left = [await number_in(tmp_path / "pid"), *workers(process.pid)]
        process.kill()
        assert process.stdout is not None
        process.stdout.close()
    for pid in left:
        await wait_gone(pid)


SAYING_AT_THE_END = """
import select, sys

class Input:
    def __init__(self, buffer):
        self.whole, self.buffer = buffer, self

    def readline(self):
        line = self.whole.readline()
        if not line:
            closed = select.poll()
            closed.register(1, 0)
            closed.poll()
            sys.stdout.write("What is not yet flushed.")
        return line

sys.stdin = Input(sys.stdin.buffer)
"""


@pytest.mark.long
@ON_LINUX
async def test_a_worker_ends_with_the_program_though_nothing_reads_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", TRUE)
    know(monkeypatch, tmp_path, waiter=script.uses("look").hangs())
    (tmp_path / "sitecustomize.py").write_text(SAYING_AT_THE_END)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    begun = "on_change=lambda now: now[0].spent.tool_calls and "
    with another_program(tmp_path / "trials.sqlite", begun) as process:
        (left,) = workers(process.pid)
        process.kill()
        assert process.stdout is not None
        process.stdout.close()
    await wait_gone(left)


@pytest.mark.long
@ON_LINUX
async def test_an_agent_that_a_worker_tries_out_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, tmp_path)
    outliving(tmp_path, "waiter")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: serve_worker(tmp_path / "trials.sqlite", agents=["waiter"]))
        await number_in(tmp_path / "pid")
        tasks.cancel_scope.cancel()
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_a_file_has_one_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know(monkeypatch, tmp_path, waiter=script.hangs())
    store = tmp_path / "trials.sqlite"
    with another_program(store) as process:
        try:
            with pytest.raises(StoreError, match="one owner at a time; wait for that, name another"):
                await trials(QUESTION, inputs=["a"], agents=["builtin"], store=store)
        finally:
            process.terminate()  # kill() would end a warm program only a moment later
            assert process.stdout is not None
            process.stdout.close()
    report = await trials(QUESTION, inputs=["a"], agents=["builtin"], store=store)
    assert report.trials[0].status == "passed"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        ("CREATE TABLE theirs (x)", "another program's database; name another file"),
        (
            "CREATE TABLE thinkwell_store AS SELECT 0 AS version",
            "version 0, and this thinkwell knows 1; use the version of thinkwell that made it, or another",
        ),
    ],
)
async def test_stores_that_are_refused(tmp_path: Path, make: str, said: str) -> None:
    store = tmp_path / "trials.sqlite"
    with closing(sqlite3.connect(store)) as file, file:
        file.execute(make)
    with pytest.raises(StoreError, match=said):
        await trials(QUESTION, inputs=["a"], agents=["builtin"], store=store)


GONE = '{"kind": "reference", "module": "/gone.py", "name": "f", "of": "script"}'
NO_TASK = '{"kind": "reference", "module": "os", "name": "fspath"}'


@pytest.mark.parametrize(
    ("change", "status", "why"),
    [
        (
            f"UPDATE thinkwell_plans SET body = json_set(body, '$.task', json('{GONE}'))",
            "error",
            "there is no such file on this machine; put the function in a module",
        ),
        pytest.param(
            f"UPDATE thinkwell_plans SET body = json_set(body, '$.task', json('{NO_TASK}'))",
            "error",
            "os:fspath: the function returned 'a'; return a task",
            marks=pytest.mark.long,
        ),
        (
            """UPDATE thinkwell_plans SET body = '{"newer": 1}'""",  # a newer release has saved it
            "cancelled",
            "this plan cannot be read here (Object contains unknown field",
        ),
        (
            "UPDATE thinkwell_trials SET attempt = 25",
            "error",
            "begun 25 times, and its worker died each time",
        ),
    ],
)
async def test_trials_that_a_worker_cannot_begin(tmp_path: Path, change: str, status: str, why: str) -> None:
    store = tmp_path / "trials.sqlite"

    def look(_: Sequence[Trial]) -> None:
        with closing(sqlite3.connect(store)) as file, file:
            file.execute(change)

    report = await trials(QUESTION, inputs=["a"], agents=["builtin"], store=store, on_change=look)
    assert [trial.status for trial in report.trials] == [status]
    assert why in str(report.trials[0].error)


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("mysql://ada:secret@host/x", r"mysql://…: a store is a path of an SQLite file, or postgresql://"),
        ("postgresql://ada:secret@127.0.0.1:1/x", r"ada:\*\*\*@127.0.0.1:1/x: it could not be opened"),
        ("README", "README: it is no SQLite file; name another file"),
        (".", "it is no file that can be written, or its folder does not exist; name another file"),
    ],
)
async def test_addresses_that_are_refused(tmp_path: Path, store: str, said: str) -> None:
    Path("README").write_text("Read me, and read me again: this is a text and no database.\n" * 20)
    with pytest.raises(StoreError, match=said) as caught:
        await trials(QUESTION, inputs=["a"], agents=["builtin"], store=store)
    assert "secret" not in str(caught.value)


@pytest.mark.long
async def test_a_full_disk_loses_nothing_that_has_ended(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, small_disk.parent, talker=script.says("long " * 20_000))
    store = small_disk / "trials.sqlite"

    async def run(count: int) -> Report:
        return await trials(
            think().text("Go: "),
            inputs=[str(n) for n in range(count)],
            agents=["talker"],
            store=store,
            limit=1,
        )

    for size in ("300k", "3m"):  # even the worker's tables do not fit, or only results do not
        subprocess.run(["mount", "-o", f"remount,size={size}", str(small_disk)], check=True)
        with pytest.raises(StoreError, match="disk is full; make room, and start again"):
            await run(20)
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    report = await run(3)
    assert {trial.status for trial in report.trials} == {"passed"}


@ON_LINUX
@pytest.mark.long
def test_kills_lose_nothing(tmp_path: Path) -> None:
    found = kill_programs(
        tmp_path / "work",
        trials=20,
        kills=5,
        calls=1000,
        seed=1,
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
    )
    assert len({row.input for row in found.rows}) == len(found.rows) == 20
    assert {row.status for row in found.rows} == {"passed"}
    assert (found.again, found.left) == (0, [])
    assert found.lived_on < 15
