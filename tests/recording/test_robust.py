"""Whatever comes over the wire and whatever the disk does: a recording ends at worst, and holds no secret."""

from __future__ import annotations

import os
import stat
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Backend, virtual_backend
from recording.test_recording import lines, of_type
from recording.test_replay import events_of, line, recorded, review, text
from scripted import Played, Turn, playing, scripted

from thinkwell import (
    AgentExited,
    AgentStartFailed,
    RecordingCut,
    RecordingError,
    ThoughtCancelled,
    Workspace,
    open_agent,
    replay,
)
from thinkwell.testing import RecordedAgent, ScriptedAgent, replay_agent, script
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = "Zk3v9QpL7xWm2RtYb4Nc"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


# The wire


@pytest.mark.parametrize(
    "noise",
    [
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e400}',
        "[" * 990 + "]" * 990,
        '{"a":' * 990 + "1" + "}" * 990,
    ],
    ids=["NaN", "Infinity", "1e400", "list", "object"],
)
async def test_lines_that_cannot_be_read(tmp_path: Path, noise: str) -> None:
    path = tmp_path / "r.ndjson"
    played = ScriptedAgent(script.sends(noise).says("Fine."))
    async with played.open(record=path) as agent:
        assert await agent.think().text("x").run() == "Fine."
    assert lines(path)[-1]["type"] == "end"
    assert await replay(path, speed=0).result == "Fine."


async def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    ours, theirs = memory_transport_pair()
    name = os.fsdecode(b"agent-\xff")
    async with (
        playing(theirs, Played([text])),
        open_agent(name, transport=ours, record=path) as agent,
    ):
        assert await agent.think().text("x").run() == "Hello."
    assert lines(path)[0]["agent"] == "agent-\\udcff"


async def test_what_cannot_be_written_ends_the_recording_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class OddError(ValueError):
        def __init__(self) -> None:
            self.half = "\ud800"

    async def fail(_question: object) -> str:
        raise OddError

    path = tmp_path / "r.ndjson"

    async def surrogate(turn: Turn) -> None:
        await turn.call("half", {})

    def half() -> str:
        """Return half a character."""
        return "\ud800"

    async with scripted(surrogate, text, record=path, permissions="ask", on_question=fail) as agent:
        await agent.think().text("x").tool(half).run()
        assert await agent.think().text("x").run() == "Hello."
    whole = [entry["type"] for entry in lines(path)]
    assert whole[0] == "recording"
    assert whole[-1] == "end" or "ends here, the runs go on" in caplog.text


class TestInRealTime:
    """With processes."""

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        backend: str = request.param
        return backend

    async def test_an_unended_last_line_and_the_end_of_the_agent_are_there(self, tmp_path: Path) -> None:
        path = tmp_path / "r.ndjson"
        program = (
            "import json, os, sys\n"
            "json.loads(sys.stdin.readline())\n"
            'os.write(1, b\'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}\')\n'
            "sys.exit(3)\n"
        )
        with pytest.raises((AgentStartFailed, AgentExited)):
            async with open_agent(command=[sys.executable, "-c", program], record=path) as agent:
                await agent.think().text("x").run()
        assert of_type(path, "received")[0]["message"]["result"] == {"protocolVersion": 1}
        (gone,) = of_type(path, "gone")
        assert gone["exit_code"] == 3


# Secrets


USAGE = s.UsageUpdate(used=1, size=2)
PLAN = s.AgentPlanUpdate(entries=(s.PlanEntry(content="x", priority="low", status="pending"),))
MODE = s.CurrentModeUpdate(current_mode_id="fast")
CALL = s.ToolCallStart(tool_call_id="t", title="x")
THOUGHT = s.AgentThoughtChunk(content=s.TextContent(text="hm"))


@pytest.mark.parametrize(
    "between", [USAGE, PLAN, MODE, CALL, THOUGHT], ids=lambda update: type(update).__name__
)
async def test_a_secret_with_something_in_its_midst(
    tmp_path: Path, between: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", SECRET)

    async def speak(turn: Turn) -> None:
        turn.say(f"The key is {SECRET[:10]}")
        turn.update(between)
        turn.say(f"{SECRET[10:]} ok")

    path = tmp_path / "r.ndjson"
    async with scripted(speak, record=path) as agent:
        await agent.think().text("x").run()
    written = path.read_text()
    assert SECRET[:10] not in written
    assert SECRET[10:] not in written
    assert SECRET not in await replay(path, speed=0).result


async def test_what_is_filled_in_a_form(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"f1": {"type": "string", "title": "API key", "format": "password"}},
    }
    path = tmp_path / "r.ndjson"
    played = ScriptedAgent(script.asks_form("Your key?", schema).says("Thanks for correct-horse-battery-9."))

    async def fill(_question: object) -> dict[str, str]:
        return {"f1": "correct-horse-battery-9"}

    async with played.open(record=path, permissions="ask", on_question=fill) as agent:
        assert "battery" in await agent.think().text("x").run()
    assert [answer.content for answer in played.sent.answers] == [{"f1": "correct-horse-battery-9"}]
    assert "battery" not in path.read_text()


