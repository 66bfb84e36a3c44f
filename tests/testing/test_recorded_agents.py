"""An agent that does again what it did in a recording."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from thinkwell import open_agent
from thinkwell._recording._records import VERSION, Header, encode_record
from thinkwell.testing import RecordedAgent, ScriptedAgent, replay_agent, script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
async def recording(tmp_path: Path) -> Path:
    """A recording of one turn."""
    played = ScriptedAgent(script.thinks("hm").says("Hello"))
    async with played.open(record=tmp_path / "run.ndjson", cwd=tmp_path) as agent:
        assert await agent.think().text("Hi").run() == "Hello"
    return tmp_path / "run.ndjson"


async def test_it_does_the_same_again_on_every_connection(recording: Path) -> None:
    recorded = RecordedAgent(recording)
    for _ in range(2):
        async with recorded.open() as agent:
            assert agent.name == "recorded"
            assert await agent.think().text("Hi").run() == "Hello"
    assert [prompt.text for prompt in recorded.sent.prompts] == ["Hi", "Hi"]


async def test_a_process_does_so_too(recording: Path) -> None:
    async with open_agent(command=RecordedAgent(recording).program()) as agent:
        assert await agent.think().text("Hi").run() == "Hello"


async def test_a_process_that_starts_in_another_folder(
    recording: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recording.parent)
    command = replay_agent(recording.name)
    assert command[-2:] == (str(recording), "0")
    async with open_agent(command=command, cwd=tmp_path_factory.mktemp("elsewhere")) as agent:
        assert await agent.think().text("Hi").run() == "Hello"
    recorded = RecordedAgent(recording.name)
    assert repr(recorded) == f"<RecordedAgent of {str(recording)!r}>"
    monkeypatch.chdir("/")
    async with recorded.open() as agent:
        assert await agent.think().text("Hi").run() == "Hello"


def started(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What comes of an agent that is started with these arguments."""
    command = [sys.executable, "-m", "thinkwell.testing", *map(str, arguments)]
    return subprocess.run(command, input="", capture_output=True, text=True, check=False)


def test_arguments_that_make_no_agent(tmp_path: Path) -> None:
    recording, script_file = tmp_path / "run.ndjson", tmp_path / "script.json"
    header = Header(at=0, version=VERSION, thinkwell="0", time="", agent="x")
    recording.write_bytes(encode_record(header))
    script.says("a").save(script_file)
    (tmp_path / "nonsense").write_text('{"steps": 3}', "utf-8")
    later = msgspec.structs.replace(header, version=VERSION + 1)
    (tmp_path / "later.ndjson").write_bytes(encode_record(later))
    for arguments, why in (
        ((), "the following arguments are required: FILE"),
        ((tmp_path / "none",), "No such file or directory"),
        ((tmp_path / "nonsense",), "is neither a script nor a recording"),
        ((recording, "fast"), "the speed has to be a number from 0 on, not 'fast'"),
        ((recording, "-1"), "the speed has to be a number from 0 on, not '-1'"),
        ((tmp_path / "later.ndjson",), f"its format has version {VERSION + 1}"),
        ((script_file, tmp_path / "none"), "is no folder"),
    ):
        ran = started(*arguments)
        assert ran.returncode == 2, ran
        assert ran.stderr.startswith("usage: python -m thinkwell.testing "), ran
        assert why in ran.stderr
        assert "Traceback" not in ran.stderr
    assert "plays a script or repeats a recording" in " ".join(started("--help").stdout.split())
    assert started(recording, "2").returncode == 0
    assert started(script_file, tmp_path).returncode == 0


@pytest.mark.parametrize("make", [RecordedAgent, replay_agent])
async def test_what_is_no_speed(recording: Path, make: Callable[..., object]) -> None:
    for speed, error in (
        (-1, ValueError),
        (float("nan"), ValueError),
        ("fast", TypeError),
        (True, TypeError),
    ):
        with pytest.raises(error, match=rf"{make.__name__}\(speed={speed!r}\): give a number from 0 on"):
            make(recording, speed=speed)


async def test_a_file_that_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RecordedAgent(tmp_path / "none")
