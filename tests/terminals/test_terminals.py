"""The client's side of terminal/*: an agent runs commands through a client that serves them."""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from daemons import is_alive

from thinkwell_acp import (
    AgentHandler,
    AgentSide,
    ClientHandler,
    RpcError,
    connect,
    memory_transport_pair,
    serve_agent,
)
from thinkwell_acp import schema as s
from thinkwell_acp.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND
from thinkwell_acp.terminals import Terminals

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

SESSION = "session-1"
SHOW_PID = "import os, signal; print(os.getpid(), flush=True); signal.pause()"


class Serving(ClientHandler):
    """A client that serves terminals."""

    def __init__(self, terminals: Terminals) -> None:
        self._terminals = terminals

    async def create_terminal(self, request: s.CreateTerminalRequest, /) -> s.CreateTerminalResponse:
        return await self._terminals.create_terminal(request)

    async def terminal_output(self, request: s.TerminalOutputRequest, /) -> s.TerminalOutputResponse:
        return await self._terminals.terminal_output(request)

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest, /
    ) -> s.WaitForTerminalExitResponse:
        return await self._terminals.wait_for_terminal_exit(request)

    async def kill_terminal(self, request: s.KillTerminalRequest, /) -> s.KillTerminalResponse:
        return await self._terminals.kill_terminal(request)

    async def release_terminal(self, request: s.ReleaseTerminalRequest, /) -> s.ReleaseTerminalResponse:
        return await self._terminals.release_terminal(request)


@asynccontextmanager
async def agent(tmp_path: Path, *, shell_lines: bool = False) -> AsyncGenerator[AgentSide]:
    """The agent's end of a connection to such a client."""
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(30):
        async with (
            Terminals(cwd=str(tmp_path), shell_lines=shell_lines, output_limit=100_000) as terminals,
            serve_agent(theirs, AgentHandler()) as side,
            connect(ours, Serving(terminals)) as client,
        ):
            capabilities = s.ClientCapabilities(terminal=True)
            await client.initialize(s.InitializeRequest(protocol_version=1, client_capabilities=capabilities))
            yield side


async def create(side: AgentSide, *args: str, limit: int | None = None, command: str = sys.executable) -> str:
    request = s.CreateTerminalRequest(session_id=SESSION, command=command, args=args, output_byte_limit=limit)
    return (await side.create_terminal(request)).terminal_id


async def wait(side: AgentSide, terminal: str) -> s.WaitForTerminalExitResponse:
    return await side.wait_for_terminal_exit(
        s.WaitForTerminalExitRequest(session_id=SESSION, terminal_id=terminal)
    )


async def output(side: AgentSide, terminal: str) -> s.TerminalOutputResponse:
    return await side.terminal_output(s.TerminalOutputRequest(session_id=SESSION, terminal_id=terminal))


async def output_with(side: AgentSide, terminal: str, text: str) -> s.TerminalOutputResponse:
    """The output, once it holds a text."""
    while text not in (now := await output(side, terminal)).output:
        await anyio.wait_all_tasks_blocked()
        await anyio.lowlevel.checkpoint()
    return now


