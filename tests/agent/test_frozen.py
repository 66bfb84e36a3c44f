"""A program that is no Python, though it seems to be, does not start itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipapp
from pathlib import Path

import anyio
import pytest
from scripted import Played, Turn, scripted

from thinkwell import AgentStartFailed, CapabilityMissing, McpStdio, open_agent
from thinkwell.builtin import BuiltinAgent
from thinkwell.testing import ScriptedAgent, replay_agent, script
from thinkwell_acp import ProgramNotStarted, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s

PROGRAM = str(Path(__file__).parent / "programs" / "taken_for_python.py")

REASONS = {
    "frozen": r"this program is frozen \(as by PyInstaller\), so .* is the program, not a Python interpreter",
    "embedded": "this program embeds Python, so /usr/bin/uwsgi is the program, not a Python interpreter",
    "found out": r".* is not Python: started as Python, it did not run -P -m thinkwell\.builtin",
    "unknown": "this program embeds Python, and sys.executable is empty",
}


@pytest.fixture(params=REASONS)
def reason(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why there is no Python."""
    match request.param:
        case "frozen":
            monkeypatch.setattr(sys, "frozen", True, raising=False)
        case "embedded":
            monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
        case "found out":
            arguments = ["program", "-P", "-m", "thinkwell.builtin"]
            monkeypatch.setattr(sys, "argv", arguments)
            monkeypatch.setattr(sys, "orig_argv", arguments)
        case _:
            monkeypatch.setattr(sys, "executable", None)
    return REASONS[request.param]


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)


@pytest.mark.usefixtures("frozen")
async def test_the_built_in_agent_is_not_started() -> None:
    with pytest.raises(AgentStartFailed, match=f"'builtin' .*{REASONS['frozen']}"):
        async with open_agent("builtin"):
            raise AssertionError("it started")


@pytest.mark.parametrize("arguments", [["-P", "-m", "thinkwell.builtin"], ["agent.py"]])
async def test_no_command_for_python_is_started(reason: str, arguments: list[str]) -> None:
    with pytest.raises(AgentStartFailed, match=rf"{reason}\. Name a Python that is installed"):
        async with open_agent(command=[sys.executable or "", *arguments]):
            raise AssertionError("it started")


async def test_a_command_does_not_start_what_was_started_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-P", "-m", "thinkwell.builtin"])
    with pytest.raises(AgentStartFailed, match=r"by the same command.*\. Name a Python"):
        async with open_agent(command=[sys.executable, "-P", "-m", "thinkwell.builtin"]):
            raise AssertionError("it started")


@pytest.mark.usefixtures("frozen")
async def test_mcp_servers_start_without_what_guards_them(tmp_path: Path) -> None:
    """The built-in agent starts them, within the program."""
    parent = tmp_path / "parent"
    server = McpStdio("tells", ["sh", "-c", f"echo $PPID > {parent}"])
    ours, theirs = memory_transport_pair()
    async with (
        BuiltinAgent() as builtin,
        serve_agent(theirs, builtin),
        open_agent(transport=ours, mcp_servers=[server]) as agent,
        agent.session(),
    ):
        with anyio.fail_after(30):
            while not parent.exists() or not parent.read_text():  # noqa: ASYNC110 - nothing tells
                await anyio.sleep(0.01)
    assert int(parent.read_text()) == os.getpid()


@pytest.mark.usefixtures("frozen")
async def test_a_frozen_program_may_be_an_agent_too() -> None:
    """Such as one that is told so by an argument of its own."""
    with pytest.raises(AgentStartFailed, match="exited with code 2"):
        async with open_agent(command=[sys.executable, "--as-agent"]):
            raise AssertionError("it started")


async def test_commands_of_agents_for_tests_are_refused(reason: str, tmp_path: Path) -> None:
    async with scripted(answers, record=tmp_path / "recording") as agent:
        await agent.think().text("Go").run()
    with pytest.raises(ProgramNotStarted, match=reason):
        replay_agent(tmp_path / "recording")
    with pytest.raises(ProgramNotStarted, match=reason):
        ScriptedAgent(script.says("Hello"), folder=tmp_path).program()


