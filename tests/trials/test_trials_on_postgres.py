"""Trials in PostgreSQL: several workers, leases, limits, and what is wrong with a database."""

from __future__ import annotations

import base64
import os
import pickle
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from postgres_servers import PostgresServer, running_postgres
from trials.kills import kill_workers
from trials.known_agents import know

from thinkwell import Budget, think
from thinkwell.testing import script
from thinkwell.trials import Pace, Ready, StoreError, serve_worker, trials

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from thinkwell.trials import Report, Trial

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.xdist_group("postgres")]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server."""
    with running_postgres() as running:
        yield running


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of the test's own, which it can stop."""
    with running_postgres() as running:
        yield running


@pytest.fixture
def store(server: PostgresServer) -> str:
    """A database of its own."""
    return server.database()


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs see the folder for temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.chdir(tmp_path)


async def run(
    store: str, agents: Sequence[str], *, count: int = 1, worker: bool = True, **options: object
) -> Report:
    """Run trials."""
    inputs = [f"input {number}" for number in range(count)]
    return await trials(
        think().text("Go: "),
        inputs=inputs,
        agents=agents,
        store=store,
        worker=worker,
        **options,  # type: ignore[arg-type]
    )


@contextmanager
def worker_program(store: str, *agents: str) -> Generator[subprocess.Popen[str]]:
    """Run ``thinkwell worker`` in a block, and wait until it says that it runs."""
    words = [word for agent in agents for word in ("--agent", agent)]
    command = [sys.executable, "-m", "thinkwell", "worker", *words]
    env = {**os.environ, "THINKWELL_DB": store}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert "runs" in process.stderr.readline()
            yield process
        finally:
            process.terminate()
            process.communicate()


async def test_a_worker_elsewhere_runs_what_it_can(
    store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    know(monkeypatch, tmp_path, talker=script.says("Done."))
    said: list[Ready] = []
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve_worker(store, agents=["talker", "missing"], ready=said.append))
            report = await run(store, ["talker"], worker=False)
            assert [trial.result for trial in report.trials] == ["Done."]
            (ready,) = said
            assert ready.agents == ("talker",)
            assert [*ready.refused] == ["missing"]
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(lambda: run(store, ["missing"], worker=False))
                began = time.monotonic()
                while "no worker can run the agent 'missing'" not in caplog.text:
                    assert time.monotonic() - began < 10
                    await anyio.sleep(0.1)
                waiting.cancel_scope.cancel()
            tasks.cancel_scope.cancel()