async def test_point_22_output_and_exit_code(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        terminal = await create(
            side, "-c", "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
        )
        assert (await wait(side, terminal)).exit_code == 3
        now = await output_with(side, terminal, "err")
        assert now.output == "out\nerr\n"
        assert not now.truncated
        assert now.exit_status == s.TerminalExitStatus(exit_code=3)


async def test_point_22_limit_is_in_bytes_from_the_front_on_a_character_boundary(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        code = "import sys; sys.stdout.buffer.write('a'.encode() + 'é'.encode() * 1000)"
        terminal = await create(side, "-c", code, limit=101)
        await wait(side, terminal)
        now = await output_with(side, terminal, "é" * 50)
        assert now.output == "é" * 50
        assert now.truncated


async def test_point_22_a_flood_is_bounded_by_the_clients_own_limit(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        terminal = await create(side, "-c", "print('x' * 3_000_000 + 'end')", limit=10_000_000)
        await wait(side, terminal)
        now = await output_with(side, terminal, "end")
        assert len(now.output.encode()) == 100_000
        assert now.truncated


async def test_point_22_half_a_character_is_left_for_later(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        code = "import sys; o = sys.stdout.buffer; o.write(b'ok\\xc3'); o.flush(); input()"
        terminal = await create(side, "-c", code.replace("input()", "import signal; signal.pause()"))
        now = await output_with(side, terminal, "ok")
        assert now.output == "ok"
        assert now.exit_status is None


async def test_point_22_kill_keeps_the_id_and_ends_waiters(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        terminal = await create(side, "-c", "import signal; print('up', flush=True); signal.pause()")
        await output_with(side, terminal, "up")
        codes: list[s.WaitForTerminalExitResponse] = []

        async def waiter() -> None:
            codes.append(await wait(side, terminal))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter)
            tasks.start_soon(waiter)
            await anyio.wait_all_tasks_blocked()
            await side.kill_terminal(s.KillTerminalRequest(session_id=SESSION, terminal_id=terminal))
        assert [code.signal for code in codes] == ["SIGTERM", "SIGTERM"]
        assert (await output(side, terminal)).output == "up\n"
        assert (await wait(side, terminal)).signal == "SIGTERM"


async def test_point_22_kill_of_a_stubborn_command(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        code = "import signal as s; s.signal(15, s.SIG_IGN); print('up', flush=True); s.pause()"
        terminal = await create(side, "-c", code)
        await output_with(side, terminal, "up")
        await side.kill_terminal(s.KillTerminalRequest(session_id=SESSION, terminal_id=terminal))
        assert (await wait(side, terminal)).signal == signal.SIGKILL.name


async def test_point_22_release_ends_the_command_and_forgets_the_id(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        terminal = await create(side, "-c", SHOW_PID)
        pid = int((await output_with(side, terminal, "\n")).output)
        await side.release_terminal(s.ReleaseTerminalRequest(session_id=SESSION, terminal_id=terminal))
        assert not is_alive(pid)
        with pytest.raises(RpcError) as caught:
            await output(side, terminal)
        assert caught.value.code == RESOURCE_NOT_FOUND


async def test_point_22_a_session_cannot_use_the_terminal_of_another(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        terminal = await create(side, "-c", "pass")
        with pytest.raises(RpcError) as caught:
            await side.terminal_output(s.TerminalOutputRequest(session_id="other", terminal_id=terminal))
        assert caught.value.code == RESOURCE_NOT_FOUND


async def test_point_22_shell_line_only_where_allowed(tmp_path: Path) -> None:
    line = f"{shlex.quote(sys.executable)} -c 'print(1)' && echo two"
    async with agent(tmp_path) as side:
        with pytest.raises(RpcError) as caught:
            await create(side, command=line)
        assert caught.value.code == RESOURCE_NOT_FOUND
    async with agent(tmp_path, shell_lines=True) as side:
        terminal = await create(side, command=line)
        assert (await wait(side, terminal)).exit_code == 0
        assert (await output_with(side, terminal, "two")).output == "1\ntwo\n"
        with pytest.raises(RpcError):
            await create(side, "--version", command="no-such-program")


async def test_environment_and_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with agent(tmp_path) as side:
        request = s.CreateTerminalRequest(
            session_id=SESSION,
            command=sys.executable,
            args=("-c", "import os; print(os.environ['COLOUR'], os.getcwd(), 'PATH' in os.environ)"),
            env=(s.EnvVariable(name="COLOUR", value="red"),),
            cwd=str(other),
        )
        terminal = (await side.create_terminal(request)).terminal_id
        await wait(side, terminal)
        assert (await output_with(side, terminal, "\n")).output == f"red {other} True\n"


@pytest.mark.parametrize(
    ("cwd", "code"),
    [("relative", INVALID_PARAMS), ("/no/such/folder", RESOURCE_NOT_FOUND)],
    ids=["relative", "missing"],
)
async def test_bad_folder_is_refused(tmp_path: Path, cwd: str, code: int) -> None:
    async with agent(tmp_path) as side:
        with pytest.raises(RpcError) as caught:
            await side.create_terminal(
                s.CreateTerminalRequest(session_id=SESSION, command=sys.executable, cwd=cwd)
            )
        assert caught.value.code == code


async def test_what_the_system_refuses_is_an_error(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        with pytest.raises(RpcError) as caught:
            await create(side, "a\0b")
        assert caught.value.code == INVALID_PARAMS


async def test_nothing_runs_after_the_block(tmp_path: Path) -> None:
    async with agent(tmp_path) as side:
        terminal = await create(side, "-c", SHOW_PID)
        pid = int((await output_with(side, terminal, "\n")).output)
    assert not is_alive(pid)
