"""What a recording holds, what it never holds, and that it hurts nobody."""

from __future__ import annotations

import datetime as dt
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from recording.test_replay import events_of, text
from scripted import Played, Turn, playing, scripted

from thinkwell import AgentNotFound, AgentReported, AgentStartFailed, open_agent, replay, tool
from thinkwell.agents import AgentProfile, KnownError, Program
from thinkwell_acp import RpcError, memory_transport_pair
from thinkwell_acp import schema as s

SECRET = "hunter2-correct-horse"
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def of_type(path: Path, *types: str) -> list[dict[str, Any]]:
    return [line for line in lines(path) if line["type"] in types]


async def test_both_directions_with_times(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    async with scripted(text, record=path) as agent:
        await agent.think().text("Hi").run()

    whole = lines(path)
    assert whole[0] | {"time": "", "thinkwell": "", "cwd": ""} == {
        "type": "recording",
        "at": 0.0,
        "version": 1,
        "thinkwell": "",
        "time": "",
        "agent": "scripted",
        "cwd": "",
    }
    assert whole[-1]["type"] == "end"
    sent = [line["message"].get("method") for line in of_type(path, "sent")]
    assert sent[:3] == ["initialize", "session/new", "session/prompt"]
    received = [line["message"] for line in of_type(path, "received")]
    assert received[0]["result"]["agentInfo"]["name"] == "scripted"
    assert any(message.get("method") == "session/update" for message in received)
    times = [line["at"] for line in whole]
    assert times == sorted(times)
    assert 0 < times[-1] < 60


async def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    async with scripted(text, record=tmp_path / "r.ndjson"):
        pass
    assert stat.S_IMODE((tmp_path / "r.ndjson").stat().st_mode) == 0o600


async def test_one_that_is_there_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r.ndjson").write_text("old\n" * 10_000)
    async with scripted(text, record=str(tmp_path / "r.ndjson")):
        pass
    assert lines(tmp_path / "r.ndjson")[0]["type"] == "recording"
    assert b"old" not in (tmp_path / "r.ndjson").read_bytes()


PROGRAM = """
import json, os, sys
CAPABLE = {"mcpCapabilities": {"http": True}}
def send(message):
    os.write(1, json.dumps(message).encode() + b"\\n")
def say(text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
os.write(1, b"starting with " + os.environ["MY_TOKEN"].encode() + b"\\n")
os.write(2, b"stderr: " + os.environ["MY_TOKEN"].encode() + b"\\n")
for line in sys.stdin:
    message = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    method = message.get("method")
    if method == "initialize":
        send({**answer, "result": {"protocolVersion": 1, "agentCapabilities": CAPABLE}})
    elif method == "session/new":
        send({**answer, "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        for value in (os.environ["MY_TOKEN"], os.environ["GIVEN_KEY"]):
            say("It is " + value + ".")
            for sign in value:
                say(sign)
            say(" - ")
            for begin in range(0, len(value), 5):
                say(value[begin:begin + 5])
            say(" The end. ")
        update = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": os.environ["MY_TOKEN"]}
        send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
        send({**answer, "result": {"stopReason": "end_turn"}})
    elif method == "session/close":
        send({**answer, "result": {}})
"""


async def test_no_secret_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.ndjson"
    monkeypatch.setenv("MY_TOKEN", SECRET)
    servers: list[s.McpServer] = [
        s.McpServerHttp(
            name="web",
            url="http://127.0.0.1:9/mcp",
            headers=(s.HttpHeader(name="Authorization", value=TOKEN),),
        ),
        s.McpServerStdio(
            name="local",
            command="server",
            args=(),
            env=(s.EnvVariable(name="PLAIN", value="a-value-of-mine"),),
        ),
    ]
    command = [sys.executable, "-c", PROGRAM]
    given = {"GIVEN_KEY": "given-only-to-the-agent"}
    async with open_agent(
        command=command, env=given, mcp_servers=servers, record=path, tools_via="http"
    ) as agent:
        stream = agent.think().text(f"Use {TOKEN}, please: password={SECRET}").stream(include="all")
        said = await stream.result
        await stream.wait()
    assert SECRET in said
    assert "given-only-to-the-agent" in said
    written = path.read_text()
    for secret in (SECRET, TOKEN, "given-only-to-the-agent", "a-value-of-mine", "hunter2", "correct-horse"):
        assert secret not in written, f"{secret!r} is in the recording"
    assert len(of_type(path, "noise")) == 1
    assert "stderr: [redacted" in lines(path)[-1]["stderr"]

    again = replay(path, speed=0)
    joined = await again.result
    for secret in (SECRET, "given-only-to-the-agent", "hunter2", "correct-horse", "only-to-the"):
        assert secret not in joined, f"{secret!r} comes together when pieces are joined"
    assert joined.count("The end.") == 2
    assert [event.type for event in await events_of(again)] == [
        event.type for event in await events_of(stream)
    ]


async def test_what_an_error_is_known_by_is_kept_without_secrets(tmp_path: Path) -> None:
    async def fail(_turn: Turn) -> None:
        raise RpcError(-32603, "broken")

    hint = f"Set password={SECRET}"
    row = KnownError(said="broken", hint=hint, version="1", seen=dt.date(2026, 11, 22))
    profile = AgentProfile(name="odd", program=Program(command=("odd",)), errors=(row,))
    ours, theirs = memory_transport_pair()
    path = tmp_path / "r.ndjson"
    async with playing(theirs, Played([fail])), open_agent(profile, transport=ours, record=path) as agent:
        with pytest.raises(AgentReported) as caught:
            await agent.think().text("x").run()
    with pytest.raises(AgentReported) as again:
        await replay(path, speed=0).result
    assert caught.value.__notes__ == [hint]
    assert again.value.__notes__ == ["Set password=[redacted]"]


LEAKS = (
    "the bot has MTk4w77C9HehwTp0136uXT3yq.h7n-5q.r7FlCxvnNGdcmyHc7E4nSmwfIpq now",
    "machine x.y\n  login joe\n  password hunter2\n",
    "curl -sS -u joe:hunter2 https://x.y/z",
    "run redis-cli -a hunter2 ping",
    "<password>hunter2</password>",
)


async def test_forms_of_secrets_and_passwords_on_command_lines_are_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.ndjson"
    monkeypatch.setenv("MODEL", "claude-sonnet-4")

    async def say(turn: Turn) -> None:
        for leak in LEAKS:
            turn.say(f"{leak}\n\n")
            for word in leak.split(" "):
                turn.say(f"{word} ")
            turn.say("\n\n")

    async with scripted(say, record=path) as agent:
        said = await agent.think().text("As claude-sonnet-4, say it").run()
    written = path.read_text()
    assert "hunter2" in said
    assert not [secret for secret in ("hunter2", "r7FlCxvn") if secret in written]
    assert "As claude-sonnet-4, say it" in written
    joined = await replay(path, speed=0).result
    assert joined.count("[redacted]") == 2 * len(LEAKS)


async def test_calls_of_tools(tmp_path: Path) -> None:
    @tool
    def add(one: int, two: int) -> int:
        """Add."""
        return one + two

    async def call(turn: Turn) -> None:
        await turn.call("add", {"one": 1, "two": 2})
        await turn.call("add", {"one": "x"})

    path = tmp_path / "r.ndjson"
    async with scripted(call, record=path) as agent:
        await agent.think().text("x").tool(add).run()
    first, answer, second, failed = of_type(path, "tool_call", "tool_result")
    assert (first["session"], first["name"], first["arguments"]) == ("session-1", "add", {"one": 1, "two": 2})
    assert answer["content"] == [{"type": "text", "text": "3"}]
    assert "is_error" not in answer
    assert failed["is_error"]
    assert [line["call"] for line in (first, answer, second, failed)] == [1, 1, 2, 2]


async def test_a_call_outside_of_every_turn(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    turns: list[Turn] = []

    async def keep(turn: Turn) -> None:
        turns.append(turn)

    async with scripted(keep, record=path) as agent, agent.session() as session:
        await session.think().text("x").run()
        await turns[0].returns(result=1)
    answer = of_type(path, "tool_result")[0]
    assert answer["is_error"]
    assert "No task is running" in answer["content"][0]["text"]


async def test_what_is_no_json_and_what_nearly_is(tmp_path: Path) -> None:
    program = PROGRAM.replace(
        'os.write(1, b"starting with " + os.environ["MY_TOKEN"].encode() + b"\\n")',
        'os.write(1, b"{\\n\\n\\xff\\xfe\\n");'
        'os.write(1, b\'{"jsonrpc":"2.0","method":"x/y","params":{"a":"\\xff"}}\\n\')',
    )
    path = tmp_path / "r.ndjson"
    env = {"MY_TOKEN": "x" * 8, "GIVEN": "y" * 8}
    async with open_agent(command=[sys.executable, "-c", program], env=env, record=path):
        pass
    assert [line["text"] for line in of_type(path, "noise")] == ["{", "\\xff\\xfe"]
    assert {"a": "�"} in [line["message"].get("params") for line in of_type(path, "received")]


async def test_an_agent_that_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    command = [sys.executable, "-c", "import sys; sys.stderr.write('no model\\n'); sys.exit(3)"]
    with pytest.raises(AgentStartFailed):
        async with open_agent(command=command, record=path):
            pass
    first, *_, last = lines(path)
    assert first["command"] == command
    assert last == {"type": "end", "at": last["at"], "stderr": "no model\n"}
    with pytest.raises(AgentNotFound):
        async with open_agent(command="no-such-program-anywhere", record=path):
            pass
    assert [line["type"] for line in lines(path)] == ["recording", "end"]


async def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with scripted(text, record=tmp_path / "no" / "folder"):
            pass
    with pytest.raises(IsADirectoryError):
        async with scripted(text, record=tmp_path):
            pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
async def test_a_full_disk_ends_the_recording_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted(text, record="/dev/full") as agent:
        assert await agent.think().text("x").run() == "Hello."
        assert await agent.think().text("x").run() == "Hello."
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning == (
        "The recording /dev/full ends here, the runs go on: [Errno 28] No space left on device"
    )


# THINKWELL_TRACE


async def test_tracing_without_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "new" / "traces"
    monkeypatch.setenv("THINKWELL_TRACE", str(folder))
    for _ in range(2):
        async with scripted(text) as agent:
            await agent.think().text("x").run()
    one, two = sorted(folder.iterdir())
    assert one.name.split("-")[1:3] == ["scripted", str(os.getpid())]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in (one, two):
        assert await replay(path, speed=0).result == "Hello."


async def test_a_file_that_is_named_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_TRACE", str(tmp_path / "traces"))
    async with scripted(text, record=tmp_path / "r.ndjson"):
        pass
    assert not (tmp_path / "traces").exists()
    monkeypatch.setenv("THINKWELL_TRACE", "")
    async with scripted(text):
        pass


async def test_a_folder_that_cannot_be_made_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("THINKWELL_TRACE", str(tmp_path / "file"))
    async with scripted(text) as agent:
        assert await agent.think().text("x").run() == "Hello."
    assert f"THINKWELL_TRACE={tmp_path / 'file'}: nothing is recorded: " in caplog.text


async def test_names_of_agents_make_no_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_TRACE", str(tmp_path))
    ours, theirs = memory_transport_pair()
    async with playing(theirs, Played([text])), open_agent("../../x/y z", transport=ours):
        pass
    (path,) = tmp_path.iterdir()
    assert ".._.._x_y_z" in path.name


async def test_a_killed_program_leaves_what_had_happened(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    program = f"""
import anyio, os, signal
from thinkwell import open_agent

async def main():
    async with open_agent("builtin", record={str(path)!r}) as agent:
        stream = agent.think().text("Say hello.").stream()
        async for event in stream:
            os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""
    process = await anyio.run_process([sys.executable, "-c", program], check=False)
    assert process.returncode == -9
    again = replay(path, speed=0)
    assert again.view.error is not None
    assert "is cut: it ends with line" in str(again.view.error)
    assert again.view.turns or again.view.phase != "starting"
