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
from thinkwell_acp._process import Process
from thinkwell_acp._tasks import BackgroundTasks, background_tasks
from thinkwell_acp.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND, ProgramNotFound, RpcError
from thinkwell_acp.stdio import find_program

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

__all__ = (
    "OUTPUT_LIMIT",
    "TERMINATE_GRACE",
    "Terminal",
    "Terminals",
)

OUTPUT_LIMIT = 1024 * 1024
"""How much of a terminal's output is kept, in bytes, where the agent sets no limit or a larger one."""

TERMINATE_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""


class Terminal:
    """A command that runs, or has run."""

    def __init__(self, session_id: str, process: Process, limit: int) -> None:
        self.session_id = session_id
        self.exited = anyio.Event()
        self._process = process
        self._limit = limit
        self._output = bytearray()
        self._truncated = False
        self._status: s.TerminalExitStatus | None = None
        self._attending = anyio.CancelScope()
        self._left = anyio.Event()

    async def attend(self) -> None:
        """Read the output and notice the end, until `release`.

        A grandchild may write on after the command's end.
        """
        try:
            with self._attending:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read)
                    await self._process.wait()
                    self._status = _status(self._process.exit_code or 0)
                    self.exited.set()
        finally:
            self._left.set()

    async def _read(self) -> None:
        while data := await self._process.read_stdout():
            self._output += data
            # Cutting at every read would take quadratic time.
            if len(self._output) > 2 * self._limit + len(data):
                self._trim()

    def _trim(self) -> None:
        start = max(0, len(self._output) - self._limit)
        self._truncated = self._truncated or start > 0
        while start < len(self._output) and self._output[start] & 0xC0 == 0x80:
            start += 1  # the rest of a character whose beginning is dropped
        del self._output[:start]

    def output(self) -> s.TerminalOutputResponse:
        """Return what there is. A character of which only a part was read is left for later."""
        self._trim()
        final = self._status is not None
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._output), final)
        return s.TerminalOutputResponse(output=text, truncated=self._truncated, exit_status=self._status)

    async def wait(self) -> s.TerminalExitStatus:
        """Wait for the end and return how it came."""
        await self.exited.wait()
        assert self._status is not None
        return self._status

    async def end(self) -> None:
        """End the command and everything that it started."""
        self._process.signal("terminate")
        with anyio.move_on_after(TERMINATE_GRACE):
            await self.exited.wait()
        self._process.signal("kill")
        await self.exited.wait()

    async def release(self) -> None:
        """End the command and give back what it holds."""
        await self.end()
        self._attending.cancel()
        await self._left.wait()
        self._process.release()


def _status(code: int) -> s.TerminalExitStatus:
    return (
        s.TerminalExitStatus(signal=signal.Signals(-code).name)
        if code < 0
        else s.TerminalExitStatus(exit_code=code)
    )


class Terminals(AsyncContextManagerMixin):
    """Runs commands for an agent while its block runs, and ends all of them with it.

    Its methods serve the requests of the same names; delegate to them from a `ClientHandler`, and advertise
    ``terminal`` in the client's capabilities.

    Args:
        cwd: Where commands run that name no folder.
        env: The environment of the commands, to which each may add; ``None`` is the caller's.
        shell_lines: Whether a command without arguments that is no program is run by the shell. Several
            agents send a whole line that way; with it, the agent can run anything that a shell can.
        output_limit: How much output of each terminal is kept at most, in bytes.
    """

    def __init__(
        self,
        *,
        cwd: str,
        env: Mapping[str, str] | None = None,
        shell_lines: bool = False,
        output_limit: int = OUTPUT_LIMIT,
    ) -> None:
        self._cwd = cwd
        self._env = dict(os.environ if env is None else env)
        self._shell_lines = shell_lines
        self._output_limit = output_limit
        self._terminals: dict[str, Terminal] = {}
        self._tasks: BackgroundTasks

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Terminals]:
        async with background_tasks() as self._tasks:
            try:
                yield self
            finally:
                with anyio.CancelScope(shield=True):  # bounded: killed processes end
                    for terminal_id in tuple(self._terminals):
                        await self._terminals.pop(terminal_id).release()

    async def create_terminal(self, request: s.CreateTerminalRequest) -> s.CreateTerminalResponse:
        """Start a command; its terminal's id is returned at once."""
        cwd = request.cwd or self._cwd
        if not Path(cwd).is_absolute():
            raise RpcError(INVALID_PARAMS, f"cwd must be an absolute path: {cwd}", {"cwd": cwd})
        env = {**self._env, **{variable.name: variable.value for variable in request.env}}
        try:
            process = Process(self._argv(request, env, cwd), env=env, cwd=cwd, merge_stderr=True)
        except ProgramNotFound as exc:
            raise RpcError(RESOURCE_NOT_FOUND, exc.reason, {"command": request.command}) from exc
        except (OSError, ValueError) as exc:
            raise RpcError(INVALID_PARAMS, f"{request.command} cannot be started: {exc}") from exc
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

    def _argv(self, request: s.CreateTerminalRequest, env: Mapping[str, str], cwd: str) -> list[str]:
        try:
            return find_program([request.command, *request.args], env, cwd)
        except ProgramNotFound:
            if request.args or not self._shell_lines:
                raise
            return ["cmd", "/c", request.command] if os.name == "nt" else ["/bin/sh", "-c", request.command]

    async def terminal_output(self, request: s.TerminalOutputRequest) -> s.TerminalOutputResponse:
        """Return the output so far, the latest where it is too much."""
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
        terminal = self._find(request.session_id, request.terminal_id)
        del self._terminals[request.terminal_id]
        await terminal.release()
        return s.ReleaseTerminalResponse()

    def _find(self, session_id: str, terminal_id: str) -> Terminal:
        terminal = self._terminals.get(terminal_id)
        if terminal is None or terminal.session_id != session_id:
            raise RpcError(
                RESOURCE_NOT_FOUND, f"There is no terminal {terminal_id}", {"terminalId": terminal_id}
            )
        return terminal
