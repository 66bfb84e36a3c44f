"""What the doctor says of agents that are not there, do not start, or do not end."""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from doctor.patients import NAMES, ODD, check, examined, examined_process, failed, sick, statuses
from login.login_agent import LoginAgent

from thinkwell.agents import AgentProfile, Archive, Binary, Npx, Program, Uvx
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell.doctor import Diagnosis

PLATFORMS = [f"{system}-{machine}" for system in ("linux", "darwin") for machine in ("x86_64", "aarch64")]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs of POSIX systems")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are looked for. Its node, npm and uv say their versions."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    program(folder / "node", "echo v24.1.0")
    program(folder / "npm", "echo 11.4.0")
    program(folder / "uv", "echo uv 0.9.2")
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)


def fetcher(path: Path, *, installs: str = "exit 0", mode: str = "well") -> None:
    """A program that installs as it is told, and then runs an agent."""
    agent = " ".join(sick(mode))
    cases = f'*--package=*|*" python -c"*) {installs};; *) exec {agent};;'
    program(path, f'case "$*" in {cases} esac')


def npx(version: str = "1.0") -> AgentProfile:
    return AgentProfile(name="mine", title="Mine", npx=Npx(package="mine", version=version))


def skipped_behind(diagnosis: Diagnosis, name: str) -> None:
    """Check that one check failed, and what follows was skipped."""
    assert failed(diagnosis) == [name]
    after = NAMES[NAMES.index(name) + 1 :]
    assert {statuses(diagnosis)[each] for each in after} == {"skipped"}


async def test_a_program_that_is_not_there() -> None:
    profile = AgentProfile(
        name="mine", program=Program(command=("no-such-program",), install="brew install it")
    )
    diagnosis = await examined_process(profile)
    skipped_behind(diagnosis, "found")
    found = check(diagnosis, "found")
    assert found.detail.startswith("there is no program 'no-such-program' on the PATH")
    assert found.hint == "$ brew install it"
    assert diagnosis.exit_code == 1
    assert diagnosis.command == ("no-such-program",)


async def test_npx_that_is_not_there(tools: Path) -> None:
    diagnosis = await examined_process(npx())
    skipped_behind(diagnosis, "found")
    assert "it comes with Node.js" in check(diagnosis, "found").detail


async def test_an_unknown_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    diagnosis = await examined_process("no-such-agent")
    assert failed(diagnosis) == ["found"]
    assert check(diagnosis, "found").detail.startswith("no known agent has that name")
    assert diagnosis.agent == "no-such-agent"
    assert diagnosis.exit_code == 1
    monkeypatch.setenv("THINKWELL_AGENT", "no-such-agent")
    assert failed(await examined_process()) == ["found"]


async def test_an_agent_that_is_installed_first(tools: Path) -> None:
    fetcher(tools / "npx")
    diagnosis = await examined_process(npx())
    found, installed = check(diagnosis, "found"), check(diagnosis, "installed")
    assert found.detail == f"{tools}/npx (node v24.1.0, npm 11.4.0)"
    assert installed.detail == "installed now: npm package mine@1.0"
    assert installed.seconds is not None
    assert check(diagnosis, "version").detail == "sick 1.0"
    assert diagnosis.title == "Mine"
    latest = await examined_process(npx("latest"))
    assert check(latest, "installed").detail == "the newest one was asked for: npm package mine@latest"
    assert check(latest, "version").status == "ok"


async def test_an_agent_that_cannot_be_installed(tools: Path) -> None:
    fetcher(tools / "npx", installs="echo no such package >&2; exit 7")
    diagnosis = await examined_process(npx())
    skipped_behind(diagnosis, "installed")
    installed = check(diagnosis, "installed")
    assert installed.detail == "the npm package mine@1.0 could not be installed: npx exited with code 7"
    assert installed.stderr == "no such package"
    assert installed.hint == "$ npx --yes --package=mine@1.0 -- node -e 0"


async def test_an_agent_that_is_there_already(tools: Path) -> None:
    fetcher(tools / "uvx")
    diagnosis = await examined_process(AgentProfile(name="mine", uvx=Uvx(package="mine", version="1.0")))
    assert check(diagnosis, "found").detail == f"{tools}/uvx (uv 0.9.2)"
    assert check(diagnosis, "installed").detail == "version 1.0 is there"


async def test_an_agent_that_was_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    archive = Archive(archive="https://example.com/mine.zip", cmd="./mine")
    digest = sha256(b"https://example.com/mine.zip\n./mine\n").hexdigest()[:16]
    folder = tmp_path / "thinkwell" / "agents" / "mine" / f"1.0-{digest}"
    folder.mkdir(parents=True)
    program(folder / "mine", f"exec {' '.join(sick('well'))}")
    binary = Binary(version="1.0", archives=dict.fromkeys(PLATFORMS, archive))
    diagnosis = await examined_process(AgentProfile(name="mine", binary=binary))
    assert check(diagnosis, "found").detail == "it is downloaded, and needs nothing else"
    assert check(diagnosis, "installed").detail == "version 1.0 is there"
    assert diagnosis.command == (str(folder / "mine"),)
    elsewhere = AgentProfile(name="mine", binary=Binary(version="1.0", archives={"plan9-mips": archive}))
    skipped_behind(await examined_process(elsewhere), "found")


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (None, "no node"),
        ("exit 1", "node does not say its version"),
        ("printf 'v1\\033[2J\\n2'", "node v1\\x1b[2J"),
    ],
)
async def test_what_runs_it_may_be_ill_itself(tools: Path, node: str | None, said: str) -> None:
    fetcher(tools / "npx")
    (tools / "node").unlink()
    if node is not None:
        program(tools / "node", node)
    diagnosis = await examined_process(npx())
    assert said in check(diagnosis, "found").detail.replace("'", "")