async def test_a_worker_leaves_when_it_is_asked_to(
    store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    know(monkeypatch, tmp_path, stubborn=script.says("I begin.").hangs(deaf=True))
    running = anyio.Event()

    def look(now: Sequence[Trial]) -> None:
        if now[0].phase:
            running.set()

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            with worker_program(store, "stubborn") as process:
                tasks.start_soon(lambda: run(store, ["stubborn"], worker=False, on_change=look))
                await running.wait()
                process.terminate()
                began = time.monotonic()
                await anyio.to_thread.run_sync(process.wait)
            assert process.returncode == 143
            assert time.monotonic() - began < 20
            tasks.cancel_scope.cancel()
    know(monkeypatch, tmp_path, stubborn=script.says("Done."))
    report = await run(store, ["stubborn"])
    assert [(trial.status, trial.attempts) for trial in report.trials] == [("passed", 2)]


async def test_no_pickle_is_read(
    store: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    know(monkeypatch, tmp_path, talker=script.says("Done."))
    await run(store, ["talker"])
    done = tmp_path / "it ran"
    bomb = base64.b64encode(pickle.dumps(_Bomb(str(done)))).decode()
    # The next trial that is put in the queue gets a pickle for its input.
    server.ask(
        store,
        "CREATE FUNCTION spoil() RETURNS trigger AS $$ BEGIN "
        "IF NOT EXISTS (SELECT FROM thinkwell_dbos.workflow_status WHERE serialization = 'py_pickle') "
        f"THEN NEW.inputs = '{bomb}'; NEW.serialization = 'py_pickle'; END IF; RETURN NEW; END $$ "
        "LANGUAGE plpgsql; CREATE TRIGGER spoil BEFORE INSERT ON thinkwell_dbos.workflow_status "
        "FOR EACH ROW EXECUTE FUNCTION spoil()",
    )
    report = await run(store, ["talker"], count=3)
    assert {trial.status for trial in report.trials} == {"passed"}
    spoilt = "SELECT status FROM thinkwell_dbos.workflow_status WHERE serialization = 'py_pickle'"
    assert server.ask(store, spoilt) == "ERROR"
    assert not done.exists()


@pytest.mark.virtual_time
async def test_waiting_for_many_trials_is_little_work(store: str) -> None:
    waiting = anyio.Event()

    def look(_: Sequence[Trial]) -> None:
        waiting.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            lambda: run(store, ["missing"], count=20_000, worker=False, on_change=look),
        )
        await waiting.wait()
        used = time.process_time()  # whatever else this machine does
        await anyio.sleep(30)
        assert time.process_time() - used < 30 / 3
        tasks.cancel_scope.cancel()


async def test_a_database_that_comes_back_loses_nothing(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = own_server.database()
    know(monkeypatch, tmp_path, slow=script.pauses(4).says("Done."))
    stopped = False

    def stop(now: Sequence[Trial]) -> None:
        nonlocal stopped
        if now[0].phase and not stopped:
            stopped = True
            own_server.stop()
            own_server.start()

    report = await run(store, ["slow"], count=4, on_change=stop)
    assert stopped
    assert [(trial.status, trial.attempts) for trial in report.trials] == [("passed", 1)] * 4


async def test_queues_that_cannot_be_read_for_a_while_lose_nothing(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = own_server.database()
    know(monkeypatch, tmp_path, slow=script.pauses(4).says("Done."))
    broken = False

    def spoil(now: Sequence[Trial]) -> None:
        nonlocal broken
        if now[0].phase and not broken:
            broken = True
            own_server.ask(store, "ALTER TABLE thinkwell_dbos.workflow_status RENAME TO away")
            until = time.monotonic() + 30
            while not re.search(r"STATEMENT: .*status IN .*name ", own_server.log(), re.DOTALL):
                assert time.monotonic() < until
            own_server.ask(store, "ALTER TABLE thinkwell_dbos.away RENAME TO workflow_status")

    report = await run(store, ["slow"], on_change=spoil)
    assert broken
    assert [(trial.status, trial.attempts) for trial in report.trials] == [("passed", 1)]


async def test_a_database_that_is_gone_is_an_error(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = own_server.database()
    know(monkeypatch, tmp_path, talker=script.says("Done."), waiter=script.hangs())
    assert (await run(store, ["talker"])).trials[0].status == "passed"
    stopped = False

    def stop(now: Sequence[Trial]) -> None:
        nonlocal stopped
        if now[1].phase and not stopped:
            stopped = True
            own_server.stop()

    try:
        with pytest.raises(StoreError, match="check that it runs, and start again: what has ended is kept"):
            await run(store, ["talker", "waiter"], on_change=stop)
    finally:
        own_server.start()
    know(monkeypatch, tmp_path, waiter=script.says("Done."))
    report = await run(store, ["talker", "waiter"])
    assert [(trial.status, trial.attempts) for trial in report.trials] == [("passed", 1), ("passed", 2)]


async def test_a_worker_older_than_the_store_leaves(store: str, server: PostgresServer) -> None:
    made = "CREATE TABLE thinkwell_store (version INTEGER); INSERT INTO thinkwell_store VALUES (2)"
    server.ask(store, made)
    with pytest.raises(StoreError, match="version 2, and this thinkwell knows 1; use"):
        await serve_worker(store, agents=["builtin"])


async def test_agents_have_limits_over_all_workers(
    store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    know(monkeypatch, tmp_path, one=script.pauses(0.5).says("Done."), few=script.says("Done."))
    most = 0

    def count(now: Sequence[Trial]) -> None:
        nonlocal most
        most = max(most, sum(trial.agent == "one" and trial.status == "running" for trial in now))

    paces = {"one": Pace(at_once=1), "few": Pace(starts=2, seconds=5.0)}
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(lambda: serve_worker(store, agents=["one", "few"], paces=paces))
            began = time.monotonic()
            report = await run(store, ["one", "few"], count=4, worker=False, on_change=count)
            tasks.cancel_scope.cancel()
            assert time.monotonic() - began > 5
            assert {trial.status for trial in report.trials} == {"passed"}
            assert most == 1


async def test_a_budget_is_that_of_all_workers(
    store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    know(monkeypatch, tmp_path, user=script.uses("look").uses("look").says("Done."))
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(lambda: serve_worker(store, agents=["user"], limit=1))
            budget = Budget(max_tool_calls=6)
            report = await run(store, ["user"], count=8, worker=False, budget=budget)
            tasks.cancel_scope.cancel()
            assert 6 <= sum(trial.spent.tool_calls for trial in report.trials) <= 8
            assert "cancelled" in {trial.status for trial in report.trials}


def test_kills_and_stops_of_workers_lose_nothing(server: PostgresServer, tmp_path: Path) -> None:
    found = kill_workers(
        tmp_path / "work", server, workers=2, trials=10, stops=1, calls=1000, seed=1, env=os.environ
    )
    assert len({row.input for row in found.rows}) == len(found.rows) == 10
    assert {row.status for row in found.rows} == {"passed"}
    assert (found.again, found.left) == (0, [])
    assert found.lived_on < 20


class _Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path(self._path),))
