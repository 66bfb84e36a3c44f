"""What an agent has started ends with it, wherever it has got to; what was there before does not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from acp_support import LIMIT
from daemons import ON_LINUX, ends, is_alive, wait_gone

from thinkwell_acp import StdioTransport, stdio_transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = ON_LINUX

TOOLS = """
import os, signal, subprocess, sys, time
SLEEP = [sys.executable, "-ISc", "import time; time.sleep(60)"]

def daemonize():
    if os.fork():
        os.wait()
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    return True

def tell(pid):
    os.write(1, b"%d\\n" % pid)
"""

STAY = "\nsys.stdin.read()"

DAEMON = "if daemonize(): tell(os.getpid()); time.sleep(60)"


@asynccontextmanager
async def running(code: str, **options: Any) -> AsyncGenerator[StdioTransport]:
    """A program with the tools of those that start daemons. It ends with its input."""
    with anyio.fail_after(LIMIT):
        async with stdio_transport([sys.executable, "-ISc", TOOLS + code + STAY], **options) as transport:
            yield transport


async def started(transport: StdioTransport) -> int:
    """Return the process that the program tells of."""
    line = b""
    while not line.endswith(b"\n"):
        line += await transport.receive()
    pid = int(line.split()[-1])
    assert is_alive(pid)
    return pid


KINDS = {
    "a daemon": DAEMON,
    "a child without an environment": "tell(subprocess.Popen(SLEEP, env={}, start_new_session=True).pid)",
    "a job without an environment": (
        "if os.fork() == 0: tell(subprocess.Popen(SLEEP, env={}, process_group=0).pid); os._exit(0)"
    ),
    "a daemon's child without an environment": (
        "if daemonize(): tell(subprocess.Popen(SLEEP, env={}, start_new_session=True).pid); time.sleep(60)"
    ),
    "a daemon that ignores SIGTERM": "signal.signal(15, signal.SIG_IGN)\n" + DAEMON,
    "a daemon that was stopped": "if daemonize(): tell(os.getpid()); os.kill(os.getpid(), 19)",
}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_has_left_the_process_group_ends_too(kind: str) -> None:
    async with running(KINDS[kind], terminate_grace=0.2) as transport:
        pid = await started(transport)
    assert transport.ended_by == "eof"
    assert not is_alive(pid)


@pytest.mark.parametrize("kind", KINDS)
async def test_it_ends_at_once_where_the_agent_is_killed(kind: str) -> None:
    async with running(KINDS[kind]) as transport:
        pid = await started(transport)
        transport.kill()
        await wait_gone(pid)


async def test_a_daemon_may_end_by_itself_before_it_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "note"
    code = f"""
def leave(*_):
    open({str(note)!r}, "w").write("saved")
    os._exit(0)

signal.signal(15, leave)
"""
    async with running(code + DAEMON) as transport:
        pid = await started(transport)
    assert not is_alive(pid)
    assert note.read_text() == "saved"


async def test_a_daemon_that_has_moved_when_it_is_looked_at_is_found_again() -> None:
    """It lives for a moment, as its own child, and heeds no signal but the last."""
    code = """
signal.signal(15, signal.SIG_IGN)
if daemonize():
    tell(os.getpid())
    while True:
        time.sleep(0.005)
        if os.fork():
            os._exit(0)
