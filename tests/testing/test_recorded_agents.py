"""An agent that does again what it did in a recording."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest

from thinkwell import open_agent
from thinkwell.testing import RecordedAgent, ScriptedAgent, replay_agent, script
from thinkwell_acp import ClientHandler, RpcError, connect
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def recording(tmp_path: Path, anyio_backend: str) -> Path:
    """A recording of one turn."""

    async def record() -> None:
        played = ScriptedAgent(script.thinks("hm").says("Hello"))
        async with played.open(record=tmp_path / "run.ndjson", cwd=tmp_path) as agent:
            assert await agent.think().text("Hi").run() == "Hello"

    anyio.run(record, backend=anyio_backend)
    return tmp_path / "run.ndjson"


async def test_it_does_the_same_again_on_every_connection(recording: Path) -> None:
    recorded = RecordedAgent(recording)
    for _ in range(2):
        async with recorded.open() as agent:
            assert agent.name == "recorded"
            assert await agent.think().text("Hi").run() == "Hello"
    assert [prompt.text for prompt in recorded.sent.prompts] == ["Hi", "Hi"]


async def test_there_may_be_no_turn_to_cancel(recording: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        RecordedAgent(recording).connect() as transport,
        connect(transport, ClientHandler()) as client,
    ):
        await client.initialize(
            s.InitializeRequest(protocol_version=1, client_capabilities=s.ClientCapabilities())
        )
        session = await client.new_session(s.NewSessionRequest(cwd="/", mcp_servers=()))
        client.cancel(session.session_id)
        prompt = s.PromptRequest(session_id=session.session_id, prompt=(s.TextContent(text="Hi"),))
        assert (await client.prompt(prompt)).stop_reason == "end_turn"
        with pytest.raises(RpcError, match="holds no more session/prompt"):
            await client.connection.request("session/prompt", {})
    assert not caplog.records


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


def exit_code(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> object:
    """With what the program ends that is given these arguments."""
    monkeypatch.setattr(sys, "argv", ["testing", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("thinkwell.testing", run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
def test_arguments_that_make_no_agent(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script_file = tmp_path / "script.json"
    script.says("a").save(script_file)
    (tmp_path / "nonsense").write_text('{"steps": 3}', "utf-8")
    header = json.loads(recording.read_text("utf-8").splitlines()[0])
    later = header["version"] + 1
    (tmp_path / "later.ndjson").write_text(json.dumps({**header, "version": later}) + "\n", "utf-8")
    for arguments, why in (
        ((), "the following arguments are required: FILE"),
        ((tmp_path / "none",), "No such file or directory"),
        ((tmp_path / "nonsense",), "is neither a script nor a recording"),
        ((recording, "fast"), "the speed has to be a number from 0 on, not 'fast'"),
        ((recording, "-1"), "the speed has to be a number from 0 on, not '-1'"),
        ((tmp_path / "later.ndjson",), f"its format has version {later}"),
        ((script_file, tmp_path / "none"), "is no folder"),
    ):
        assert exit_code(monkeypatch, *arguments) == 2
        told = capsys.readouterr().err
        assert told.startswith("usage: python -m thinkwell.testing "), told
        assert why in told
        assert "Traceback" not in told
    assert exit_code(monkeypatch, "--help") == 0
    assert "plays a script or repeats a recording" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("more", ["2", None])
def test_a_client_that_leaves_at_once(recording: Path, tmp_path: Path, more: str | None) -> None:
    script.says("a").save(tmp_path / "script.json")
    given = (recording, more) if more else (tmp_path / "script.json", tmp_path)
    command = [sys.executable, "-m", "thinkwell.testing", *map(str, given)]
    ran = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran


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
