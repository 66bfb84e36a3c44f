"""Trials in the blocking API."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from trials.known_agents import know

from thinkwell import think
from thinkwell.sync import trials
from thinkwell.testing import script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.trials import Trial

PROGRAM = Path(__file__).parent / "programs" / "blocking.py"

pytestmark = pytest.mark.xdist_group("trials")


@pytest.mark.long
def test_ctrl_c_cancels_trials_and_the_next_call_runs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, tmp_path, agent=script.says("I begin.").hangs())
    store = tmp_path / "trials.sqlite"
    command = [sys.executable, str(PROGRAM), str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    know(monkeypatch, tmp_path, agent=script.says("Done."))
    seen: list[Sequence[Trial]] = []
    report = trials(think().text("Go: "), inputs=["a"], agents=["agent"], store=store, on_change=seen.append)
    (trial,) = report.trials
    assert (trial.result, trial.attempts) == ("Done.", 2)
    assert seen[-1][0].status == "passed"
