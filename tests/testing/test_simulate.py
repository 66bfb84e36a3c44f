"""`simulate`: what it runs, what it checks, and how it fails."""

from __future__ import annotations

import asyncio
import logging
import pickle
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from thinkwell import AgentError, Buffer, ThoughtCancelled
from thinkwell.testing import Fault, ScriptedAgent, SimulationFailed, script, simulate, simulate_once

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.testing import Simulation, SimulationReport

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])
TOLD = script.thinks("Hm. ").says("One. ").uses("Read").pauses(600).says("Two.")


async def review(simulation: Simulation) -> None:
    """What a user may want to simulate."""
    async with simulation.open(ScriptedAgent(TOLD)) as agent:
        stream = agent.think().text("Go").stream(include="all")
        simulation.watch(stream, include="all")
        simulation.check("there is a result", (await stream.result).endswith("Two."))


def fails(
    program: Callable[[Simulation], Awaitable[object]], match: str, backend: str = "asyncio", **options: Any
) -> SimulationFailed:
    with pytest.raises(SimulationFailed, match=match) as caught:
        simulate_once(program, 3, backend, **options)
    return caught.value


def test_a_program_is_run_for_each_seed() -> None:
    report = simulate(review, seeds=20)
    assert report.runs == 40
    assert report.virtual_seconds >= 40 * 600
    assert report.checked["there is a result"] == 40
    assert report.checked["events are in the order of the wire"] == 40
    assert report.injected[Fault.SPLIT] > 10
    text = str(report)
    assert "40 runs" in text
    assert "invariants checked" in text
    assert "40 there is a result" in text


def test_seeds_can_be_named() -> None:
    seen: list[int] = []

    async def program(simulation: Simulation) -> None:
        seen.append(simulation.seed)
        simulation.count("seen")

    report = simulate(program, seeds=[5, 7], backends=["trio"])
    assert seen == [5, 7]
    assert report.noted == {"seen": 2}


def test_the_environment_names_the_only_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_SEED", "11")
    assert simulate(review, seeds=1000).runs == 2


@BACKENDS
def test_the_same_seed_is_the_same_run(backend: str) -> None:
    runs = [simulate_once(review, seed, backend) for seed in (1, 2, 1)]
    assert runs[0].digest() == runs[2].digest() != runs[1].digest()
    assert runs[0].trace() == runs[2].trace()


@BACKENDS
def test_a_failure_names_its_seed_and_shows_what_happened(backend: str) -> None:
    async def program(simulation: Simulation) -> None:
        await review(simulation)
        simulation.note("now it comes")
        simulation.check("one is two", holds=False, why="it is not")

    failure = fails(program, "It does not hold that one is two: it is not", backend)
    assert (failure.seed, failure.backend) == (3, backend)
    shown = str(failure)
    assert '"method":"session/prompt"' in shown
    assert "now it comes" in shown
    assert shown.endswith(f"Seed 3 on {backend}. Repeat it with THINKWELL_SEED=3")
    assert str(pickle.loads(pickle.dumps(failure))) == shown


def test_an_exception_is_a_failure_with_its_traceback() -> None:
    async def program(_simulation: Simulation) -> None:
        async with anyio.create_task_group():
            raise LookupError("the user's")

    assert "LookupError: the user's" in fails(program, "Traceback").why

    async def two(_simulation: Simulation) -> None:
        async def one() -> None:
            raise LookupError("first")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)

    fails(two, "unhandled errors in a TaskGroup")


@BACKENDS
def test_what_waits_for_ever_is_a_failure(backend: str) -> None:
    async def program(_simulation: Simulation) -> None:
        await anyio.sleep_forever()

    began = time.perf_counter()
    fails(program, "does not end within 3600 seconds", backend)
    assert time.perf_counter() - began < 5


def test_what_runs_for_ever_is_a_failure() -> None:
    async def program(_simulation: Simulation) -> None:
        while True:
            await anyio.lowlevel.checkpoint()

    fails(program, "does not end within 0.1 seconds of real time", real_limit=0.1)


def test_other_threads_can_simulate_too() -> None:
    reports: list[SimulationReport] = []
    thread = threading.Thread(target=lambda: reports.append(simulate(review, seeds=1)))
    thread.start()
    thread.join()
    assert reports[0].runs == 2


def test_a_task_that_is_left_is_a_failure() -> None:
    left: list[asyncio.Task[bool]] = []

    async def program(_simulation: Simulation) -> None:
        left.append(asyncio.create_task(asyncio.Event().wait()))

    fails(program, "no task is left: 1 are")


def test_a_task_of_trio_that_is_left_is_a_failure() -> None:
    import trio

    async def program(_simulation: Simulation) -> None:
        trio.lowlevel.spawn_system_task(trio.sleep_forever)

    fails(program, "no task is left: 1 are", "trio")


def test_files_that_are_left_are_a_failure(tmp_path: Path) -> None:
    files: list[Any] = []

    async def opens(_simulation: Simulation) -> None:
        files.append((tmp_path / "file").open("w"))

    fails(opens, "no file is left open")
    files.pop().close()

    async def makes(_simulation: Simulation) -> None:
        Path(tempfile.mkdtemp()).joinpath("x").touch()

    fails(makes, "no temporary file is left")