@pytest.mark.fast_time(20)
async def test_what_runs_it_may_not_answer(tools: Path) -> None:
    fetcher(tools / "npx")
    (tools / "sleep").symlink_to("/bin/sleep")
    program(tools / "node", "exec sleep 600")
    diagnosis = await examined_process(npx(), startup_timeout=1000, open_timeout=1000)
    assert "node does not answer" in check(diagnosis, "found").detail


async def test_what_runs_it_may_be_no_program(tools: Path) -> None:
    fetcher(tools / "npx")
    (tools / "node").write_bytes(b"\x7fELF and no more")
    diagnosis = await examined_process(npx())
    assert "node cannot be started (Exec format error)" in check(diagnosis, "found").detail


# Starting


async def test_an_agent_that_does_not_start() -> None:
    command = [sys.executable, ODD, "exit"]
    diagnosis = await examined_process(command=command)
    skipped_behind(diagnosis, "starts")
    starts = check(diagnosis, "starts")
    assert starts.detail.startswith("it exited with code 3 before it answered")
    assert starts.stderr.endswith("no key was found")
    assert starts.hint.startswith("$ ")
    assert check(diagnosis, "found").status == "ok"


async def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "agent"
    path.write_bytes(b"\x7fELF and no more")
    path.chmod(0o755)
    diagnosis = await examined_process(command=[str(path)])
    skipped_behind(diagnosis, "starts")


async def test_an_agent_that_does_not_answer() -> None:
    diagnosis = await examined_process(command=[sys.executable, ODD, "silent"], startup_timeout=0.5)
    skipped_behind(diagnosis, "starts")
    assert (
        "within 0.5 seconds. Raise startup_timeout= if it needs longer" in check(diagnosis, "starts").detail
    )


async def test_another_version_of_the_protocol() -> None:
    diagnosis = await examined_process(command=[sys.executable, ODD, "version"])
    assert failed(diagnosis) == ["protocol"]
    assert check(diagnosis, "starts").status == "ok"
    assert "7" in check(diagnosis, "protocol").detail


async def test_an_agent_that_prints_what_is_no_message() -> None:
    diagnosis = await examined_process(command=sick("noisy"))
    protocol = check(diagnosis, "protocol")
    assert protocol.status == "warning"
    assert protocol.detail.startswith("version 1. It printed a line that is not a message")
    assert "\x1b" not in diagnosis.table()


async def test_an_agent_that_does_not_say_what_it_is() -> None:
    diagnosis = await examined_process(command=sick("nameless"))
    version = check(diagnosis, "version")
    assert (version.status, version.detail) == (
        "warning",
        "it does not say what it is, or in which version",
    )
    assert diagnosis.version is None


async def test_another_version_than_the_profiles(tools: Path) -> None:
    fetcher(tools / "npx")
    version = check(await examined_process(npx("2.0")), "version")
    assert (version.status, version.detail) == ("warning", "sick 1.0, while its profile starts 2.0")


# Hostile words


async def test_no_word_of_an_agent_controls_the_terminal() -> None:
    diagnosis = await examined_process(command=sick("hostile"))
    for text in (diagnosis.table(), diagnosis.table(width=1), diagnosis.to_json()):
        assert all(char.isprintable() or char == "\n" for char in text)
    rows = [line for line in diagnosis.table().splitlines() if line.startswith("ok       login")]
    assert len(rows) == 1
    assert json.loads(diagnosis.to_json())["version"] == diagnosis.version


async def test_keys_in_a_command_are_not_shown() -> None:
    key = "sk-ant-api03-abcdefghijklmnop-1234567890"
    for command in (sick("well"), [sys.executable, ODD, "login"]):
        diagnosis = await examined_process(command=[*command, "--api-key", key])
        assert key not in diagnosis.table() + diagnosis.to_json()


async def test_keys_in_what_an_agent_says_are_not_shown() -> None:
    key = "sk-ant-api03-abcdefghijklmnop-1234567890"
    handler = LoginAgent("session/new")
    handler.methods = (
        s.AuthMethodTerminal(id="console", name="Console", args=("login",), env={"MY_API_KEY": key}),
    )
    diagnosis = await examined(handler)
    assert [method.env.keys() for method in diagnosis.auth_methods] == [{"MY_API_KEY"}]
    assert key not in diagnosis.table() + diagnosis.to_json()


# Ending


@pytest.mark.parametrize(
    ("mode", "status", "detail"),
    [
        ("well", "ok", "it exits by itself when its input is closed"),
        pytest.param(
            "deaf",
            "ok",
            "by SIGTERM: it does not exit when its input is closed",
            marks=pytest.mark.fast_time(4),
        ),
        pytest.param(
            "stubborn",
            "warning",
            "by SIGKILL: it exits neither when its input is closed nor by SIGTERM",
            marks=pytest.mark.fast_time(4),
        ),
    ],
)
async def test_how_it_ends(mode: str, status: str, detail: str) -> None:
    ends = check(await examined_process(command=sick(mode)), "ends")
    assert (ends.status, ends.detail) == (status, detail)
    assert ends.seconds is not None


@pytest.mark.fast_time(4)
async def test_nothing_is_left_running() -> None:
    for mode in ("well", "refuses", "stubborn"):
        mark = f"mark-{os.getpid()}-{mode}"
        await examined_process(command=[*sick(mode), mark])
        assert not running(mark)


def running(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False
