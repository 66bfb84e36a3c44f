"""A `Workspace` that answers one agent's requests ``fs/*`` and ``terminal/*``."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio import AsyncContextManagerMixin
from msgspec.structs import replace

from thinkwell._workspace import files
from thinkwell._workspace.walk import FileRefused, Places
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND
from thinkwell_acp.terminals import Terminals

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from thinkwell._workspace.workspace import Workspace

T = TypeVar("T")

FILE_THREADS: Final = 4
"""Most files of one agent that are read and written at the same time."""


class WorkspaceService(AsyncContextManagerMixin):
    """Serves a workspace to one agent while its block runs; afterwards none of the agent's commands runs.

    The methods named like those of `ClientHandler` serve those requests. Requests that are not served raise
    "method not found", as for a client without a workspace.

    Args:
        workspace: The workspace.
        cwd: Absolute path of the folder for commands that name none, in a session that `open_session` does
            not know.
        env: The environment of commands, which the agent may extend.
        keep_daemons: Whether daemons of its commands outlive the block.
    """

    def __init__(
        self, workspace: Workspace, *, cwd: str, env: Mapping[str, str], keep_daemons: bool = False
    ) -> None:
        self._workspace = workspace
        self._places = Places(workspace.roots, workspace.deny)
        self._places.add_alias(cwd)
        self._cwd = cwd
        self._session_cwd: dict[str, str] = {}
        self._threads = anyio.CapacityLimiter(FILE_THREADS)
        self._terminals: Terminals | None = None
        if workspace.terminal:
            self._terminals = Terminals(
                cwd=cwd,
                env=env,
                shell_lines=workspace.shell_lines,
                output_limit=workspace.output_limit,
                max_terminals=workspace.max_terminals,
                keep_daemons=keep_daemons,
            )

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[WorkspaceService]:
        if self._terminals is None:
            yield self
        else:
            async with self._terminals:
                yield self

    @property
    def file_system(self) -> s.FileSystemCapabilities:
        """The parts of ``fs/*`` to advertise."""
        return s.FileSystemCapabilities(read_text_file=True, write_text_file=self._workspace.write)

    @property
    def terminal(self) -> bool:
        """Whether to advertise ``terminal/*``."""
        return self._workspace.terminal

    def open_session(self, session_id: str, cwd: str) -> None:
        """Record a session's folder."""
        self._places.add_alias(cwd)
        self._session_cwd[session_id] = cwd

    async def close_session(self, session_id: str) -> None:
        """End a session's commands and forget its terminals."""
        self._session_cwd.pop(session_id, None)
        if self._terminals is not None:
            await self._terminals.release_session(session_id)

    # Files

    async def read_text_file(self, request: s.ReadTextFileRequest, /) -> s.ReadTextFileResponse:
        """Return a file's text, or a range of its lines."""

        def read() -> s.ReadTextFileResponse:
            text = files.read(
                self._places,
                request.path,
                max_bytes=self._workspace.max_read_bytes,
                line=request.line,
                limit=request.limit,
                check=anyio.from_thread.check_cancelled,
            )
            # The protocol has no code for it.
            meta: dict[str, s.JsonValue] | None = {"thinkwell/truncated": True} if text.cut else None
            return s.ReadTextFileResponse(content=text.text, meta=meta)

        try:
            return await self._in_thread(read, request.path)
        except RpcError as exc:
            if exc.code == RESOURCE_NOT_FOUND and self._workspace.missing_as_empty:
                return s.ReadTextFileResponse(content="")
            raise

    async def write_text_file(self, request: s.WriteTextFileRequest, /) -> s.WriteTextFileResponse:
        """Write a file's text."""
        if not self._workspace.write:  # pragma: no cover - the connection refuses what is not advertised
            raise RpcError.method_not_found("fs/write_text_file")

        def write() -> None:
            limit = self._workspace.max_write_bytes
            files.write(self._places, request.path, request.content, max_bytes=limit)

        await self._in_thread(write, request.path)
        return s.WriteTextFileResponse()

    async def _in_thread(self, function: Callable[[], T], path: str) -> T:
        """Run a function in a worker thread, to its end: a cancelled one closes the files that it opened."""
        try:
            return await anyio.to_thread.run_sync(function, limiter=self._threads)
        except FileRefused as exc:
            raise _rpc_error(exc, path) from exc

    # Terminals

    @property
    def _served_terminals(self) -> Terminals:
        assert self._terminals is not None, "the connection refuses what is not advertised"
        return self._terminals

    async def create_terminal(self, request: s.CreateTerminalRequest, /) -> s.CreateTerminalResponse:
        """Start a command, in a folder within the roots."""
        terminals = self._served_terminals
        cwd = request.cwd or self._session_cwd.get(request.session_id, self._cwd)
        real, fd = await self._in_thread(lambda: files.open_folder(self._places, cwd), cwd)
        try:
            # The descriptor's name refers to this folder, even if its path has changed in the meantime.
            pinned = f"/proc/self/fd/{fd}" if sys.platform == "linux" else None
            return await terminals.create_terminal(replace(request, cwd=real), start_in=pinned)
        finally:
            os.close(fd)

    async def terminal_output(self, request: s.TerminalOutputRequest, /) -> s.TerminalOutputResponse:
        """Return a command's output."""
        return await self._served_terminals.terminal_output(request)

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest, /
    ) -> s.WaitForTerminalExitResponse:
        """Wait for a command's end."""
        return await self._served_terminals.wait_for_terminal_exit(request)

    async def kill_terminal(self, request: s.KillTerminalRequest, /) -> s.KillTerminalResponse:
        """End a command; its output can still be read."""
        return await self._served_terminals.kill_terminal(request)

    async def release_terminal(self, request: s.ReleaseTerminalRequest, /) -> s.ReleaseTerminalResponse:
        """End a command and forget its terminal."""
        return await self._served_terminals.release_terminal(request)


def _rpc_error(refused: FileRefused, path: str) -> RpcError:
    """Return a refusal in the protocol's form. Agents check for the text before a missing path."""
    shown = path if len(path) <= 200 else f"{path[:200]}…"
    data: s.JsonValue = {"path": path, "reason": refused.why}
    if refused.why == "missing":
        uri = Path(path).as_uri()
        return RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {shown}", {"uri": uri, **data})
    code = INTERNAL_ERROR if refused.why == "system" else INVALID_PARAMS
    return RpcError(code, f"{shown} {refused.reason}", data)
