"""Agents that are downloaded as programs: fetched once, whole or not at all, by whoever comes first."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from profiles.file_server import FileServer, file_server
from profiles.machine import HERE

from thinkwell import open_agent
from thinkwell.agents import AgentProfile, Archive, Binary
from thinkwell.errors import AgentNotFound, AgentStartFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler

    from thinkwell.events import PhaseChanged

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs of POSIX systems")

PROGRAM = b'#!/bin/sh\necho "hello $*" "$SAID" >&2\nexit 3\n'
"""It is no agent, but tells what it was started with."""

HELLO = "hello  so\n"

ABANDONED = 24 * 3600.0
"""Seconds after which what an installation has left that was killed is removed."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache" / "thinkwell" / "agents"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as files:
        yield files


def tar(**files: bytes) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def binary(
    url: str,
    cmd: str = "./agent",
    *,
    args: tuple[str, ...] = (),
    sha256: str | None = None,
    version: str = "1.2.3",
) -> Binary:
    archive = Archive(archive=url, cmd=cmd, args=args, env={"SAID": "so"}, sha256=sha256)
    return Binary(version=version, archives={HERE: archive})


def everything(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "odd").iterdir())


async def opened(agent: Binary, *, path: str | None = None, phases: list[PhaseChanged] | None = None) -> None:
    """Install an agent where it is not there yet, and start it."""
    profile = AgentProfile(name="odd", binary=agent)
    env = {} if path is None else {"PATH": path}
    phases = [] if phases is None else phases
    with anyio.fail_after(60):
        async with open_agent(profile, env=env, on_phase=phases.append):
            raise AssertionError("it is an agent")


async def started(agent: Binary, **options: Any) -> AgentStartFailed:
    """Return what became of a program once it was installed."""
    with pytest.raises(AgentStartFailed) as caught:
        await opened(agent, **options)
    assert (caught.value.phase, caught.value.exit_code) == ("initializing", 3), caught.value
    return caught.value


async def test_an_agent_is_fetched_once(server: FileServer, cache: Path) -> None:
    phases: list[PhaseChanged] = []
    data = tar(agent=PROGRAM, lib__data=b"x")
    agent = binary(server.file("/odd.tar.gz", data), args=("acp",), sha256=hashlib.sha256(data).hexdigest())
    for _ in range(2):
        installed = await started(agent, phases=phases)
        # although the archive did not say that it is a program
        assert installed.stderr_tail == "hello acp so\n"
        assert Path(installed.command[0]).is_relative_to(cache / "odd")
    assert server.asked == ["/odd.tar.gz"]
    told = [event.detail for event in phases if event.phase == "installing"]
    assert told == [f"odd 1.2.3 from {server.url('/odd.tar.gz')}"]
    (name,) = everything(cache)
    assert name.startswith("1.2.3-")


async def test_another_version_or_address_has_another_folder(server: FileServer, cache: Path) -> None:
    for path, version in (("/a", "1.2.3"), ("/a", "1.2.4"), ("/b", "1.2.3"), ("/a/../b", "1.2.3")):
        await started(binary(server.file(path, PROGRAM), version=version))
    assert len(everything(cache)) == 4
    assert os.listdir(cache) == ["odd"]  # noqa: PTH208 - by name


async def test_a_program_that_is_no_archive(server: FileServer) -> None:
    installed = await started(binary(server.file("/odd-linux-x64", PROGRAM)))
    assert Path(installed.command[0]).name == "agent"
    assert installed.stderr_tail == HELLO


async def test_an_archive_that_is_one_folder(server: FileServer) -> None:
    url = server.file("/odd.tgz", tar(**{"odd-1.2.3__agent": PROGRAM}))
    assert (await started(binary(url))).stderr_tail == HELLO


async def test_an_interpreter_is_looked_for_on_the_path(server: FileServer, tmp_path: Path) -> None:
    interpreter = tmp_path / "bin" / "node"
    interpreter.parent.mkdir()
    interpreter.write_bytes(b'#!/bin/sh\n/bin/cat "$2" >&2\nexit 3\n')
    interpreter.chmod(0o755)
    agent = binary(
        server.file("/odd.tgz", tar(dist__main=b"main")),
        "node",
        args=("--quick", "dist/main", "./none", "main"),
    )
    installed = await started(agent, path=str(interpreter.parent))
    assert installed.command[0] == str(interpreter)
    assert installed.command[3:] == ("./none", "main")
    assert installed.stderr_tail == "main"


async def test_an_interpreter_of_a_single_file(server: FileServer) -> None:
    agent = binary(server.file("/odd.mjs?v=1", b"echo so >&2; exit 3"), "sh", args=("odd.mjs",))
    assert (await started(agent)).stderr_tail == "so\n"


async def test_a_program_in_the_archive_comes_before_the_path(server: FileServer) -> None:
    agent = binary(server.file("/odd.tgz", tar(sh=PROGRAM)), "sh")
    assert (await started(agent)).stderr_tail == HELLO


async def test_there_is_nothing_for_this_machine() -> None:
    nothing = Archive(archive="https://127.0.0.1/", cmd="x")
    with pytest.raises(AgentNotFound, match=r"it has no program for .* \(it has: amiga-m68k, beos-ppc\)"):
        await opened(Binary(version="1", archives={"beos-ppc": nothing, "amiga-m68k": nothing}))