async def test_a_key_on_standard_output(tmp_path: Path) -> None:
    key = [
        "-----BEGIN PRIVATE KEY-----",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
        "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
        "-----END PRIVATE KEY-----",
    ]
    path = tmp_path / "r.ndjson"
    played = ScriptedAgent(script.sends("\n".join(key)).says("Fine."))
    async with played.open(record=path) as agent:
        await agent.think().text("x").run()
    written = path.read_text()
    assert "MIIEvQ" not in written
    assert "BKcwgg" not in written
    assert len(of_type(path, "noise")) == 4


async def test_names_of_sessions_and_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", SECRET)

    async def name(_request: object, _proceed: object) -> s.NewSessionResponse:
        return s.NewSessionResponse(session_id=f"of-{SECRET}")

    async def stop(_request: object, _proceed: object) -> s.PromptResponse:
        return s.PromptResponse(stop_reason="end_turn")

    path = tmp_path / "r.ndjson"
    handler = Played(answers={"session/new": name, "session/prompt": stop})
    async with scripted(agent=handler, record=path) as agent:
        await agent.think().text("x").run()
    assert SECRET not in path.read_text()


# The disk


async def test_two_agents_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    async with scripted(text, record=path) as agent:
        with pytest.raises(OSError, match="another agent is being recorded in this file"):
            async with scripted(text, record=path):
                pass
        assert await agent.think().text("x").run() == "Hello."
    assert await replay(path, speed=0).result == "Hello."
    async with scripted(text, record=path):
        pass


async def test_a_file_that_others_could_read_is_taken_from_them(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    path.write_text("old")
    path.chmod(0o644)
    async with scripted(text, record=path):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_pipe_without_a_reader_holds_up_no_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe"):
        async with scripted(text, record=tmp_path / "pipe"):
            pass


async def test_traces_never_overwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_TRACE", str(tmp_path))
    async with scripted(text):
        pass
    (first,) = tmp_path.iterdir()
    _, *names, number = first.stem.split("-")  # the time, who it is, and how many there were before
    rest = "-".join((*names, str(int(number) + 1)))
    now = datetime.now(UTC)
    times = [now + timedelta(seconds=seconds) for seconds in range(100)]
    taken = [tmp_path / f"{time:%Y%m%dT%H%M%S}-{rest}.ndjson" for time in times]
    for path in taken:
        path.write_text("another's")
    async with scripted(text):
        pass
    assert {path.read_text() for path in taken} == {"another's"}
    (new,) = set(tmp_path.iterdir()) - {first, *taken}
    assert lines(new)[-1]["type"] == "end"


# Replays


async def test_kinds_of_events_that_are_not_known_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    original = await recorded(path, review)
    whole = path.read_bytes().splitlines(keepends=True)
    at = next(i for i, entry in enumerate(whole) if b'"tool_start"' in entry and b'"event"' in entry)
    run = original.id
    whole.insert(at, line("event", run=run, event={"type": "weather", "sky": "blue"}))
    path.write_bytes(b"".join(whole))
    again = replay(path)
    assert await events_of(again) == await events_of(original)


async def test_an_event_that_is_broken_is_an_error_at_once(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    original = await recorded(path, review)
    broken = line("event", run=original.id, event={"type": "message", "text": 5})
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:-1], broken, whole[-1]]))
    with pytest.raises(RecordingError, match="an event in it cannot be read"):
        replay(path, speed=0)


