"""Commands that a client runs for its agent: the serving side of ``terminal/*`` (ACP, Terminals)."""

from __future__ import annotations

import codecs
import os
import secrets
import signal
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import AsyncContextManagerMixin

from thinkwell_acp import schema as s
from thinkwell_acp._ladder import GROUP_GRACE, KILL_GRACE, Graces, end_process
from thinkwell_acp._platform import READ_SIZE, Process
from thinkwell_acp._tasks import BackgroundTasks, background_tasks
from thinkwell_acp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    ProgramNotFound,
    RpcError,
)
from thinkwell_acp.process_tree import ProcessTree
from thinkwell_acp.stdio import find_program

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

__all__ = (
    "GROUP_GRACE",
    "KILL_GRACE",
    "LAST_OUTPUT_GRACE",
    "MAX_TERMINALS",
    "OUTPUT_LIMIT",
    "TERMINATE_GRACE",
    "Terminal",
    "Terminals",
)

OUTPUT_LIMIT = 1024 * 1024
"""Bytes of a terminal's output that are kept, if the agent sets no limit or a larger one."""

MAX_TERMINALS = 64
"""Most terminals that are kept."""

TERMINATE_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL. It is half the agent's time, which waits for it."""

LAST_OUTPUT_GRACE = 0.5
"""Seconds to wait for the end of the output when a command has ended, so that its output is complete for
those who waited for its exit. A grandchild may keep it open forever."""


class Terminal:
    """A command that is running, or has run."""

    def __init__(self, session_id: str, process: Process, limit: int) -> None:
        self.session_id = session_id
        self.exited: anyio.Event = anyio.Event()
        self._process = process
        self._limit = limit
        self._output = bytearray()
        self._truncated = False
        self._status: s.TerminalExitStatus | None = None
        self._attending = anyio.CancelScope()
        self._output_ended = anyio.Event()
        self._left = anyio.Event()

    @property
    def pid(self) -> int:
        """The command's process."""
        return self._process.pid

    async def attend(self) -> None:
        """Read the output and watch for the end, until `release`.

        A grandchild may write after the command's end.
        """
        try:
            with self._attending:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read)
                    await self._process.wait()
                    with anyio.move_on_after(LAST_OUTPUT_GRACE):
                        await self._output_ended.wait()
                    self._end(_status(self._process.exit_code or 0))
        finally:
            self._left.set()

    def _end(self, status: s.TerminalExitStatus) -> None:
        if self._status is None:
            self._status = status
            self.exited.set()

    async def _read(self) -> None:
        space = memoryview(bytearray(READ_SIZE))
        while size := await self._process.stdout.read_into(space):
            self._output += space[:size]
            # Cutting at every read would take quadratic time.
            if len(self._output) > 2 * self._limit + size:
                self._trim()
        self._output_ended.set()

    def _trim(self) -> None:
        start = max(0, len(self._output) - self._limit)
        self._truncated = self._truncated or start > 0
        while start < len(self._output) and self._output[start] & 0xC0 == 0x80:
            start += 1  # the rest of a character whose beginning is dropped
        del self._output[:start]

    def output(self) -> s.TerminalOutputResponse:
        """Return the output so far. A character that was only partly read is left for later."""
        self._trim()
        final = self._status is not None
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._output), final)
        return s.TerminalOutputResponse(output=text, truncated=self._truncated, exit_status=self._status)

    async def wait(self) -> s.TerminalExitStatus:
        """Wait for the end and return the exit status."""
        await self.exited.wait()
        assert self._status is not None
        return self._status

    async def end(self) -> None:
        """End the command and everything that it started, even if cancelled, in bounded time."""
        with anyio.CancelScope(shield=True):
            await end_process(self._process.signal, self.exited, Graces(0, TERMINATE_GRACE))

    async def release(self) -> None:
        """End the command and release its resources, even if cancelled."""
        with anyio.CancelScope(shield=True):
            await self.end()
            self._attending.cancel()
            await self._left.wait()
            self._end(s.TerminalExitStatus(signal="SIGKILL"))  # if the process is stuck in the kernel
            await self._process.release()


def _status(code: int) -> s.TerminalExitStatus:
    if code >= 0:
        return s.TerminalExitStatus(exit_code=code)
    try:
        return s.TerminalExitStatus(signal=signal.Signals(-code).name)
    except ValueError:  # a real-time signal
        return s.TerminalExitStatus(signal=f"SIG{-code}")


