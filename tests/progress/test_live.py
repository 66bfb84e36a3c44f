"""`Live` and `show`, as programs use them: in terminals, in pipes, and in code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from progress.golden import recording
from progress.ptys import PROGRAMS, program
from progress.stage import leave_before_the_first_frame
from rich.console import Console
from scripted import Turn, scripted

import thinkwell
from thinkwell import ThoughtCancelled, ThoughtTimeout, replay
from thinkwell.progress import Live, show

if TYPE_CHECKING:
    from thinkwell.progress import Style

LAST_FRAME_TIMEOUT = 3.0
"""Seconds that a terminal gets for the last frame."""


async def one_word(turn: Turn) -> None:
    turn.say("Done")


async def for_ever(turn: Turn) -> None:
    turn.say("Well")
    await anyio.sleep_forever()


def lines_of(file: io.StringIO) -> list[str]:
    return file.getvalue().splitlines()


async def test_show_returns_the_result_and_draws_it(capfd: pytest.CaptureFixture[str]) -> None:
    async with scripted(one_word) as agent:
        with anyio.fail_after(30):
            assert await show(agent.think().text("Go").stream()) == "Done"
    out, err = capfd.readouterr()
    assert out == ""
    assert "[done]" in err
    assert "Done" in err


@pytest.mark.parametrize("github", [None, False])
async def test_in_github_actions_no_line_is_a_command_of_its_logs(
    github: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def command(turn: Turn) -> None:
        turn.say("##[add-mask]all")

    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    file = io.StringIO()
    async with scripted(command) as agent:
        await show(
            agent.think().text("Go").stream(), style="lines", console=Console(file=file), github=github
        )
    assert ("##[" in file.getvalue()) is (github is False)


async def test_show_raises_the_error_of_the_run() -> None:
    async with scripted(for_ever) as agent:
        stream = agent.think().text("Go").stream(timeout=0.1)
        with anyio.fail_after(30), pytest.raises(ThoughtTimeout):
            await show(stream, console=Console(file=io.StringIO()))


async def test_who_cancels_show_cancels_the_run() -> None:
    file = io.StringIO()
    async with scripted(for_ever) as agent:
        stream = agent.think().text("Go").stream()
        with anyio.fail_after(30), anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def cancel() -> None:
                    async for _ in stream:
                        scope.cancel()

                group.start_soon(cancel)
                await show(stream, console=Console(file=file))
        assert scope.cancelled_caught
        assert isinstance(stream.result.exception(), ThoughtCancelled)
        assert stream.view.phase == "cancelled"
    assert any("cancelled" in line for line in lines_of(file))


async def test_labels_and_several_runs() -> None:
    file = io.StringIO()
    async with scripted(one_word) as agent:
        streams = [agent.think().text("Go").stream() for _ in range(2)]
        with anyio.fail_after(30):
            async with Live(*streams, labels=["first", "second"], console=Console(file=file)):
                for stream in streams:
                    await stream.result
    assert any("first: " in line for line in lines_of(file))
    assert any("second: " in line for line in lines_of(file))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("style", ["live", "lines"])
async def test_a_run_with_its_result_is_done_where_the_block_ends_before_its_turn(
    style: Style, count: int
) -> None:
    async def returning(turn: Turn) -> None:
        await turn.returns(result=7)
        await anyio.sleep_forever()

    file = io.StringIO()
    async with scripted(returning) as agent:
        streams = [agent.think(int).text("Go").stream() for _ in range(count)]
        with anyio.fail_after(30):
            async with Live(*streams, console=Console(file=file, width=100), style=style):
                assert [await stream.result for stream in streams] == [7] * count
        assert all(stream.view.phase != "completed" for stream in streams)
    told = file.getvalue()
    assert told.count("done in") + told.count("✔ scripted") >= count
    assert f"{count} runs: {count} done" in told or count == 1 or style == "lines"
    assert "goes on" not in told
    assert "going on" not in told
    assert "left while" not in told


async def test_json() -> None:
    file = io.StringIO()
    async with scripted(one_word) as agent:
        with anyio.fail_after(30):
            await show(agent.think().text("Go").stream(), style="json", console=Console(file=file))
    told = [json.loads(line) for line in lines_of(file)]
    assert [each["type"] for each in told] == ["message", "result"]
    assert told[-1]["value"] == "Done"


async def test_json_of_several_runs_one_of_which_fails() -> None:
    file = io.StringIO()
    async with scripted(one_word, for_ever) as agent:
        first = agent.think().text("Go").stream()
        await first.result
        second = agent.think().text("Go").stream()
        with anyio.fail_after(30):
            async with Live(first, second, labels=["a", "b"], console=Console(file=file), style="json"):
                async for _ in second:
                    second.cancel()
                await second.wait()
    told = [json.loads(line) for line in lines_of(file)]
    assert [each["type"] for each in told if each["run"] == "a"] == ["message", "result"]
    assert [each["type"] for each in told if each["run"] == "b"] == ["message", "error"]
    assert told[-1]["error"]["type"] == "ThoughtCancelled"


@pytest.mark.parametrize("style", ["live", "lines", "json"])
async def test_the_runs_of_a_map_are_shown_as_they_start(style: Style) -> None:
    file = io.StringIO()
    async with scripted(one_word) as agent:
        early = agent.map(thinkwell.think().text("Go "), ["first", "second\nof two"], limit=1)
        console = Console(file=file, width=100)
        with anyio.fail_after(30):
            async with Live(early, console=console, style=style), Live(console=Console(file=io.StringIO())):
                assert [each.result for each in await early.results()] == ["Done", "Done"]
    told = file.getvalue()
    if style == "json":
        lines = [json.loads(line) for line in lines_of(file)]
        assert [each["run"] for each in lines if each["type"] == "result"] == ["first", "second of two"]
    else:
        assert told.index("first") < told.index("second of two")
    assert style != "live" or "2 runs: 2 done" in told


@pytest.mark.parametrize("style", ["live", "lines"])
async def test_an_input_whose_run_cannot_start_is_shown_as_failed(style: Style) -> None:
    file = io.StringIO()
    async with scripted(one_word) as agent:
        outcomes = agent.map(lambda name: agent.think().text("Go").resource(name), ["nope.py"])
        async with Live(outcomes, console=Console(file=file, width=100), style=style):
            await outcomes.results()
    assert any("nope.py" in line and "there is no file nope.py" in line for line in lines_of(file))


async def test_ctrl_c_cancels_a_map_whole() -> None:
    async with scripted(for_ever) as agent:
        outcomes = agent.map(thinkwell.think().text("Go "), ["a", "b"], limit=1)
        await anyio.wait_all_tasks_blocked()
        async with Live(outcomes, console=Console(file=io.StringIO())) as live:
            live.press_ctrl_c()
            (outcome,) = await outcomes.results()
        assert isinstance(outcome.error, ThoughtCancelled)


async def test_leaving_early_tells_what_has_happened_in_json() -> None:
    file = io.StringIO()
    async with scripted(for_ever) as agent:
        stream = agent.think().text("Go").stream()
        with anyio.fail_after(30):
            async with Live(stream, console=Console(file=file), style="json"):
                async for _ in stream:
                    break
    assert [json.loads(line)["type"] for line in lines_of(file)] == ["message"]


async def test_what_cannot_be_written_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Closed(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    async with scripted(one_word) as agent:
        stream = agent.think().text("Go").stream()
        with anyio.fail_after(30):
            assert await show(stream, style="json", console=Console(file=Closed())) == "Done"
    assert [record.levelname for record in caplog.records if record.name == "thinkwell"] == ["ERROR"]


async def test_live_in_a_console() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=24)
    async with scripted(one_word) as agent:
        stream = agent.think().text("Go").stream()
        with anyio.fail_after(30):
            assert await show(stream, style="live", console=console, answer=False) == "Done"
    assert "\x1b[?2026h" in file.getvalue()


@pytest.mark.parametrize("style", ["live", "lines"])
async def test_only_the_result_is_left_out(style: Style) -> None:
    async def shown(name: str, *, result: bool) -> str:
        file = io.StringIO()
        console = Console(file=file, force_terminal=style == "live", width=200, height=24)
        stream = replay(recording(name), speed=0)
        with anyio.fail_after(30):
            async with Live(stream, style=style, console=console, answer=False, result=result):
                await stream.wait()
        return file.getvalue()

    assert "tests_passed" in await shown("rich", result=True)
    without = await shown("rich", result=False)
    assert "tests_passed" not in without
    assert "session-1" in without
    assert "closed the connection" in await shown("died", result=False)


async def test_ctrl_c_from_elsewhere() -> None:
    async with scripted(for_ever) as agent:
        stream = agent.think().text("Go").stream()
        with anyio.fail_after(30):
            async with Live(stream, console=Console(file=io.StringIO())) as live:
                assert (live.presses, live.killed) == (0, False)
                live.press_ctrl_c()
                assert (live.presses, live.killed) == (1, False)
                with pytest.raises(ThoughtCancelled):
                    await stream.result


async def test_what_has_drawn_nothing_leaves_nothing() -> None:
    assert await leave_before_the_first_frame()


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="choose"):
        Live(style=cast("Style", "loud"))
    with pytest.raises(ValueError, match="1 labels for 0 runs"):
        Live(labels=["a"])


@pytest.mark.parametrize(
    ("environ", "terminal", "style"),
    [
        ({}, True, "live"),
        ({}, False, "lines"),
        ({"NO_COLOR": "1"}, True, "lines"),
        ({"NO_COLOR": ""}, True, "live"),
        ({"CI": "true"}, True, "lines"),
        ({"CI": "false"}, True, "live"),
        ({"TERM": "dumb"}, True, "lines"),
        ({"TERM": "xterm"}, True, "live"),
    ],
)
async def test_which_style(
    environ: dict[str, str], terminal: bool, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Out(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    async def shown(style: Style) -> str:
        out = Out()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", out)
            async with scripted(one_word) as agent:
                await show(agent.think().text("Go").stream(), style=style, answer=False)
        return out.getvalue()

    for name in ("NO_COLOR", "CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with anyio.fail_after(30):
        drawn = await shown("auto")
        assert ("live" if "\x1b[?2026h" in drawn else "lines") == style
        assert ("[done]" in drawn) == (style == "lines")
        assert json.loads((await shown("json")).splitlines()[-1])["type"] == "result"


def test_without_rich(tmp_path: Any) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['rich'] = None")
    code = "from thinkwell.progress import Live; Live(style='lines'); Live(style='live')"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert "pip install 'thinkwell[cli]'" in found.stderr


# In terminals


@pytest.mark.parametrize("style", ["live", pytest.param("lines", marks=pytest.mark.long)])
def test_a_question_is_answered_by_a_key(style: str) -> None:
    with program("stubborn.py", style, "asking") as shell:
        before = shell.settings()
        shell.expect(r"rm -rf build(?s:.*)\[y\]")
        shell.type_until("y", "result: (?s:.*)told y")
        assert shell.process.wait(30) == 0
        assert shell.settings() == before


def test_typing_does_not_move_what_is_redrawn() -> None:
    with program("stubborn.py", "live", "polite") as shell:
        before = shell.settings()
        shell.expect("working on it")
        while shell.echoes():
            time.sleep(0.01)
        shell.type("ls --typed-meanwhile\n\n")
        shell.type("\x03")
        shell.expect("came to ThoughtCancelled")
        assert shell.process.wait(30) == 0
        assert shell.settings() == before
        assert "typed-meanwhile" not in shell.seen


@pytest.mark.parametrize("style", ["lines", "unanswered"])
def test_typing_is_shown_where_nothing_is_redrawn_or_the_program_reads_it(style: str) -> None:
    with program("stubborn.py", style, "polite") as shell:
        shell.expect("working on it")
        shell.type("typed-meanwhile\n")
        shell.expect("typed-meanwhile")
        assert shell.echoes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_shows_again_what_is_typed(number: signal.Signals, tmp_path: Any) -> None:
    agent = f"{os.environ['AGENT_PYTHON']} {PROGRAMS / 'stubborn.py'} agent polite"
    with program(sys.executable, "-m", "thinkwell", "run", "--command", agent, "Go.", cwd=tmp_path) as shell:
        before = shell.settings()
        shell.expect("working on it")
        while shell.echoes():
            time.sleep(0.01)
        shell.process.send_signal(number)
        shell.process.wait(30)
        assert shell.settings() == before


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.long)])
def test_ctrl_z_gives_the_terminal_back_and_the_question_is_put_again(backend: str) -> None:
    with program(
        "sh", "-mc", f"{sys.executable} {PROGRAMS / 'stubborn.py'} live asking {backend}; fg"
    ) as shell:
        before = shell.settings()
        shell.expect(r"rm -rf build(?s:.*)\[y\]")
        while not shell.is_raw():
            time.sleep(0.01)
        shell.type("\x1a")
        shell.expect(r"\x1b\[\?25h")
        shell.expect(r"rm -rf build(?s:.*)\[y\]")
        shell.type_until("y", "result: (?s:.*)told y")
        shell.process.wait(30)
        assert shell.settings() == before


def test_typing_is_hidden_again_after_ctrl_z() -> None:
    run = f"{sys.executable} {PROGRAMS / 'stubborn.py'} live polite"
    with program("sh", "-mc", f"{run}; echo stopped; read ready; fg") as shell:
        before = shell.settings()
        shell.expect("working on it")
        while shell.echoes():
            time.sleep(0.01)
        shell.type("\x1a")
        shell.expect("stopped")
        assert shell.settings() == before
        shell.type("yes\n")
        while shell.echoes():
            time.sleep(0.01)
        shell.type("\x03")
        shell.expect("came to ThoughtCancelled")
        shell.process.wait(30)
        assert shell.settings() == before


def test_a_signal_ends_a_program_that_was_stopped_and_is_in_the_background() -> None:
    run = f"{sys.executable} {PROGRAMS / 'stubborn.py'} live polite"
    with program("sh", "-mc", f"{run}; bg; kill %1; wait; echo over") as shell:
        before = shell.settings()
        shell.expect("working on it")
        while shell.echoes():
            time.sleep(0.01)
        shell.type("\x1a")
        shell.expect("over")
        assert shell.settings() == before


def test_a_program_in_the_background_waits_for_the_keyboard() -> None:
    run = f"{sys.executable} {PROGRAMS / 'stubborn.py'} live asking"
    with program("sh", "-mc", f"{run}; bg; echo behind; sleep 1; fg") as shell:
        shell.expect(r"rm -rf build(?s:.*)\[y\]")
        while not shell.is_raw():
            time.sleep(0.01)
        shell.type("\x1a")
        shell.expect("behind")
        assert shell.echoes()
        shell.expect(r"rm -rf build(?s:.*)\[y\]")
        shell.type_until("y", "result: (?s:.*)told y")
        shell.process.wait(30)


@pytest.mark.parametrize(
    "style", ["live", *(pytest.param(style, marks=pytest.mark.long) for style in ("lines", "json"))]
)
def test_a_terminal_that_takes_no_output_holds_up_no_program(style: str) -> None:
    """Its buffer is full and nobody reads it. The program ends all the same, and Python with it."""
    ours, theirs = os.openpty()
    os.set_blocking(theirs, False)
    while select.select([], [theirs], [], 0.2)[1]:  # the system moves it on, for a while
        with contextlib.suppress(BlockingIOError):
            os.write(theirs, b"x" * 100)
    os.set_blocking(theirs, True)
    process = subprocess.Popen(
        [sys.executable, str(PROGRAMS / "pouring.py"), style],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "THINKWELL_BUILTIN_PACE": "0"},
    )
    try:
        out, _ = process.communicate(timeout=30)
        seconds = float(out.decode().removeprefix("ended after "))
        assert LAST_FRAME_TIMEOUT <= seconds < LAST_FRAME_TIMEOUT + 8
        assert process.returncode == 0
    finally:
        process.kill()
        os.close(ours)
        os.close(theirs)