@pytest.mark.parametrize(
    ("cmd", "reason"),
    [
        ("./other", "it has no file ./other. Try another version"),
        ("../../agent", "it has no file ../../agent"),
        ("/bin/sh", "it has no file /bin/sh"),
        ("lib/\x1b[31m", r"it has no file 'lib/\\x1b\[31m'"),
        ("./lib", "it has no file ./lib"),
        ("no-such-interpreter", "it has no program no-such-interpreter, and none is on the PATH"),
    ],
)
async def test_an_archive_without_the_program(server: FileServer, cache: Path, cmd: str, reason: str) -> None:
    url = server.file("/odd.tgz", tar(agent=PROGRAM, lib__data=b"x"))
    with pytest.raises(AgentNotFound, match=reason):
        await opened(binary(url, cmd))
    assert everything(cache) == []


async def test_a_program_that_was_removed(server: FileServer) -> None:
    agent = binary(server.file("/odd.tgz", tar(agent=PROGRAM)))
    program = Path((await started(agent)).command[0])
    program.unlink()
    with pytest.raises(AgentNotFound) as caught:
        await opened(agent)
    assert f"or remove {program.parent} to download it again" in str(caught.value)


async def test_what_cannot_be_downloaded_or_unpacked(server: FileServer, cache: Path) -> None:
    for agent, reason in (
        (binary(server.url("/none")), "answered 404"),
        (binary(server.file("/page", b"<html>")), "neither an archive nor a program"),
        (binary(server.file("/odd", PROGRAM), sha256="0" * 64), "its SHA-256 is"),
    ):
        with pytest.raises(AgentStartFailed, match=reason) as caught:
            await opened(agent)
        assert (caught.value.phase, caught.value.version) == ("installing", "1.2.3")
        assert agent.archives[HERE].archive in str(caught.value)
        assert everything(cache) == []


async def test_a_cache_that_cannot_be_made(cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file")
    with pytest.raises(AgentStartFailed, match="cannot be created: Not a directory"):
        await opened(binary("https://127.0.0.1/"))


async def test_cancelling_leaves_nothing(server: FileServer, cache: Path) -> None:
    asked = anyio.Event()
    token = anyio.lowlevel.current_token()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        request.wfile.write(PROGRAM)
        anyio.from_thread.run_sync(asked.set, token=token)
        server.closing.wait(60)

    url = server.answer("/odd", answer)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(opened, binary(url))
            await asked.wait()
            assert everything(cache) != []
            tasks.cancel_scope.cancel()
    assert everything(cache) == []


async def test_what_killed_installations_have_left_is_removed(server: FileServer, cache: Path) -> None:
    for name, age in ((".old", ABANDONED + 60), (".new", 0.0), ("1.2.2-kept", 2 * ABANDONED)):
        folder = cache / "odd" / name
        folder.mkdir(parents=True)
        then = folder.stat().st_mtime - age
        os.utime(folder, (then, then))
    (cache / "odd" / ".dangling").symlink_to("nowhere")
    await started(binary(server.file("/odd", PROGRAM)))
    kept = everything(cache)
    assert kept[:2] == [".dangling", ".new"]
    assert kept[2] == "1.2.2-kept"
    assert len(kept) == 4


PROCESS = f"""
import sys, anyio
from thinkwell import AgentStartFailed, open_agent
from thinkwell.agents import AgentProfile, Archive, Binary

async def main() -> None:
    archive = Archive(archive=sys.argv[1], cmd="./agent", env={{"SAID": "so"}})
    binary = Binary(version="1.2.3", archives={{{HERE!r}: archive}})
    try:
        async with open_agent(AgentProfile(name="odd", binary=binary)):
            pass
    except AgentStartFailed as exc:
        print(exc.stderr_tail, end="")

anyio.run(main)
"""


def together(server: FileServer) -> str:
    """Return an address that answers when three have asked for it."""
    everybody = threading.Barrier(3)
    data = tar(agent=PROGRAM, **{f"lib__{number}": b"x" * 1000 for number in range(300)})

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        everybody.wait(60)
        request.wfile.write(data)

    return server.answer("/odd.tgz", answer)


def check_together(server: FileServer, cache: Path) -> None:
    assert len(server.asked) == 3
    (name,) = everything(cache)
    assert len(list((cache / "odd" / name / "lib").iterdir())) == 300


@pytest.mark.long
async def test_installations_at_the_same_time_do_not_hurt_each_other(server: FileServer, cache: Path) -> None:
    agent = binary(together(server))
    told: list[str] = []

    async def start() -> None:
        told.append((await started(agent)).stderr_tail)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(start)
    assert told == [HELLO] * 3
    check_together(server, cache)


@pytest.mark.long
def test_neither_do_processes(server: FileServer, cache: Path) -> None:
    command = [sys.executable, "-c", PROCESS, together(server)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate(timeout=60)[0] for process in processes] == [HELLO.encode()] * 3
    assert [process.returncode for process in processes] == [0, 0, 0]
    check_together(server, cache)
