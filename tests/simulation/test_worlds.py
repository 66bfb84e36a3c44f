"""Some worlds, and how to repeat one: ``make simulate`` plays ten thousand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thinkwell.testing import Fault, simulate, simulate_once

from .processes import FEW, PROC, play, survivors
from .runner import main
from .steering import steered
from .sweeps import FAULTS, sweep
from .tries import ENDS, SCENES, Scene, sweep_tries
from .worlds import world

if TYPE_CHECKING:
    from thinkwell.testing import Simulation, SimulationReport

ROOT = Path(__file__).parents[2]
BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@BACKENDS
@pytest.mark.parametrize("many", [10, pytest.param(300, marks=pytest.mark.long)])
def test_what_must_hold_holds_in_every_world(backend: str, many: int) -> None:
    report = simulate(world, seeds=many, backends=[backend])
    if many == 300:  # the dice have been everywhere
        assert set(report.injected) == set(Fault)
        outcomes = {name.removeprefix("runs that came to ") for name in report.noted}
        assert {"a result", "ThoughtCancelled", "ThoughtTimeout", "AgentExited", "ResultInvalid"} <= outcomes


@BACKENDS
@pytest.mark.parametrize("many", [25, pytest.param(300, marks=pytest.mark.long)])
def test_what_is_said_while_an_agent_works_is_read_once_and_in_its_run(backend: str, many: int) -> None:
    report = simulate(steered, seeds=many, backends=[backend])
    outcomes = {name.removeprefix("steered, and it came to ") for name in report.noted if "came to" in name}
    assert {"injected", "refused", "RunEnded", "SteeringUnsupported"} <= outcomes


@BACKENDS
@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_fault_and_a_cancellation_at_each_message(backend: str, in_session: bool, each: bool) -> None:
    names = set[str]()
    kinds = 10 + in_session
    for name, at, program in sweep(backend, in_session=in_session)[:: 1 if each else kinds + 1]:
        names.add(name)
        simulate_once(program, at, backend)
    assert len(names) == kinds


@BACKENDS
@pytest.mark.parametrize(
    ("scene", "each"),
    [
        pytest.param(
            scene,
            each,
            id=f"{scene.comes_to}{scene.in_session:d}-{each}",
            marks=[]
            if (scene.comes_to, scene.in_session, each) == ("a result", True, False)
            else [pytest.mark.long],
        )
        for scene in SCENES
        for each in (False, True)
    ],
)
def test_tries_with_a_fault_and_a_cancellation_at_each_message(
    backend: str, scene: Scene, each: bool
) -> None:
    kinds = len(FAULTS) + len(ENDS)
    programs = sweep_tries(backend, scene)[:: 1 if each else kinds + 1]
    for _, at, program in programs:
        simulate_once(program, at, backend)
    assert len({name for name, _, _ in programs}) == kinds


@pytest.mark.skipif(not PROC.exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(
            scene,
            id=f"{scene.how}-{scene.step}",
            marks=[pytest.mark.fast_time(5)] if scene.how in ("close", "deaf") else [],
        )
        for scene in FEW
    ],
)
async def test_an_agent_that_is_a_process_goes_wrong(
    scene: object, tmp_path: Path, report: SimulationReport
) -> None:
    assert scene in FEW
    await play(report, FEW[FEW.index(scene)], tmp_path)
    assert report.checked["no process is left"] == 1


@pytest.mark.skipif(not PROC.exists(), reason="looks at processes in /proc")
def test_processes_that_are_left_are_found(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import time; print(flush=True); time.sleep(60)"],
        env={**os.environ, "THINKWELL_SCENE": str(tmp_path)},
        stdout=subprocess.PIPE,
    )
    assert sleeper.stdout is not None
    with sleeper.stdout:
        sleeper.stdout.readline()  # it runs
    try:
        assert survivors(tmp_path) == [sleeper.pid]
    finally:
        sleeper.kill()
        sleeper.wait()
    assert survivors(tmp_path) == []


def run(*arguments: str, **variables: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.long
@pytest.mark.parametrize("many", [2, pytest.param(15, marks=pytest.mark.long)])
def test_the_same_seed_is_the_same_world_in_every_process(many: int) -> None:
    options = ("--seeds", str(many), "--digests")
    one, two = (run(*options, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert one == two
    assert len(set(re.findall(r"[0-9a-f]{16}", one))) > 1.3 * many


def test_a_named_seed_is_repeated_and_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THINKWELL_SEED", "5")
    assert main(["--backend", "trio", "--trace"]) == 0
    done = simulate_once(world, 5, "trio")
    assert capsys.readouterr().out.startswith("\n".join(done.trace()))


async def broken(simulation: Simulation) -> None:
    """A world in which something does not hold, now and then."""
    simulation.note("this is what happened")
    simulation.check("seeds are small", simulation.seed < 3)


def test_a_failure_is_printed_with_what_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--seeds", "4", "--backend", "trio", "--workers", "1", "--processes", "0", "--no-sweep"]
    assert main(options, {"broken": broken}) == 1
    shown = capsys.readouterr().out
    assert "It does not hold that seeds are small" in shown
    assert "this is what happened" in shown
    assert "THINKWELL_SEED=3 " in shown
    assert "-m tests.simulation --backend trio --world broken" in shown
    assert main([*options[2:], "--seeds", "3"], {"broken": broken}) == 0


def test_a_named_seed_that_fails_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THINKWELL_SEED", "9")
    assert main(["--backend", "asyncio"], {"broken": broken}) == 1
    assert "Seed 9 on asyncio" in capsys.readouterr().out


def test_a_report_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--workers", "1", "--processes", "1", "--no-sweep"]) == 0
    check_report(capsys.readouterr().out)


@pytest.mark.long
def test_workers_share_the_worlds() -> None:
    check_report(run("--seeds", "2", "--workers", "2", "--processes", "1", "--no-sweep"))


def check_report(shown: str) -> None:
    assert "invariants checked" in shown
    assert "9 runs in" in shown
    assert "0 failed" in shown


@pytest.mark.parametrize(
    ("seed", "backend"),
    [pytest.param(4249, "asyncio", id="an agent is killed while another session of its has a question")],
)
def test_worlds_that_were_once_taken_for_wrong(seed: int, backend: str) -> None:
    simulate_once(world, seed, backend)