def test_warnings_and_lost_exceptions_are_failures() -> None:
    async def warns(_simulation: Simulation) -> None:
        warnings.warn("careful", stacklevel=1)

    fails(warns, "there is no warning: .'UserWarning: careful'")

    async def loses(_simulation: Simulation) -> None:
        Loses()

    fails(loses, "no exception is lost: .*in __del__")

    async def forgets(_simulation: Simulation) -> None:
        failing = asyncio.get_running_loop().create_future()
        failing.set_exception(LookupError("forgotten"))

    fails(forgets, "no error is logged: .*never retrieved")


class Loses:
    def __del__(self) -> None:
        raise LookupError("in __del__")


def test_errors_in_the_log_are_failures_unless_they_are_expected() -> None:
    async def program(simulation: Simulation) -> None:
        simulation.error_logs_expected = simulation.backend == "trio"
        logging.getLogger("thinkwell.x").error("it is %s", "wrong")

    assert "thinkwell.x ERROR: it is wrong" in "\n".join(fails(program, "no error is logged").trace)
    assert simulate_once(program, 3, "trio").report.checked["no error is logged"] == 0


def test_what_is_logged_behind_the_end_is_in_the_trace_too() -> None:
    async def program(simulation: Simulation) -> None:
        async with simulation.open(ScriptedAgent(script.fails(1, "no")), rates={}) as agent:
            await agent.think().text("Go").stream().wait()

    assert "its result was never awaited" in "\n".join(simulate_once(program, 3, "asyncio").trace())


def test_garbage_is_collected_as_before() -> None:
    import gc

    gc.disable()
    try:
        simulate(review, seeds=1, backends=["trio"])
        assert not gc.isenabled()
    finally:
        gc.enable()
    simulate(review, seeds=1, backends=["trio"])
    assert gc.isenabled()


def test_a_run_can_be_cancelled_at_each_message() -> None:
    async def program(simulation: Simulation) -> None:
        async with ScriptedAgent(TOLD, complete=False).connect() as transport:
            connection = simulation.chaotic(transport, rates={})
            from thinkwell import open_agent

            async with open_agent("it", transport=connection) as agent:
                stream = agent.think().text("Go").stream()
                simulation.watch(stream)
                await connection.reached(simulation.seed)
                stream.cancel()
                await stream.wait()
                simulation.check("it was cancelled", isinstance(stream.result.exception(), ThoughtCancelled))

    assert simulate(program, seeds=range(1, 8)).checked["it was cancelled"] == 14


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.HALF_LINE])
def test_a_connection_can_be_dropped_at_each_message(fault: Fault) -> None:
    async def program(simulation: Simulation) -> None:
        try:
            played = ScriptedAgent(TOLD, complete=False)
            async with simulation.open(played, rates={}, at={simulation.seed: fault}) as agent:
                stream = agent.think().text("Go").stream()
                simulation.watch(stream)
                await stream.result
        except AgentError:
            simulation.count("failed")

    report = simulate(program, seeds=range(1, 8))
    assert report.injected[fault] == 14
    assert report.noted["failed"] == 14


@pytest.mark.parametrize("overflow", ["coalesce", "drop_oldest"])
def test_runs_with_a_buffer_are_watched(overflow: Any) -> None:
    told = script
    for number in range(40):
        told = told.says(f"{number} ")

    async def program(simulation: Simulation) -> None:
        buffer = Buffer(max_events=5, overflow=overflow)
        async with simulation.open(ScriptedAgent(told)) as agent:
            stream = agent.think().text("Go").stream(buffer=buffer)
            simulation.watch(stream, buffer=buffer)
            await stream.wait()

    report = simulate(program, seeds=5)
    assert report.checked["buffers report all text that they lose"] == 10


def test_runs_of_a_session_are_told_apart_by_their_prompts() -> None:
    async def program(simulation: Simulation) -> None:
        told = script.says("One.").stops().says("Two.").stops().says("Three.")
        async with simulation.open(ScriptedAgent(told)) as agent, agent.session() as session:
            simulation.watch_session(session)
            for text in ("first", "second", "third"):
                stream = session.think().text(text).stream(include="all")
                simulation.watch(stream, mark=text, include="all")
                await stream.wait()

    report = simulate(program, seeds=10)
    assert report.checked["events are in the order of the wire"] == 60
    assert report.checked["no update is lost, and none is made up"] == 20


def test_what_runs_do_not_keep_cannot_be_missed_in_their_session() -> None:
    async def program(simulation: Simulation) -> None:
        async with simulation.open(ScriptedAgent(script.says("One."))) as agent, agent.session() as session:
            simulation.watch_session(session)
            stream = session.think().text("Go").stream()
            simulation.watch(stream)
            await stream.wait()

    assert simulate(program, seeds=2).checked["events are in the order of the wire"] == 4


def test_there_has_to_be_one_connection_or_it_has_to_be_said_which() -> None:
    async def program(simulation: Simulation) -> None:
        one, two = ScriptedAgent(script.says("One.")), ScriptedAgent(script.says("Two."))
        async with simulation.open(one) as agent, simulation.open(two) as other:
            await other.think().text("Go").run()
            stream = agent.think().text("Go").stream()
            await stream.wait()
            simulation.watch(stream)

    fails(program, "not just one")


@pytest.mark.parametrize(
    "options", [{"seeds": 0}, {"seeds": -1}, {"seeds": []}, {"backends": ()}], ids=lambda o: str(o)
)
def test_nothing_to_run_is_an_error(options: dict[str, Any]) -> None:
    async def program(_simulation: Simulation) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="that would run nothing"):
        simulate(program, **options)
