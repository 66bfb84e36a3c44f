"""Ctrl-C, readers that go away, agents that are killed: nothing is left running."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from cli.typing_in import LIMIT, home, scripted, thinkwell

from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Sequence

if sys.platform == "win32":
    pytest.skip("terminals of POSIX systems", allow_module_level=True)

from cli.terminal import CTRL_C, in_terminal, processes_with

__all__ = ("home",)

SHOWN = (("--style", "live"), ("--style", "lines"), ("--json",))


@pytest.mark.parametrize("how", SHOWN, ids=" ".join)
def test_ctrl_c_cancels(how: Sequence[str], home: Path) -> None:
    command = scripted(home, script.says("ready\n\n").hangs())
    with in_terminal("run", "go", "--command", command, *how) as terminal:
        terminal.wait_for("ready")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    assert b"Traceback" not in terminal.shown
    assert processes_with(str(home)) == []


@pytest.mark.parametrize("how", SHOWN, ids=" ".join)
def test_a_second_ctrl_c_kills(how: Sequence[str], home: Path) -> None:
    command = scripted(home, script.says("ready\n\n").hangs().says("not yet\n\n").hangs(deaf=True))
    with in_terminal("run", "go", "--command", command, *how) as terminal:
        terminal.wait_for("ready")
        terminal.type(CTRL_C)
        terminal.wait_for("not yet")  # two signals at once are one
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    assert b"Traceback" not in terminal.shown
    assert processes_with(str(home)) == []


def test_ctrl_c_while_the_agent_starts(home: Path) -> None:
    waits = f"{sys.executable} -c 'import time; time.sleep(600)  # {home}'"
    with in_terminal("run", "go", "--command", waits) as terminal:
        terminal.wait_for("starting")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    assert b"Traceback" not in terminal.shown
    assert processes_with(str(home)) == []


def test_ctrl_c_ends_a_replay_with_all_its_runs(home: Path) -> None:
    agent = ScriptedAgent(script.says("first").pauses(0.5).stops().says("second"))

    async def record() -> None:
        async with agent.open(record="run.ndjson") as opened:
            for _ in range(2):
                await opened.think().text("go").run()

    anyio.run(record)
    with in_terminal("replay", "run.ndjson", "--speed", "0.001", "--style", "lines") as terminal:
        terminal.wait_for("[phase]")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    assert b"second" not in terminal.shown


def test_ctrl_c_ends_the_demo(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "60")
    with in_terminal("demo") as terminal:
        terminal.wait_for("Find out what to read")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    assert b"Go on with a real one" not in terminal.shown


def test_ctrl_c_ends_trials(home: Path) -> None:
    command = scripted(home, script.says("ready").hangs())
    (home / "pyproject.toml").write_text(
        f"[tool.thinkwell.agents.slow.program]\ncommand = {json.dumps(shlex.split(command))}\n", "utf-8"
    )
    (home / "plan.toml").write_text('task = "Go"\nagents = ["slow"]\ninputs = ["a"]\n', "utf-8")
    with in_terminal("trials", "plan.toml") as terminal:
        terminal.wait_for("running")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    assert b"Traceback" not in terminal.shown
    assert processes_with(str(home)) == []


def test_ctrl_c_while_the_prompt_is_typed(home: Path) -> None:
    with in_terminal("run", "-") as terminal:
        terminal.wait_for("end it with Ctrl-D")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    assert b"Traceback" not in terminal.shown


def test_a_reader_that_goes_away_ends_the_run(home: Path) -> None:
    command = scripted(home, script.says("a").hangs())
    run = subprocess.Popen(
        thinkwell("run", "go", "--json", "--command", command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert json.loads(run.stdout.readline())["type"] == "phase"
        run.stdout.close()
        with suppress(ProcessLookupError):  # it has written more already, and has ended
            os.kill(agent_of(str(home)), signal.SIGTERM)  # news, so that something is written
        assert run.wait(LIMIT) == 141
        assert run.stderr.read() == b""
    assert processes_with(str(home)) == []


def test_a_result_without_a_reader(home: Path) -> None:
    command = scripted(home, script.says("a" * 1_000_000))
    line = 'set -o pipefail; "$@" | head -c 1'
    ran = subprocess.run(
        ["bash", "-c", line, "bash", *thinkwell("run", "go", "-q", "--command", command)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (141, b"a", b"")


def test_an_agent_that_is_killed(home: Path) -> None:
    command = scripted(home, script.says("ready").hangs())
    with (
        subprocess.Popen(
            thinkwell("run", "go", "--json", "--command", command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as run,
        ExitStack() as stack,
    ):
        stack.callback(run.kill)
        assert run.stdout is not None
        assert run.stderr is not None
        while b"ready" not in run.stdout.readline():
            pass
        os.kill(agent_of(str(home)), signal.SIGKILL)
        last = json.loads(run.stdout.read().splitlines()[-1])
        assert run.wait(LIMIT) == 3
        assert b"killed by signal 9" in run.stderr.read()
    assert (last["type"], last["error"]["type"]) == ("error", "AgentExited")
    assert processes_with(str(home)) == []


def agent_of(mark: str) -> int:
    """Return the process of the agent that a run has started.

    Raises:
        ProcessLookupError: It has ended.
    """
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # another process that has ended meanwhile
            line = path.read_bytes()
            if mark.encode() in line and b"thinkwell.testing" in line.split(b"\0"):
                return int(path.parent.name)
    raise ProcessLookupError(mark)
