"""What an agent needs before it can be started is installed, once, and what goes wrong with that is told."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import shutil
import socket
import sys
import tarfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio
from msgspec.structs import replace
from profiles.file_server import file_server
from profiles.machine import HERE
from trio.testing import MockClock

from thinkwell import AgentNotFound, AgentStartFailed, open_agent
from thinkwell.agents import AgentProfile, Archive, Binary, EnvironmentRules, KnownError, Npx, Program, Uvx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from thinkwell import Agent
    from thinkwell.events import PhaseChanged

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs of POSIX systems")

FETCHER = Path(__file__).parent / "programs" / "fetcher.py"
TRIO_MOCKED = pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])

MINE = AgentProfile(name="mine", npx=Npx(package="@acme/agent", version="1.2.3", args=("--acp",)))
NEWEST = replace(MINE, npx=Npx(package="@acme/agent"))
FROM_PYPI = AgentProfile(
    name="theirs", uvx=Uvx(package="acme-cli", version="1.2.3", program="acme", args=("acp",))
)

COLD = ["launching", "installing", "initializing"]
WARM = ["launching", "initializing"]
ALL_OF_THEM = pytest.mark.parametrize("profile", [MINE, FROM_PYPI], ids=["npx", "uvx"])
INSTALLS = {
    "mine": ["--yes", "--package=@acme/agent@1.2.3", "--", "node", "-e", "0"],
    "theirs": ["--from", "acme-cli@1.2.3", "python", "-c", ""],
}


class Machine:
    """A machine with npx and uvx that are scripts of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.log = folder / "log"
        self.env = {
            "PATH": str(self.programs),
            "HOME": str(folder / "home"),
            "UV_CACHE_DIR": str(folder / "uv"),
            "FETCHER_LOG": str(self.log),
        }
        self.phases: list[PhaseChanged] = []
        for name in ("npx", "uvx"):
            self.program(name, f"exec '{sys.executable}' -S '{FETCHER}' {name} \"$0\" \"$@\"")

    def program(self, name: str, script: str, *, begin: str = "#!/bin/sh\n") -> Path:
        """Put a script on the PATH."""
        file = self.programs / name
        file.write_text(f"{begin}{script}\n")
        file.chmod(0o755)
        return file

    @asynccontextmanager
    async def opened(self, profile: AgentProfile, **options: Any) -> AsyncGenerator[Agent]:
        """Start an agent, and keep what is told of it."""
        self.phases.clear()
        env = {**self.env, **options.pop("env", {})}
        with anyio.fail_after(options.pop("within", 30)):
            async with open_agent(profile, env=env, on_phase=self.phases.append, **options) as agent:
                yield agent

    async def starts(self, profile: AgentProfile, **options: Any) -> list[str]:
        """Return the phases of a launch."""
        async with self.opened(profile, **options):
            return [event.phase for event in self.phases]

    async def fails(self, profile: AgentProfile, **options: Any) -> AgentStartFailed:
        """Return why an agent is not started."""
        with pytest.raises(AgentStartFailed) as caught:
            async with self.opened(profile, **options):
                raise AssertionError("it started")
        assert caught.value.agent == profile.name
        return caught.value

    async def misses(self, profile: AgentProfile, **options: Any) -> AgentNotFound:
        """Return what is missing."""
        with pytest.raises(AgentNotFound) as caught:
            async with self.opened(profile, **options):
                raise AssertionError("it started")
        assert caught.value.agent == profile.name
        return caught.value

    @property
    def called(self) -> list[list[str]]:
        """What the scripts were called with, since the last look."""
        lines = self.log.read_text().splitlines()
        self.log.write_text("")
        return [[name, *rest] for name, _, *rest in map(json.loads, lines)]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in tuple(os.environ):
        if name.lower() == "npm_config_cache":
            monkeypatch.delenv(name)
    return Machine(tmp_path)