async def test_a_look_at_any_time_sees_what_has_happened_by_then(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"

    async def fail(turn: Turn) -> str:
        await anyio.sleep(1)
        return "max_tokens"

    await recorded(path, fail)
    again = replay(path)
    assert again.result.exception() is None
    assert "pending" in repr(again.result)
    await anyio.sleep(2)
    assert "failed: ResultMissing" in repr(again.result)
    assert again.result.exception() is not None
    later = replay(path)
    await anyio.sleep(2)
    assert later.session_id == "session-1"
    assert later.result.exception() is not None


async def test_the_phase_says_how_a_replay_ended(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    await recorded(path, review)
    again = replay(path)
    await anyio.sleep(1)
    again.cancel()
    assert again.view.phase == "cancelled"
    assert isinstance(again.result.exception(), ThoughtCancelled)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[: len(whole) // 2]))
    cut = replay(path, speed=0)
    assert cut.view.phase == "failed"
    assert isinstance(cut.view.error, RecordingCut)


def with_mark(data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def with_blanks(data: bytes) -> bytes:
    return data.replace(b"\n", b"\n\n")


def with_end(data: bytes) -> bytes:
    return data + b"\n \n"


@pytest.mark.parametrize("change", [with_mark, with_blanks, with_end])
async def test_what_editors_do_is_no_harm(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "r.ndjson"
    original = await recorded(path, review)
    path.write_bytes(change(path.read_bytes()))
    assert await events_of(replay(path, speed=0)) == await events_of(original)
    assert replay(path, speed=0).view.error is None


async def test_two_recordings_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    await recorded(path, text, output=None)
    whole = path.read_bytes()
    first = whole.splitlines(keepends=True)[:4]
    path.write_bytes(b"".join(first) + whole)
    again = replay(path, speed=0)
    assert isinstance(again.view.error, RecordingCut)
    assert "another recording begins in line 5" in str(again.view.error)
    path.write_bytes(whole + whole)
    assert await replay(path, speed=0).result == "Hello."


async def test_a_result_that_a_secret_was_taken_out_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typing import Literal

    monkeypatch.setenv("MY_API_KEY", SECRET)

    async def give(turn: Turn) -> None:
        await turn.returns(result=SECRET)

    kind: Any = Literal["Zk3v9QpL7xWm2RtYb4Nc"]
    await recorded(tmp_path / "r.ndjson", give, output=kind)
    again = replay(tmp_path / "r.ndjson", kind, speed=0)
    with pytest.raises(RecordingError, match="a secret was taken out of its result"):
        await again.result
    assert "[redacted" in await replay(tmp_path / "r.ndjson", speed=0).result


async def test_speeds_that_are_no_numbers(tmp_path: Path) -> None:
    fast: Any = "fast"
    for call in (replay, replay_agent):
        with pytest.raises(TypeError, match="give a number from 0 on"):
            call(tmp_path / "r.ndjson", speed=fast)


# Agents of recordings


def agent_lines(*more: bytes) -> bytes:
    return b"".join(
        [
            line("recording", version=1, thinkwell="1", time="", agent="a"),
            line("sent", message={"id": 0, "method": "initialize", "params": {}}),
            *more,
            line("end"),
        ]
    )


HELLO = line("received", message={"id": 0, "result": {"protocolVersion": 1}})
OPENED = (
    line("sent", message={"id": 1, "method": "session/new", "params": {}}),
    line("received", message={"id": 1, "result": {"sessionId": "s"}}),
)


async def played_again(path: Path, use: Callable[[Any], Any], **options: Any) -> None:
    async with (
        RecordedAgent(path).connect() as transport,
        open_agent("recorded", transport=transport, **options) as agent,
    ):
        await use(agent)


@pytest.mark.parametrize(
    "before",
    [
        (),
        (HELLO,),
        (HELLO, line("sent", message={"id": 1, "method": "session/new", "params": {}})),
        (HELLO, *OPENED),
    ],
    ids=["at initialize", "before a session", "while one is opened", "before a prompt"],
)
async def test_an_agent_that_died_dies_there(tmp_path: Path, before: tuple[bytes, ...]) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(agent_lines(*before, line("gone", exit_code=4)))

    async def use(agent: Any) -> None:
        with anyio.fail_after(30):
            await agent.think().text("x").run()

    with pytest.raises((AgentExited, AgentStartFailed)):
        await played_again(path, use)


async def test_ids_of_no_kind_are_passed_over(tmp_path: Path) -> None:
    odd = [
        line(
            "received",
            message={"id": [1], "method": "session/request_permission", "params": {"sessionId": "s"}},
        ),
        line("received", message={"id": {}, "result": {}}),
        line("sent", message={"id": [1], "result": {}}),
        line("sent", message={"id": None, "method": "x", "params": {}}),
    ]
    prompt = line("sent", message={"id": 2, "method": "session/prompt", "params": {"sessionId": "s"}})
    done = line("received", message={"id": 2, "result": {"stopReason": "end_turn"}})
    path = tmp_path / "r.ndjson"
    path.write_bytes(agent_lines(HELLO, *OPENED, prompt, *odd, done))

    async def use(agent: Any) -> None:
        assert await agent.think().text("x").run() == ""

    await played_again(path, use)


class TestTerminals:
    """Time is real: commands run."""

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        backend: str = request.param
        return backend

    async def test_terminals_are_called_as_they_are_now(self, tmp_path: Path) -> None:
        path = tmp_path / "r.ndjson"
        (tmp_path / "work").mkdir()
        options: dict[str, Any] = {
            "cwd": tmp_path / "work",
            "workspace": Workspace(tmp_path / "work", terminal=True),
            "permissions": "allow",
        }
        played = ScriptedAgent(script.runs("echo", "hello", expect="hello").says("Ran."))
        async with played.open(record=path, **options) as agent:
            assert await agent.think().text("x").run() == "Ran."
        renamed = path.read_bytes()
        for entry in of_type(path, "sent"):
            terminal = entry["message"].get("result", {}).get("terminalId")
            if terminal is not None:
                renamed = renamed.replace(terminal.encode(), b"another-terminal")
        path.write_bytes(renamed)
        assert b"another-terminal" in renamed
        asked: list[str] = []

        async def use(agent: Any) -> None:
            stream = agent.think().text("x").stream()
            assert await stream.result == "Ran."
            asked.append(stream.view.text)

        with anyio.fail_after(30):
            await played_again(path, use, record=tmp_path / "again.ndjson", **options)
        assert asked == ["Ran."]
        answers = [entry["message"] for entry in of_type(tmp_path / "again.ndjson", "sent")]
        assert [answer for answer in answers if "error" in answer] == []
