"""Trajectories in ATIF, as Harbor reads them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from atif import Trajectory

from thinkwell.events import Message
from thinkwell.testing import ScriptedAgent, script
from thinkwell.trials import Report, Trial

if TYPE_CHECKING:
    from thinkwell.testing import Script

PLAYED = (
    script.thinks("Let me look.")
    .says("I read it.")
    .uses("Read a.py", kind="read", input={"path": "a.py"}, text="x = 1", id="c1")
    .uses("Run", kind="execute", input=["ls", "-l"], output={"exit": 2}, status="failed", name="bash")
    .thinks("Hm.")
    .thinks("Aha.")
    .uses("Search")
    .says("Done.")
    .updates(
        {
            "sessionUpdate": "usage_update",
            "used": 100,
            "size": 200,
            "cost": {"amount": 0.5, "currency": "USD"},
        }
    )
    .stops()
)


async def trajectories(folder: Path, *scripts: Script) -> list[dict[str, Any]]:
    """Record runs, save their trajectories, and return them."""
    trials: list[Trial] = []
    for number, played in enumerate(scripts):
        path = folder / f"{number}.ndjson"
        async with ScriptedAgent(played).open(record=path) as agent:
            await agent.think().text("Fix it.").stream().wait()
        trials.append(
            Trial(input="a", agent="b", repeat=number + 1, status="passed", score=1, recording=str(path))
        )
    await Report(trials).save_trajectories(folder / "made" / "atif")
    files = sorted((folder / "made" / "atif").iterdir(), key=lambda file: int(file.stem))
    return [json.loads(file.read_text("utf-8")) for file in files]


async def test_a_recorded_run_is_a_trajectory(tmp_path: Path) -> None:
    (told,) = await trajectories(tmp_path, PLAYED)
    Trajectory.model_validate(told)
    steps = told.pop("steps")
    times = [datetime.fromisoformat(step.pop("timestamp")) for step in steps]
    assert times == sorted(times)
    assert (times[0] - datetime.now(times[0].tzinfo)).total_seconds() > -60
    assert told == {
        "schema_version": "ATIF-v1.8",
        "session_id": "session-1",
        "agent": {"name": "scripted", "version": told["agent"]["version"]},
        "final_metrics": {"total_cost_usd": 0.5, "total_steps": 4},
        "extra": {"trial": {"input": "a", "repeat": 1, "status": "passed", "score": 1.0}},
    }
    assert told["agent"]["version"] != "unknown"
    read, run = steps[1].pop("tool_calls")
    assert read == {
        "tool_call_id": "c1",
        "function_name": "read",
        "arguments": {"path": "a.py"},
        "extra": {"title": "Read a.py", "kind": "read", "status": "completed"},
    }
    assert (run["function_name"], run["arguments"]) == ("bash", {"input": ["ls", "-l"]})
    (searched,) = steps[2].pop("tool_calls")
    assert searched["arguments"] == {}
    results = [step.pop("observation")["results"] for step in steps[1:3]]
    assert results[0][0] == {"source_call_id": "c1", "content": "x = 1"}
    assert json.loads(results[0][1]["content"]) == {"exit": 2}
    assert steps == [
        {"step_id": 1, "source": "user", "message": "Fix it."},
        {"step_id": 2, "source": "agent", "message": "I read it.", "reasoning_content": "Let me look."},
        {"step_id": 3, "source": "agent", "message": "", "reasoning_content": "Hm.Aha."},
        {"step_id": 4, "source": "agent", "message": "Done."},
    ]


async def test_what_was_told_to_the_agent_meanwhile_is_a_step(tmp_path: Path) -> None:
    echo = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "Fix it."}}
    played = script.updates(echo).says("Well.").hears("Faster.").says("Done.").stops()
    async with ScriptedAgent(played, steering=True).open(record=tmp_path / "run.ndjson") as agent:
        stream = agent.think().text("Fix it.").stream()
        async for event in stream:
            if isinstance(event, Message) and event.text == "Well.":
                await stream.steer("Faster.")
    trial = Trial(input="a", agent="b", repeat=1, recording=str(tmp_path / "run.ndjson"))
    await Report([trial]).save_trajectories(tmp_path)
    told = json.loads((tmp_path / "1.json").read_text("utf-8"))
    Trajectory.model_validate(told)
    assert [(step["source"], step["message"]) for step in told["steps"]] == [
        ("user", "Fix it."),
        ("agent", "Well."),
        ("user", "Faster."),
        ("agent", "Done."),
    ]


async def test_a_prompt_with_more_than_text_has_its_text(tmp_path: Path) -> None:
    async with ScriptedAgent(script.says("I see.")).open(record=tmp_path / "run.ndjson") as agent:
        await agent.think().text("Look.").resource("https://example.org/plan").text("Well?").run()
    trial = Trial(input="a", agent="b", repeat=1, recording=str(tmp_path / "run.ndjson"))
    await Report([trial]).save_trajectories(tmp_path)
    told = json.loads((tmp_path / "1.json").read_text("utf-8"))
    assert [step["message"].split() for step in told["steps"]] == [["Look.", "Well?"], ["I", "see."]]


async def test_every_end_of_a_run_is_a_trajectory(tmp_path: Path) -> None:
    told = await trajectories(
        tmp_path, script.crashes(), script.says("No.").fails(message="Oh."), script.refuses()
    )
    for each in told:
        Trajectory.model_validate(each)
    assert [len(each["steps"]) for each in told] == [1, 2, 1]


async def test_what_cannot_be_read_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trials = [Trial(input="a", agent="b", repeat=1), Trial(input="a", agent="b", repeat=2, recording="gone")]
    with caplog.at_level(logging.WARNING, "thinkwell"):
        await Report(trials).save_trajectories(tmp_path / "atif")
    assert list((tmp_path / "atif").iterdir()) == []
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "The recording of trial ('a', 'b', 2) is left out"
    ]


@pytest.mark.long
@pytest.mark.skipif(sys.version_info < (3, 12), reason="Harbor needs Python 3.12")
def test_harbor_takes_them(tmp_path: Path) -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("there is no uv, which installs Harbor beside everything else")
    anyio.run(trajectories, tmp_path, PLAYED, script.crashes())
    command = [
        uv,
        "run",
        "--no-project",
        "--isolated",
        "--quiet",
        "--python",
        sys.executable,
        "--with",
        "harbor==0.25.0",
    ]
    env = {**os.environ, "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(tmp_path / "uv"))}
    (tmp_path / "made" / "atif" / "wrong.json").write_text('{"schema_version": "ATIF-v1.8", "steps": []}')
    for file in sorted((tmp_path / "made" / "atif").iterdir()):
        done = subprocess.run(
            [*command, "python", "-m", "harbor.utils.trajectory_validator", str(file)],
            env=env,
            check=False,
            capture_output=True,
            text=True,
        )
        if "harbor" in done.stderr and "No solution found" in done.stderr:
            pytest.skip("no registry has Harbor")
        assert done.returncode == (file.stem == "wrong"), done.stdout + done.stderr
