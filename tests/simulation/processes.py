"""Scenes with agents that are processes: in real time, so only a few."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from thinkwell import AgentError, AgentExited, AgentStartFailed, ThinkwellError, open_agent

if TYPE_CHECKING:
    from thinkwell.testing import SimulationReport

PROGRAM: Final = str(Path(__file__).parent / "programs" / "faulty_agent.py")
PROC: Final = Path("/proc")
WITHIN: Final = 60.0
CANCEL_AFTER: Final = 1.0
"""Seconds until a run that hangs is cancelled."""

EXIT_CODES: Final = {"exit": 7, "kill": -signal.SIGKILL, "flood": None, "close": None, "deaf": None}


class Scene(NamedTuple):
    """What goes wrong, and at which step."""

    how: str
    step: int


SCENES: Final = (
    *(Scene("exit", step) for step in range(5)),
    *(Scene("kill", step) for step in range(5)),
    *(Scene("flood", step) for step in range(5)),
    Scene("close", 2),
    Scene("close", 3),
    Scene("deaf", 2),
    Scene("deaf", 4),
)
FEW: Final = (
    Scene("exit", 1),
    Scene("kill", 3),
    Scene("flood", 2),
    Scene("flood", 0),
    Scene("close", 3),
    Scene("deaf", 2),
)


async def play(report: SimulationReport, scene: Scene, folder: Path) -> None:
    """Play a scene, and check what is left of it."""
    began = time.perf_counter()
    name = f"{scene.how} at step {scene.step}"
    text, error = "", None
    with anyio.fail_after(WITHIN):
        try:
            text = await _run(scene, folder)
        except ThinkwellError as exc:
            error = exc
    report.runs += 1
    report.noted[f"process: {name}"] += 1
    for what, holds in _expectations(scene, text, error):
        report.checked[what] += 1
        assert holds, f"{name}: it does not hold that {what}: {error!r}, {text!r}"
    left = survivors(folder)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    report.checked["no process is left"] += 1
    assert left == [], f"{name}: {left} are left"
    report.seconds += time.perf_counter() - began


async def _run(scene: Scene, folder: Path) -> str:
    command = [sys.executable, "-I", "-S", PROGRAM, scene.how, str(scene.step)]
    mark = {"THINKWELL_SCENE": str(folder)}
    async with open_agent(command=command, env=mark) as agent:
        stream = agent.think().text("Go").stream()
        if scene == ("deaf", 2):
            await anyio.sleep(CANCEL_AFTER)
            return stream.view.text  # and leave what hangs
        return await stream.result


def _expectations(scene: Scene, text: str, error: ThinkwellError | None) -> list[tuple[str, bool]]:
    """Return what has to hold."""
    how, step = scene
    if how == "flood" or step == 4:
        return [("a run goes well whatever is on standard error", text == "said" and error is None)]
    if how == "deaf":
        return [("a block that is left ends though the agent hangs", error is None)]
    kind: type[AgentError] = AgentStartFailed if step == 0 else AgentExited
    found = [("an agent's end is told as that", isinstance(error, kind))]
    data: Any = error
    if EXIT_CODES[how] is not None and isinstance(error, kind):
        found.append(("the error has the exit code", data.exit_code == EXIT_CODES[how]))
        found.append(("the error has the end of standard error", "last words" in data.stderr_tail))
    return found


def survivors(folder: Path) -> list[int]:
    """Return the processes that run and were started for a scene."""
    mark = b"THINKWELL_SCENE=" + os.fsencode(folder)
    found: list[int] = []
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            marked = mark in (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # it has gone meanwhile
            continue
        if marked and state not in "ZX":
            found.append(int(entry.name))
    return found