async def test_the_program_that_carries_tools_is_not_offered(reason: str) -> None:
    with pytest.raises(ValueError, match=rf'tools_via="stdio"\): {reason}'):
        open_agent("builtin", tools_via="stdio")
    async with scripted(agent=Played([answers], capabilities=s.AgentCapabilities())) as agent:
        assert await agent.think().text("Go").run() == "no tools"
        with pytest.raises(
            CapabilityMissing, match=rf"mcpCapabilities.http, .* tools and typed results: {reason}"
        ):
            await agent.think(int).text("Go").run()


async def answers(turn: Turn) -> None:
    turn.say("no tools")


def test_a_program_that_does_not_know_what_it_is_finds_out(tmp_path: Path) -> None:
    itself = tmp_path / "python-app"
    itself.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PROGRAM}" "{tmp_path}/starts" "$0" "$@"\n')
    itself.chmod(0o755)
    said = subprocess.run([str(itself)], capture_output=True, text=True, timeout=60, check=False)
    assert "is not Python: started as Python, it did not run -P -m thinkwell.builtin" in said.stderr
    assert len((tmp_path / "starts").read_text().splitlines()) == 3, "itself, and what it tried to start"


BODY = """
import sys
from pathlib import Path

with Path(STARTS).open("a") as file:
    print(*sys.argv[1:], file=file)

from thinkwell.frozen import freeze_support
from thinkwell.sync import open_agent

if __name__ == "__main__":
    freeze_support()
    with open_agent("builtin", tools_via="stdio") as agent:
        print(agent.think(int).text("How many files are there?").run())
"""

FROZEN = """
import sys

sys.frozen = True
sys.executable = sys.argv.pop(1)
sys.orig_argv = [sys.executable, *sys.argv[1:]]
"""


@pytest.fixture(params=["frozen", pytest.param("archive", marks=pytest.mark.long)])
def itself(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The command of a program that runs helpers by itself, and notes its arguments in ``starts``."""
    body = f"STARTS = {str(tmp_path / 'starts')!r}\n{BODY}"
    if request.param == "frozen":
        program, launcher = tmp_path / "program.py", tmp_path / "program"
        program.write_text(FROZEN + body)
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$0" "$@"\n')
        launcher.chmod(0o755)
        return [str(launcher)]
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(body)
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz")
    return [sys.executable, "app.pyz"]


def run(command: list[str], folder: Path) -> str:
    """Run a program in a folder; return what it printed."""
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_a_program_that_supports_it_runs_helpers_by_itself(itself: list[str], tmp_path: Path) -> None:
    assert run(itself, tmp_path).strip().isdecimal()
    assert "plays a script" in run([*itself, "-P", "-m", "thinkwell.testing", "--help"], tmp_path)
    started = (tmp_path / "starts").read_text().splitlines()
    assert [re.findall(r"(?<=-m )\S+|\w+\.py\b", line)[:1] for line in started] == [
        [],
        ["thinkwell.builtin"],
        ["guard.py"],
        ["shim.py"],
        ["thinkwell.testing"],
    ]


def test_other_programs_are_not_started_by_themselves(tmp_path: Path) -> None:
    """Neither a script of the user's, nor anything of a program that Python runs."""
    code = """
import sys
from thinkwell import AgentError, sync
from thinkwell.frozen import freeze_support
for sys.frozen in (True, False):
    freeze_support()
    try: sync.open_agent(command=[sys.executable, 'agent.py']).start()
    except AgentError as exc: print(sys.frozen, 'this program is frozen' in str(exc))
"""
    assert run([sys.executable, "-c", code], tmp_path).split() == ["True", "True", "False", "False"]


def test_a_program_that_has_no_name_for_itself_starts_nothing() -> None:
    code = (
        "import sys; sys.executable = None; import thinkwell.agents\n"
        "from thinkwell.frozen import freeze_support; freeze_support()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