class Terminals(AsyncContextManagerMixin):
    """Runs commands for an agent during its block, and ends all of them with it.

    A daemon that a command has started outlives the command's terminal: another command may use it. On Linux
    it ends with the block (see `process_tree`).

    Its methods serve the requests of the same names; delegate to them from a `ClientHandler`, and advertise
    ``terminal`` in the client's capabilities.

    Args:
        cwd: The folder of commands that name none.
        env: The environment of the commands, which each may extend; ``None``: the caller's.
        shell_lines: Whether the shell runs a command without arguments that is not a program. Several agents
            send a whole line that way; with it, the agent can run anything that a shell can.
        output_limit: Most bytes of each terminal's output that are kept.
        max_terminals: Most terminals that are kept: some agents never release any. For one more, the oldest
            that has ended is forgotten; if all of them run, the command is refused.
        keep_daemons: Leave alone processes that have left their command's process group. On Windows they end
            with its terminal.
    """

    def __init__(
        self,
        *,
        cwd: str,
        env: Mapping[str, str] | None = None,
        shell_lines: bool = False,
        output_limit: int = OUTPUT_LIMIT,
        max_terminals: int = MAX_TERMINALS,
        keep_daemons: bool = False,
    ) -> None:
        self._cwd = cwd
        self._env = dict(os.environ if env is None else env)
        self._shell_lines = shell_lines
        self._output_limit = output_limit
        self._max_terminals = max_terminals
        self._terminals: dict[str, Terminal] = {}
        self._tree = ProcessTree(keep_daemons=keep_daemons)
        self._tasks: BackgroundTasks

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Terminals]:
        async with background_tasks() as self._tasks:
            try:
                yield self
            finally:
                with anyio.CancelScope(shield=True):
                    try:
                        await self._release(self._terminals)
                        await self._tree.end(TERMINATE_GRACE, KILL_GRACE)
                    finally:
                        self._tree.close()

    async def release_session(self, session_id: str) -> None:
        """End all commands of a session and forget its terminals."""
        await self._release(
            [id_ for id_, terminal in self._terminals.items() if terminal.session_id == session_id]
        )

    async def _release(self, terminal_ids: Iterable[str]) -> None:
        """Release terminals at the same time, so that it takes no longer than for one."""
        self._tree.look()
        terminals = [self._terminals.pop(terminal_id) for terminal_id in tuple(terminal_ids)]
        with anyio.CancelScope(shield=True):  # each is bounded
            async with anyio.create_task_group() as tasks:
                for terminal in terminals:
                    self._tree.discard(terminal.pid)
                    tasks.start_soon(terminal.release)

    async def create_terminal(
        self, request: s.CreateTerminalRequest, *, start_in: str | None = None
    ) -> s.CreateTerminalResponse:
        """Start a command; its terminal's id is returned at once.

        Args:
            request: The agent's request.
            start_in: Another name for the folder, such as that of an open descriptor.

        Raises:
            RpcError: The command cannot be started.
        """
        cwd = request.cwd or self._cwd
        if not Path(cwd).is_absolute():
            raise RpcError(INVALID_PARAMS, f"cwd must be an absolute path: {cwd}", {"cwd": cwd})
        await self._make_room()
        variables = {variable.name: variable.value for variable in request.env}
        env = self._tree.environment({**self._env, **variables})
        try:
            argv = self._argv(request, env, cwd)
            process = Process(argv, env=env, cwd=start_in or cwd, merge_stderr=True)
        except ProgramNotFound as exc:
            raise RpcError(RESOURCE_NOT_FOUND, exc.reason, {"command": request.command}) from exc
        except (OSError, ValueError) as exc:
            raise RpcError(INVALID_PARAMS, f"{request.command} cannot be started: {exc}") from exc
        self._tree.add(process.pid)
        process.close_stdin()
        limit = min(
            self._output_limit if request.output_byte_limit is None else request.output_byte_limit,
            self._output_limit,
        )
        terminal = Terminal(request.session_id, process, limit)
        terminal_id = f"term_{secrets.token_hex(8)}"
        self._terminals[terminal_id] = terminal
        self._tasks.start_soon(terminal.attend)
        return s.CreateTerminalResponse(terminal_id=terminal_id)

    async def _make_room(self) -> None:
        while len(self._terminals) >= self._max_terminals:
            ended = [id_ for id_, terminal in self._terminals.items() if terminal.exited.is_set()]
            if not ended:
                raise RpcError(
                    INTERNAL_ERROR,
                    f"{len(self._terminals)} commands are running; release a terminal first",
                    {"limit": self._max_terminals},
                )
            await self._release(ended[:1])

    def _argv(self, request: s.CreateTerminalRequest, env: Mapping[str, str], cwd: str) -> list[str]:
        program = request.command
        if os.path.dirname(program):  # noqa: PTH120 - Path drops the "./" that makes the difference
            program = os.path.join(cwd, program)  # noqa: PTH118 - as above
        try:
            return find_program([program, *request.args], env, cwd)
        except ProgramNotFound:
            if request.args or not self._shell_lines:
                raise
            return ["cmd", "/c", request.command] if os.name == "nt" else ["/bin/sh", "-c", request.command]

    async def terminal_output(self, request: s.TerminalOutputRequest) -> s.TerminalOutputResponse:
        """Return the output so far, or its end if it is too long."""
        return self._find(request.session_id, request.terminal_id).output()

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest
    ) -> s.WaitForTerminalExitResponse:
        """Return when the command has ended, by itself or not; any number of times."""
        status = await self._find(request.session_id, request.terminal_id).wait()
        return s.WaitForTerminalExitResponse(exit_code=status.exit_code, signal=status.signal)

    async def kill_terminal(self, request: s.KillTerminalRequest) -> s.KillTerminalResponse:
        """End the command; its output can still be read."""
        await self._find(request.session_id, request.terminal_id).end()
        return s.KillTerminalResponse()

    async def release_terminal(self, request: s.ReleaseTerminalRequest) -> s.ReleaseTerminalResponse:
        """End the command and forget its terminal."""
        self._find(request.session_id, request.terminal_id)
        await self._release([request.terminal_id])
        return s.ReleaseTerminalResponse()

    def _find(self, session_id: str, terminal_id: str) -> Terminal:
        terminal = self._terminals.get(terminal_id)
        if terminal is None or terminal.session_id != session_id:
            raise RpcError(
                RESOURCE_NOT_FOUND, f"There is no terminal {terminal_id}", {"terminalId": terminal_id}
            )
        return terminal
