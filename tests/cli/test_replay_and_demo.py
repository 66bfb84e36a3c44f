"""``thinkwell demo`` and ``thinkwell replay``: what somebody sees before there is an agent."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import anyio
import pytest
from cli.command import run_command
from cli.typing_in import home, scripted

from thinkwell import ThinkwellError, open_agent
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("home",)


@pytest.fixture
def recording(home: Path) -> Path:
    """A recording of three runs: a text, a value, a failure."""
    agent = ScriptedAgent(
        script.says("hello").stops().says("thinking").returns({"a": 1}).stops().fails(message="out of order")
    )

    async def record() -> None:
        async with agent.open(record=home / "run.ndjson") as opened:
            await opened.think().text("one").run()
            stream = opened.think(dict[str, int]).text("two").stream()
            await stream.wait()
            failed = opened.think().text("three").stream()
            await failed.wait()
            assert isinstance(failed.result.exception(), ThinkwellError)

    anyio.run(record)
    return home / "run.ndjson"


def test_all_runs_of_a_recording_are_shown_in_their_order(recording: Path) -> None:
    done = run_command("replay", str(recording), "--speed", "0")
    assert done.out == 'hello\n{\n  "a": 1\n}\n'
    assert done.code == 3
    assert "out of order" in done.err


def test_one_run(recording: Path) -> None:
    runs = re.findall(r'"type":"run","at":[^,]+,"run":"([^"]+)"', recording.read_text("utf-8"))
    done = run_command("replay", str(recording), "--run", runs[1], "--quiet")
    assert (done.code, json.loads(done.out), done.err) == (0, {"a": 1}, "")
    one = run_command("replay", str(recording), "--speed", "0", "--json", "--run", runs[0])
    lines = [json.loads(line) for line in one.out.splitlines()]
    assert [line["value"] for line in lines if line["type"] == "result"] == ["hello"]
    assert not any("run" in line for line in lines)
    none = run_command("replay", str(recording), "--run", "run-none")
    assert none.code == 2
    assert f"holds no 'run-none', but {', '.join(runs)}" in none.err


def test_a_recording_as_json(recording: Path) -> None:
    done = run_command("replay", str(recording), "--speed", "0", "--json")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 3
    assert [line["value"] for line in lines if line["type"] == "result"] == ["hello", {"a": 1}]
    assert len({line["run"] for line in lines}) == 3
    assert lines[-1]["error"]["type"] == "AgentReported"
    assert "out of order" in lines[-1]["error"]["message"]


def test_a_recording_that_is_cut(recording: Path) -> None:
    lines = recording.read_bytes().splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines) if b'"type":"message"' in line)
    recording.write_bytes(b"".join(lines[:end]))
    done = run_command("replay", str(recording), "--speed", "0")
    assert done.code == 6
    assert "is cut" in done.err
    done = run_command("replay", str(recording), "--html", "run.html")
    assert done.code == 6
    assert done.err.startswith("Written to run.html\n")
    assert "is cut" in done.err


@pytest.mark.parametrize(
    ("text", "arguments", "code", "problem"),
    [
        ("", (), 6, "is no recording"),
        (None, (), 2, "does not exist"),
        ("", ("--speed", "-1"), 2, "not a number from 0 on"),
        ("", ("--speed", "nan"), 2, "not a number from 0 on"),
        ("", ("--json", "--quiet"), 2, "not both"),
        ("", ("--html", "run.html"), 6, "is no recording"),
        (None, ("--html", "run.html"), 2, "does not exist"),
    ],
)
def test_what_cannot_be_replayed(
    text: str | None, arguments: tuple[str, ...], code: int, problem: str, home: Path
) -> None:
    if text is not None:
        (home / "run.ndjson").write_text(text, "utf-8")
    done = run_command("replay", "run.ndjson", *arguments)
    assert (done.code, done.out) == (code, "")
    assert problem in done.err


def test_a_recording_without_a_run(home: Path) -> None:
    async def record() -> None:
        async with open_agent("builtin", record="run.ndjson"):
            pass

    anyio.run(record)
    done = run_command("replay", "run.ndjson")
    assert done.code == 6
    assert "no run was begun in it" in done.err


def test_a_recorded_run_is_written_as_one_page(recording: Path, home: Path) -> None:
    first, second, _ = re.findall(r'"type":"run","at":[^,]+,"run":"([^"]+)"', recording.read_text("utf-8"))
    several = run_command("replay", str(recording), "--html", "run.html")
    assert (several.code, several.out) == (2, "")
    assert f"holds several runs ({first}, {second}" in several.err
    done = run_command("replay", str(recording), "--run", first, "--html", "run.html")
    assert (done.code, done.out, done.err) == (0, "", "Written to run.html\n")
    page = (home / "run.html").read_text("utf-8")
    assert "hello" in page
    assert set(re.findall(r"[a-z]+://[^'\"`\s]+", page.partition('id="saved">')[0])) == {
        "http://www.w3.org/2000/svg"  # the name of a vocabulary, which nothing is loaded from
    }
    again = run_command("replay", str(recording), "--run", second, "--html", "run.html")
    assert again.code == 2
    assert "exists already" in again.err
    assert (home / "run.html").read_text("utf-8") == page
    for target, code, problem in (
        ("nowhere/run.html", 2, "there is no folder nowhere"),
        (f"{'x' * 300}.html", 1, "File name too long"),
        (".", 2, "is a directory"),
    ):
        failed = run_command("replay", str(recording), "--run", first, "--html", target)
        assert (failed.code, failed.out) == (code, ""), target
        assert problem in failed.err


def test_the_demo(home: Path) -> None:
    done = run_command("demo", "--record", "demo.ndjson")
    assert done.code == 0, done.err
    assert set(json.loads(done.out)) == {"title", "summary", "score", "suggestions"}
    assert "parser.py" in done.err
    assert "thinkwell run -a claude" in done.err
    assert json.loads(run_command("replay", "demo.ndjson", "--speed", "0").out) == json.loads(done.out)


def test_verbose_tells_what_the_demo_has_logged(home: Path) -> None:
    assert "Info: " not in run_command("demo").err
    assert "Info: Run " in run_command("demo", "--verbose").err


def test_the_demo_of_a_folder(home: Path) -> None:
    other = home / "other"
    other.mkdir()
    (other / "special.py").write_text("def special(): pass\n", "utf-8")
    done = run_command("demo", str(other))
    assert done.code == 0, done.err
    assert "special.py" in done.out
    assert run_command("demo", "nowhere").code == 2


def test_a_run_is_recorded(home: Path) -> None:
    command = scripted(home, script.says("hello"))
    assert run_command("run", "go", "-q", "--command", command, "--record", "run.ndjson").out == "hello\n"
    assert run_command("replay", "run.ndjson", "-q").out == "hello\n"