class Line:
    """The other end of what a script that hangs or waits holds open."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = str(self._server.getsockname()[1])

    def close(self) -> None:
        self._server.close()

    async def accept(self) -> socket.socket:
        """Return when a script has come to where it hangs or waits."""
        self._server.setblocking(False)
        await anyio.wait_readable(self._server)
        line, _ = self._server.accept()
        line.setblocking(False)
        await anyio.wait_readable(line)
        assert line.recv(1) == b"!"
        return line


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line()
    yield line
    line.close()


async def end_of(line: socket.socket) -> None:
    """Wait until no process holds the other end of a line."""
    with anyio.fail_after(30):
        await anyio.wait_readable(line)
    with suppress(ConnectionResetError):
        assert line.recv(1) == b""
    line.close()


# Installation


@ALL_OF_THEM
async def test_it_is_installed_once(machine: Machine, profile: AgentProfile) -> None:
    assert await machine.starts(profile) == COLD
    fetcher = profile.command[0]
    source = {"npx": "npm", "uvx": "PyPI"}[fetcher]
    assert isinstance(profile.launch, Npx | Uvx)
    spec = profile.launch.spec
    assert [event.detail for event in machine.phases] == ["", f"{source} package {spec}", ""]
    *check, install, run = machine.called
    offline = [["uvx", "--offline", *INSTALLS["theirs"]]]
    assert check == (offline if fetcher == "uvx" else [])
    assert install == [fetcher, *INSTALLS[profile.name]]
    assert run == list(profile.command)
    assert await machine.starts(profile) == WARM
    # What is there is started without the network, which may be slow, or gone.
    without = {"npx": list(profile.command), "uvx": ["uvx", "--offline", *profile.command[1:]]}
    assert machine.called == [*check, without[fetcher]]


@pytest.mark.parametrize(
    "profile",
    [NEWEST, replace(FROM_PYPI, uvx=Uvx(package="acme-cli"))],
    ids=["npx", "uvx"],
)
async def test_the_newest_version_is_always_asked_for(machine: Machine, profile: AgentProfile) -> None:
    for _ in range(2):
        assert await machine.starts(profile) == COLD
        install, run = machine.called
        assert run == list(profile.command)
        assert any("@latest" in word for word in install)


async def test_each_version_is_installed(machine: Machine) -> None:
    assert await machine.starts(MINE) == COLD
    assert await machine.starts(MINE.at("1.2.4")) == COLD
    assert await machine.starts(MINE) == WARM
    assert await machine.starts(MINE.at("1.2.4")) == WARM


@pytest.mark.parametrize(
    "name", ["npm_config_cache", pytest.param("NPM_CONFIG_CACHE", marks=pytest.mark.long)]
)
async def test_the_cache_of_npm_may_be_elsewhere(machine: Machine, tmp_path: Path, name: str) -> None:
    env = {name: str(tmp_path / "cache")}
    assert await machine.starts(MINE, env=env) == COLD
    assert (tmp_path / "cache" / "_npx").is_dir()
    assert await machine.starts(MINE, env=env) == WARM
    assert await machine.starts(MINE, env={name: ""}) == COLD


async def test_an_environment_without_a_home(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.program("npx", "exit 7")
    monkeypatch.delenv("HOME")
    del machine.env["HOME"]
    error = await machine.fails(MINE)
    assert (error.exit_code, error.phase) == (7, "installing")


async def test_the_environment_and_the_folder_of_the_agent_are_those_of_what_installs_it(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GONE", "caller")
    machine.program("npx", '/bin/pwd > "$TOLD"; echo "$SET $GONE." >> "$TOLD"; exit 1')
    told, work = tmp_path / "told", tmp_path / "work"
    work.mkdir()
    profile = replace(MINE, env=EnvironmentRules(set={"SET": "profile"}, strip=("GONE",)))
    await machine.fails(profile, cwd=work, env={"TOLD": str(told)})
    assert told.read_text() == f"{work}\nprofile .\n"


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(rate=1)})])
async def test_the_time_for_the_start_does_not_run_while_it_is_installed(
    machine: Machine, line: Line
) -> None:
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)

    async def install() -> None:
        with await line.accept() as waiting:
            clock.jump(1000)
            waiting.sendall(b"!")

    profile = replace(MINE, cold_start=5000)
    env = {"FETCHER": "waits", "FETCHER_PORT": line.port}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(install)
        async with machine.opened(profile, env=env, startup_timeout=60, within=9000) as agent:
            launching, installing, initializing = (phase.seconds or 0 for phase in agent.launch_phases)
            assert launching < 60
            assert 1000 <= installing < 1060
            assert 0 < initializing < 60


# What goes wrong with it


@ALL_OF_THEM
async def test_what_cannot_be_installed_says_all_about_it(machine: Machine, profile: AgentProfile) -> None:
    error = await machine.fails(profile, env={"FETCHER": "fails"})
    fetcher = profile.command[0]
    assert (error.phase, error.version, error.exit_code) == ("installing", "1.2.3", 7)
    assert error.command == (fetcher, *INSTALLS[profile.name])
    assert error.next_command.startswith(f"{fetcher} --")
    assert error.stderr_tail == "fetcher: fails\n404 Not Found\n"
    text = str(error)
    assert text.startswith(f"Agent '{profile.name}' (version 1.2.3) could not be started: the ")
    assert f"could not be installed: {fetcher} exited with code 7" in text
    assert text.count(error.next_command) == 1
    assert "404 Not Found" in text
    assert [event.phase for event in machine.phases] == COLD[:2]
    assert (await machine.starts(profile)) == COLD  # nothing stands in the way of the next time


async def test_what_can_be_done_about_it_is_said(machine: Machine) -> None:
    rows = (
        known("Use Node 24.", said="404 not found"),
        known("Take another.", said="python"),
        known("Look again.", error="AgentNotFound"),
    )
    profile = replace(MINE, errors=rows)
    error = await machine.fails(profile, env={"FETCHER": "fails"})
    assert error.__notes__ == ["Use Node 24."]
    missing = await machine.misses(profile, env={"PATH": ""})
    assert missing.__notes__ == ["Look again."]


def known(hint: str, *, said: str = "", error: str = "") -> KnownError:
    return KnownError(said=said, error=error, hint=hint, version="1", seen=dt.date(2026, 11, 22))


@pytest.mark.parametrize(
    "profile", [MINE, pytest.param(FROM_PYPI, marks=pytest.mark.long)], ids=["npx", "uvx"]
)
async def test_what_takes_too_long_is_ended(machine: Machine, profile: AgentProfile, line: Line) -> None:
    env = {"FETCHER": "hangs", "FETCHER_PORT": line.port}
    error = await machine.fails(replace(profile, cold_start=1.5), env=env)
    assert "was not installed in time (1.5 seconds, cold_start of its profile)" in error.reason
    assert (error.phase, error.version, error.exit_code) == ("installing", "1.2.3", None)
    assert error.stderr_tail == "fetcher: hangs\n"
    assert error.next_command
    await end_of(await line.accept())


@ALL_OF_THEM
@TRIO_MOCKED
async def test_an_installation_has_five_minutes(machine: Machine, profile: AgentProfile) -> None:
    for name in ("npx", "uvx"):
        machine.program(name, '[ "$1" = --offline ] && exit 1; read never')
    began = anyio.current_time()
    error = await machine.fails(profile, within=9000)
    assert "not installed in time (300 seconds" in error.reason
    assert [event.phase for event in machine.phases] == COLD[:2]
    assert 300 <= anyio.current_time() - began < 400


@TRIO_MOCKED
async def test_a_look_whether_it_is_there_has_half_a_minute(machine: Machine) -> None:
    machine.program("uvx", "read never")
    began = anyio.current_time()
    error = await machine.fails(FROM_PYPI, within=9000)
    assert "not installed in time" in error.reason
    assert 330 <= anyio.current_time() - began < 400


@pytest.mark.parametrize(
    ("profile", "mode"), [(MINE, "hangs"), (FROM_PYPI, "hangs"), (FROM_PYPI, "hangs offline")]
)
async def test_an_abandoned_installation_is_ended(
    machine: Machine, profile: AgentProfile, mode: str, line: Line
) -> None:
    env = {"FETCHER": mode, "FETCHER_PORT": line.port}

    async def start() -> None:
        async with machine.opened(profile, env=env):
            raise AssertionError("it started")

    held: list[socket.socket] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            held.append(await line.accept())
            tasks.cancel_scope.cancel()
    await end_of(held[0])
    assert [event.phase for event in machine.phases] == (COLD[:2] if mode == "hangs" else COLD[:1])


# What is missing


async def test_npx_is_missing(machine: Machine) -> None:
    (machine.programs / "npx").unlink()
    error = await machine.misses(MINE)
    assert "no program 'npx' on the PATH; it comes with Node.js" in str(error)
    assert error.next_command == ""
    assert [event.phase for event in machine.phases] == ["launching"]


async def test_uvx_is_missing(machine: Machine) -> None:
    (machine.programs / "uvx").unlink()
    error = await machine.misses(FROM_PYPI)
    assert "no program 'uvx' on the PATH; it comes with uv" in str(error)
    assert "\nNext, type: pip install uv" in str(error)


@pytest.mark.parametrize(
    ("install", "website", "reason", "next_command"),
    [
        ("brew install goose", "", "install it, or give its whole path", "brew install goose"),
        ("brew install goose", "https://example.com", "see https://example.com", "brew install goose"),
        ("", "https://example.com", "install it; see https://example.com", ""),
        ("https://example.com/get", "https://example.com", "; see https://example.com/get", ""),
        ("", "", "install it, or give its whole path", ""),
    ],
)
async def test_a_program_is_missing(
    machine: Machine, install: str, website: str, reason: str, next_command: str
) -> None:
    program = Program(command=("goose", "acp"), install=install)
    profile = AgentProfile(name="goose", website=website, program=program)
    error = await machine.misses(profile)
    assert error.reason.startswith("there is no program 'goose' on the PATH; ")
    assert error.reason.endswith(reason)
    assert error.next_command == next_command
    assert str(error).endswith(f"\nNext, type: {next_command}" if next_command else reason)


async def test_a_program_that_is_there_is_started_at_once(machine: Machine) -> None:
    machine.program("goose", 'exec /bin/sh "$0.real" "$@"')
    odd = FETCHER.parents[2] / "agent" / "programs" / "odd_agent.py"
    machine.program("goose.real", f"exec '{sys.executable}' '{odd}' works")
    profile = AgentProfile(name="goose", program=Program(command=("goose", "acp")))
    assert await machine.starts(profile) == WARM


@ALL_OF_THEM
async def test_what_fetches_it_is_no_program(machine: Machine, profile: AgentProfile) -> None:
    for name in ("npx", "uvx"):
        machine.program(name, "no program", begin="")
    error = await machine.fails(profile)
    assert "cannot be started" in error.reason
    assert error.phase == ("installing" if profile is MINE else "launching")
    assert error.version == "1.2.3"


async def test_a_file_that_may_not_be_run(machine: Machine) -> None:
    file = machine.program("goose", "exit 0")
    file.chmod(0o644)
    error = await machine.fails(AgentProfile(name="goose", program=Program(command=(str(file),))))
    assert "exists but is not an executable program" in error.reason
    assert (error.phase, error.version) == ("launching", None)


async def test_what_fetches_it_goes_away(machine: Machine) -> None:
    error = await machine.misses(MINE, env={"FETCHER": "vanishes"})
    assert "no program 'npx'" in error.reason


async def test_what_fetches_it_breaks(machine: Machine) -> None:
    machine.program("npx", f"exec '{sys.executable}' -S '{FETCHER}' npx \"$0\" \"$@\"", begin="#!/bin/sh\n")
    error = await machine.fails(MINE, env={"FETCHER": "breaks"})
    assert "cannot be started" in error.reason
    assert (error.phase, error.version, error.command) == ("launching", "1.2.3", MINE.command)


async def test_an_agent_that_does_not_answer_says_its_version(machine: Machine) -> None:
    error = await machine.fails(MINE, env={"FETCHED": "exit"})
    assert (error.phase, error.version, error.exit_code) == ("initializing", "1.2.3", 3)
    assert error.next_command.endswith("@acme/agent@1.2.3 --acp")
    assert "no key was found" in error.stderr_tail
    assert str(error).count("@acme/agent@1.2.3") == 1


# Programs that are downloaded


def archived(url: str) -> AgentProfile:
    archive = Archive(
        archive=url, cmd="./bin/agent", args=("works",), env={"SAID": "by it", "GIVEN": "by it"}
    )
    return AgentProfile(name="mine", binary=Binary(version="1.2.3", archives={HERE: archive}))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")


@pytest.mark.usefixtures("own_cache")
async def test_a_program_is_downloaded_once(machine: Machine) -> None:
    odd = FETCHER.parents[2] / "agent" / "programs" / "odd_agent.py"
    script = f"#!/bin/sh\nexec '{sys.executable}' '{odd}' \"$@\"\n".encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("bin/agent")
        member.size = len(script)
        tar.addfile(member, io.BytesIO(script))
    with file_server() as files:
        profile = archived(files.file("/agent.tar.gz", packed.getvalue()))
        for phases in (COLD, WARM):
            async with machine.opened(profile, env={"GIVEN": "by the caller"}) as agent:
                assert [event.phase for event in machine.phases] == phases
                facts = json.loads(await agent.think().text("Who are you?").run())
                assert (facts["env"]["SAID"], facts["env"]["GIVEN"]) == ("by it", "by the caller")
        assert files.asked == ["/agent.tar.gz"]


@pytest.mark.usefixtures("own_cache")
async def test_a_download_has_the_same_limit(machine: Machine) -> None:
    with file_server() as files:
        profile = replace(archived(files.raw("/agent.zip", hang=True)), cold_start=0.2)
        error = await machine.fails(profile)
        assert "the program was not installed in time (0.2 seconds" in error.reason
        assert (error.phase, error.version) == ("installing", "1.2.3")


# The real ones


@pytest.mark.long
@pytest.mark.parametrize(
    ("profile", "folders"),
    [
        (
            AgentProfile(name="semver", npx=Npx(package="semver", version="7.7.2", args=("1.2.3",))),
            ["npm_config_cache"],
        ),
        (
            AgentProfile(name="pycowsay", uvx=Uvx(package="pycowsay", version="0.0.0.2", args=("moo",))),
            ["UV_CACHE_DIR", "UV_TOOL_DIR"],
        ),
    ],
    ids=["npx", "uvx"],
)
async def test_the_real_one(profile: AgentProfile, folders: list[str], tmp_path: Path) -> None:
    fetcher = profile.command[0]
    if shutil.which(fetcher) is None:
        pytest.skip(f"there is no {fetcher}")
    env = {name: str(tmp_path / name) for name in folders}
    for expected in (COLD, WARM):
        phases: list[PhaseChanged] = []
        if expected == WARM and fetcher == "uvx":
            env["HTTPS_PROXY"] = "http://127.0.0.1:9"  # the index is not asked again
        with anyio.fail_after(120), pytest.raises(AgentStartFailed) as caught:
            async with open_agent(profile, env=env, on_phase=phases.append):
                pass
        if caught.value.phase == "installing":
            pytest.skip("nothing can be fetched here")
        assert [event.phase for event in phases] == expected
        assert caught.value.exit_code == 0  # it is no agent
