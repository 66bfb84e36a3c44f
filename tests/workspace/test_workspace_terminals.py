"""Terminals under strain: nothing that they started runs on, and nothing that was printed is lost."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from daemons import ON_LINUX, is_alive

from thinkwell_acp import schema as s
from thinkwell_acp.terminals import Terminals

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

STUBBORN = (
    "import os, signal; signal.signal(15, signal.SIG_IGN); "
    "os.write(1, b'%d\\n' % os.getpid()); signal.pause()"  # in one piece: others write too
)
CHILDREN = f"""
import os, subprocess, sys, signal
signal.signal(15, signal.SIG_IGN)
children = [subprocess.Popen([sys.executable, "-c", {STUBBORN!r}]) for _ in range(2)]
"""
FAMILY = CHILDREN + "signal.pause()"
PARENT_LEAVES = CHILDREN + "os._exit(5)"


class Shell:
    """Terminals with short words for their requests."""

    def __init__(self, terminals: Terminals) -> None:
        self.terminals = terminals

    async def start(self, code: str, session: str = "s1") -> str:
        request = s.CreateTerminalRequest(session_id=session, command=sys.executable, args=("-c", code))
        return (await self.terminals.create_terminal(request)).terminal_id

    async def wait(self, terminal: str, session: str = "s1") -> s.WaitForTerminalExitResponse:
        return await self.terminals.wait_for_terminal_exit(
            s.WaitForTerminalExitRequest(session_id=session, terminal_id=terminal)
        )

    async def output(self, terminal: str, session: str = "s1") -> s.TerminalOutputResponse:
        return await self.terminals.terminal_output(
            s.TerminalOutputRequest(session_id=session, terminal_id=terminal)
        )

    async def release(self, terminal: str) -> None:
        await self.terminals.release_terminal(s.ReleaseTerminalRequest(session_id="s1", terminal_id=terminal))

    async def pids(self, terminal: str, count: int, session: str = "s1") -> list[int]:
        """The numbers of processes that print them when they are ready."""
        while len(lines := (await self.output(terminal, session)).output.splitlines()) < count:
            await anyio.wait_all_tasks_blocked()
            await anyio.lowlevel.checkpoint()
        return [int(line) for line in lines]


@asynccontextmanager
async def shell(tmp_path: Path, *, max_terminals: int = 64) -> AsyncGenerator[Shell]:
    with anyio.fail_after(30):
        async with Terminals(cwd=str(tmp_path), max_terminals=max_terminals) as terminals:
            yield Shell(terminals)


@pytest.mark.parametrize("code", [FAMILY, PARENT_LEAVES], ids=["parent stays", "parent leaves"])
async def test_grandchildren_that_ignore_sigterm_do_not_outlive_the_block(tmp_path: Path, code: str) -> None:
    async with shell(tmp_path) as terminals:
        pids = await terminals.pids(await terminals.start(code), 2)
        assert all(is_alive(pid) for pid in pids)
    assert not any(is_alive(pid) for pid in pids)


async def test_many_stubborn_commands_end_at_the_same_time(tmp_path: Path) -> None:
    async with shell(tmp_path) as terminals:
        pids = [pid for _ in range(8) for pid in await terminals.pids(await terminals.start(STUBBORN), 1)]
        before = anyio.current_time()
    assert anyio.current_time() - before < 7  # one after another, it were eight
    assert not any(is_alive(pid) for pid in pids)


async def test_a_cancelled_block_ends_its_commands(tmp_path: Path) -> None:
    pids: list[int] = []
    with anyio.CancelScope() as scope:
        async with shell(tmp_path) as terminals:
            pids += await terminals.pids(await terminals.start(FAMILY), 2)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert not any(is_alive(pid) for pid in pids)


async def test_a_cancelled_release_is_finished(tmp_path: Path) -> None:
    """The terminal is forgotten then, so nobody else would."""
    async with shell(tmp_path) as terminals:
        terminal = await terminals.start(STUBBORN)
        (pid,) = await terminals.pids(terminal, 1)
        with anyio.move_on_after(0.01) as scope:
            await terminals.release(terminal)
            await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        assert not is_alive(pid)


async def test_the_end_of_a_session_ends_its_commands_and_no_others(tmp_path: Path) -> None:
    async with shell(tmp_path) as terminals:
        (one,) = await terminals.pids(await terminals.start(STUBBORN, "s1"), 1, "s1")
        other_terminal = await terminals.start(STUBBORN, "s2")
        (other,) = await terminals.pids(other_terminal, 1, "s2")
        await terminals.terminals.release_session("s1")
        assert not is_alive(one)
        assert is_alive(other)
        assert (await terminals.output(other_terminal, "s2")).exit_status is None


async def test_who_waits_for_the_end_finds_the_output_complete(tmp_path: Path) -> None:
    """Several agents ask for it once, then."""
    async with shell(tmp_path) as terminals:
        for _ in range(10):
            terminal = await terminals.start("print('x' * 300_000 + 'end', end='')")
            await terminals.wait(terminal)
            output = await terminals.output(terminal)
            assert output.output == "x" * 300_000 + "end"
            await terminals.release(terminal)


async def test_an_end_is_told_though_a_grandchild_keeps_the_output_open(tmp_path: Path) -> None:
    async with shell(tmp_path) as terminals:
        terminal = await terminals.start(PARENT_LEAVES)
        assert (await terminals.wait(terminal)).exit_code == 5
        pids = await terminals.pids(terminal, 2)
        await terminals.release(terminal)
        assert not any(is_alive(pid) for pid in pids)


async def test_a_signal_without_a_name(tmp_path: Path) -> None:
    async with shell(tmp_path) as terminals:
        terminal = await terminals.start("import os; os.kill(os.getpid(), 40)")
        assert (await terminals.wait(terminal)).signal == "SIG40"


async def test_ended_terminals_make_room_for_new_ones(tmp_path: Path) -> None:
    """An agent that releases none can go on."""
    async with shell(tmp_path, max_terminals=3) as terminals:
        running = await terminals.start("import signal; signal.pause()")
        for number in range(10):
            terminal = await terminals.start(f"print({number})")
            await terminals.wait(terminal)
            assert (await terminals.output(terminal)).output == f"{number}\n"
        assert (await terminals.output(running)).exit_status is None


DAEMON = """
import os, time
if os.fork(): os._exit(0)
os.setsid()
os.write(1, b"%d\\n" % os.getpid())
os.closerange(1, 3)
time.sleep(60)
"""
STRANGER = """
import subprocess, time
print(subprocess.Popen(["sleep", "60"], env={}, start_new_session=True, stdout=-3).pid, flush=True)
time.sleep(60)
"""


@ON_LINUX
@pytest.mark.parametrize("code", [DAEMON, STRANGER], ids=["a daemon", "a child without an environment"])
async def test_a_daemon_ends_with_the_block_and_not_with_its_terminal(tmp_path: Path, code: str) -> None:
    async with shell(tmp_path) as terminals:
        terminal = await terminals.start(code)
        (pid,) = await terminals.pids(terminal, 1)
        await terminals.release(terminal)
        assert is_alive(pid), "another command may use it"
    assert not is_alive(pid)
