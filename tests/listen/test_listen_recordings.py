"""A run of a program that speaks lines is recorded, replayed and shown like any other."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from cli.command import run_command
from cli.typing_in import home
from listen.talkers import LIMIT
from pydantic import BaseModel
from warm import warm_python, warm_server

from thinkwell import events as ev
from thinkwell import open_agent, replay
from thinkwell.errors import AgentReported
from thinkwell.listen import AgentProgress, AgentQuestion, Handlers, Transcript, listen
from thinkwell.progress import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell import ThoughtStream

__all__ = ("home", "warm_python", "warm_server")

pytestmark = pytest.mark.anyio

PROGRAM = [sys.executable, "-W", "error", str(Path(__file__).parent / "programs" / "chatty_worker.py")]
RESPOND = "_thinkwell.dev/respond"
SECRET = "hunter2-correct-horse"
WORKER = shlex.join([sys.executable, str(Path(__file__).parents[2] / "examples/line_agent/agent.py")])
KEY = "sk-not-to-be-seen-1234567890"


class Listing(BaseModel):
    text: str
    files: int


def answering() -> Handlers:
    handlers = Handlers(transcript=Transcript())

    @handlers.on("question")
    async def _(question: AgentQuestion) -> str:
        return question.options[-1] if question.options else "FILES.md"

    @handlers.on("approval")
    async def _(_approval: dict[str, Any]) -> str:
        return "yes"

    @handlers.on("hint")
    async def _(hint: dict[str, Any]) -> object:
        return {"about": list(hint["about"])}

    return handlers


async def recorded(
    path: Path, prompt: str = "Go", env: Mapping[str, str] | None = None
) -> ThoughtStream[Listing]:
    """Record a run that somebody listens to."""
    with anyio.fail_after(LIMIT):
        async with open_agent(command=PROGRAM, protocol="ndjson", record=path, env=env) as agent:
            stream = agent.think(Listing).text(prompt).stream(include="all")
            if "fail" in prompt:
                with pytest.raises(AgentReported):
                    await listen(stream, answering())
            else:
                await listen(stream, answering())
    return stream


async def events_of(stream: ThoughtStream[Any]) -> list[ev.ThoughtEvent]:
    return [event async for event in stream]


async def test_events_view_and_result_are_the_same(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson")
    again = replay(tmp_path / "r.ndjson", Listing, speed=0, include="all")
    events = await events_of(original)
    assert await events_of(again) == events
    said = "Files FILES.md yes {'about': ['said', 'depth']}"
    assert await again.result == await original.result == Listing(text=said, files=3)
    assert again.view == original.view
    kinds = [event.kind for event in events if isinstance(event, ev.Report)]
    steps = ["progress", "progress", "log", "log", "question", "question", "approval", "hint", "cost_report"]
    assert [kind for kind in kinds if kind != "partial"] == steps
    assert {"report", "unhandled", "message", "notice", "question", "answer", "tool_start"} <= {
        event.type for event in events
    }


async def test_a_failure_is_the_same(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson", "fail")
    again = replay(tmp_path / "r.ndjson", Listing, speed=0, include="all")
    assert await events_of(again) == await events_of(original)
    error, first = again.result.exception(), original.result.exception()
    assert isinstance(error, AgentReported)
    assert isinstance(first, AgentReported)
    assert (error.code, error.data, f"{error}") == (first.code, first.data, f"{first}")
    assert (first.code, first.data) == (7, {"disk": "/dev/sda"})


async def test_handlers_hear_the_recorded_run_as_they_heard_the_first(tmp_path: Path) -> None:
    heard: list[list[tuple[str, object]]] = []

    def hearing() -> Handlers:
        handlers, said = answering(), list[tuple[str, object]]()
        heard.append(said)

        @handlers.on("progress")
        async def _(progress: AgentProgress) -> None:
            said.append(("progress", progress))

        @handlers.on("cost_report")
        async def _(report: dict[str, Any]) -> None:
            said.append(("cost_report", report))

        @handlers.on("result")
        async def _(result: dict[str, Any]) -> None:
            said.append(("result", result))

        return handlers

    with anyio.fail_after(LIMIT):
        path = tmp_path / "r.ndjson"
        async with open_agent(command=PROGRAM, protocol="ndjson", record=path) as agent:
            report = await agent.think(Listing).text("Go").listen(hearing())
        again = replay(path, Listing, speed=0, include="all")
        assert await listen(again, hearing()) == report
    first, second = heard
    assert sorted(kind for kind, _ in first) == ["cost_report", "progress", "progress", "result"]
    assert first[-1] == second[-1] == ("result", report.model_dump())
    for type_ in ("progress", "cost_report"):  # each type in its order
        assert [said for kind, said in first if kind == type_] == [
            said for kind, said in second if kind == type_
        ]


async def test_no_secret_reaches_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    stream = await recorded(path, f"Use {SECRET}", env={"MY_TOKEN": SECRET})
    reports = [event for event in await events_of(stream) if isinstance(event, ev.Report)]
    assert any(event.body.get("token") == SECRET for event in reports), "the program has said it"
    written = path.read_text("utf-8")
    for secret in (SECRET, KEY, "hunter2", "correct-horse"):
        assert secret not in written, f"{secret!r} is in the recording"
    again = replay(path, Listing, speed=0, include="all")
    pieces: dict[str, str] = defaultdict(str)
    for event in await events_of(again):
        if isinstance(event, ev.Message) and event.message_id == "partial-1":
            pieces["message"] += event.text
        elif isinstance(event, ev.Report | ev.Unhandled) and event.kind == "partial":
            pieces[event.type] += str(event.body["text"])
    said = "Said [redacted:MY_TOKEN]. "
    assert pieces == {"message": said, "report": said, "unhandled": said}
    wire = "".join(re.findall(r'"type":"partial","text":"([^"]*)"', written))
    assert wire == said, "it came sign by sign"


async def test_what_is_answered_is_not_recorded(tmp_path: Path) -> None:
    """Anything may be a secret there."""
    path = tmp_path / "r.ndjson"
    await recorded(path)
    sent = [json.loads(line) for line in path.read_text("utf-8").splitlines() if '"type":"sent"' in line]
    answers = [one["message"] for one in sent if one["message"].get("method") in (None, RESPOND)]
    blank = "[redacted]"
    assert [answer.get("result", answer.get("params")) for answer in answers] == [
        {"_meta": {"thinkwell.dev/value": blank}, "action": "accept", "content": {"answer": blank}},
        {"_meta": {"thinkwell.dev/value": blank}, "action": "accept", "content": {"answer": blank}},
        {"_meta": {"thinkwell.dev/value": blank}, "outcome": {"outcome": "selected", "optionId": "allow"}},
        {"kind": "hint", "value": {"about": [blank, blank]}, "sessionId": "lines-1"},
    ]


@pytest.mark.usefixtures("home")
def test_the_command_shows_it_again(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    anyio.run(recorded, path)
    replayed = run_command("replay", str(path), "--speed", "0", "--style", "lines")
    assert replayed.code == 0, replayed.err
    assert json.loads(replayed.out) == {"text": "Files FILES.md yes {'about': ['said', 'depth']}", "files": 3}
    shown = replayed.err
    for line in ("Seen nothing (50 %)", "A remark: nothing", "What is the list called?", "Write the list"):
        assert line in shown
    assert "A detail" not in shown


async def test_progress_is_shown_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with anyio.fail_after(LIMIT):
        async with open_agent(command=PROGRAM, protocol="ndjson") as agent:
            stream = agent.think().text("Go").stream()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen, stream, answering())
                assert (await show(stream, style="lines")).startswith("Files FILES.md")
    shown = capsys.readouterr().err
    assert shown.count("[done]") >= 1
    before = shown[: shown.index("[done]")]
    for line in ("A remark: nothing", "Seen nothing (50 %)", "✔ tool Write the list", "Said nothing."):
        assert before.count(line) == 1, shown
    assert "A detail" not in shown


def test_the_command_runs_such_a_program(home: Path) -> None:
    """Without a terminal nobody is asked, so everything is declined."""
    ran = run_command("run", "List the files.", "--protocol", "ndjson", "--command", WORKER)
    assert (ran.code, ran.out) == (0, "Nothing is written.\n"), ran.err
    for line in ("Looking around (10 %)", "Write CONTENTS.md", "[done]"):
        assert line in ran.err
    assert not (home / "CONTENTS.md").exists()


def test_the_command_prints_events_of_lines(home: Path) -> None:
    ran = run_command("run", "List the files.", "--json", "--protocol", "ndjson", "--command", WORKER)
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0, ran.err
    assert events[-1]["value"] == "Nothing is written."
    assert [event.get("asks") for event in events if event["type"] == "question"] == ["form", None]


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX systems")
@pytest.mark.parametrize(("place", "other", "title"), [(2, None, "Files"), (3, b"My list\n", "My list")])
@pytest.mark.usefixtures("warm_python")
def test_its_questions_are_answered_in_the_terminal(
    place: int, other: bytes | None, title: str, home: Path
) -> None:
    from cli.terminal import in_terminal  # it needs modules of POSIX systems

    arguments = ("run", "List the files.", "--protocol", "ndjson", "--command", WORKER)
    with in_terminal(*arguments, "--record", "run.ndjson") as terminal:
        terminal.wait_for("Contents · Files")
        terminal.press(b"f", until="Enter takes it")
        terminal.press(str(place).encode(), until=f"{place}/3")
        terminal.type(b"\n")
        if other is not None:
            terminal.wait_for("Something else (text)")
            terminal.type(other)
        terminal.wait_for("[y]")
        terminal.press(b"y", until="CONTENTS.md is written.")
        assert terminal.end() == 0
    assert (home / "CONTENTS.md").read_text("utf-8").splitlines()[0] == f"# {title}"
    recorded = (home / "run.ndjson").read_text("utf-8")
    assert recorded.count('"by":"human"') >= 2
    assert "My list" not in recorded, "what was filled in is nobody else's business"