"""
    mark = {**os.environ, "MOVING": str(os.getpid())}
    async with running(code, env=mark, terminate_grace=0.1) as transport:
        with anyio.fail_after(30):
            await transport.receive()
    assert carrying(f"MOVING={os.getpid()}") == []


def carrying(variable: str) -> list[int]:
    """Return the processes with a variable in their environment."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and variable.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def test_what_does_not_die_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """There is no time for it here."""
    kind = KINDS["a daemon that ignores SIGTERM"]
    async with running(kind, terminate_grace=0, kill_grace=0) as transport:
        pid = await started(transport)
    assert f"Processes do not die, or start others faster than they do: [{pid}]" in caplog.text
    await wait_gone(pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start what runs as another user")
@pytest.mark.parametrize("start", ["if daemonize():", "if os.fork() == 0:\n os.setsid()\n"])
async def test_what_runs_as_another_user_stays(start: str) -> None:
    async with running(f"{start} os.setuid(65534); tell(os.getpid()); time.sleep(60)") as transport:
        pid = await started(transport)
    assert not await ends(pid)


async def test_daemons_are_kept_where_that_is_wanted() -> None:
    async with running(DAEMON, keep_daemons=True) as transport:
        pid = await started(transport)
    assert not await ends(pid)


async def test_another_agents_daemon_is_left_alone() -> None:
    async with running(DAEMON) as other:
        theirs = await started(other)
        async with running(DAEMON) as transport:
            ours = await started(transport)
        assert not is_alive(ours)
        assert is_alive(theirs)
    assert not is_alive(theirs)


async def test_what_an_agents_agent_has_started_ends_with_the_outer_one() -> None:
    """Though the inner client is killed, and passes on nothing of its environment."""
    inner = f"""
sys.path[:] = {sys.path!r}
import anyio
from thinkwell_acp import stdio_transport

async def main():
    command = [sys.executable, "-ISc", {TOOLS + DAEMON!r}]
    async with stdio_transport(command, env={{}}) as transport:
        os.write(1, await transport.receive())
        os.kill(os.getpid(), 9)

anyio.run(main)
"""
    async with running(inner) as transport:
        pid = await started(transport)
    assert not is_alive(pid)


async def test_what_runs_when_a_login_is_over_may_be_spared() -> None:
    """Such as a browser, with what it starts later, but nothing else that the agent starts later."""
    code = f"""
subprocess.Popen(SLEEP)
if daemonize():
    signal.signal(10, lambda *_: tell(subprocess.Popen(SLEEP).pid))
    tell(os.getpid())
    while True: signal.pause()
sys.stdin.readline()
{DAEMON}
"""
    async with running(code) as transport:
        browser = await started(transport)
        transport.spare_daemons()
        os.kill(browser, signal.SIGUSR1)
        window = await started(transport)
        await transport.send(b"\n")
        daemon = await started(transport)
    assert not is_alive(daemon)
    assert not await ends(window)
    assert not await ends(browser)


async def test_where_no_process_can_be_held_daemons_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    async with running(DAEMON, exit_grace=0.5) as transport:
        pid = await started(transport)
    assert not await ends(pid)


# tmux


@pytest.fixture
def tmux(tmp_path: Path) -> list[str]:
    """The command of tmux with a server of its own."""
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("there is no tmux")
    return [program, "-S", str(tmp_path / "tmux"), "-f", os.devnull]


def server_of(tmux: list[str]) -> int:
    """Return the process of the server."""
    shown = subprocess.run([*tmux, "display-message", "-p", "#{pid}"], capture_output=True, check=True)
    return int(shown.stdout)


async def opens_a_window(tmux: list[str]) -> int:
    """Open a window of tmux by way of an agent that ends then, and return the server's process."""
    window = [*tmux, "new-session", "-d", "sleep", "60"]
    async with running(f"subprocess.run({window!r}); tell(os.getpid())") as transport:
        await started(transport)
        return server_of(tmux)


async def test_a_server_that_an_agent_started_ends(tmux: list[str]) -> None:
    assert not is_alive(await opens_a_window(tmux))


async def test_a_server_that_was_there_before_stays(tmux: list[str]) -> None:
    subprocess.run([*tmux, "new-session", "-d", "sleep", "60"], check=True)
    server = server_of(tmux)
    assert await opens_a_window(tmux) == server
    assert is_alive(server)
    subprocess.run([*tmux, "kill-server"], check=True)
    await wait_gone(server)
