"""An agent as a child process that speaks over its standard input and output."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections import deque
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from thinkwell_acp._ladder import (
    EXIT_GRACE,
    GROUP_GRACE,
    KILL_GRACE,
    TERMINATE_GRACE,
    Ending,
    Graces,
    end_process,
    set_within,
)
from thinkwell_acp._platform import READ_SIZE, Process, read_descriptor, write_descriptor
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.errors import ProcessExited, ProgramNotFound, ProgramNotStarted
from thinkwell_acp.interpreter import refuse_itself
from thinkwell_acp.process_tree import ProcessTree

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from thinkwell_acp.transport import Transport

__all__ = (
    "EXIT_GRACE",
    "EXIT_STATUS_GRACE",
    "GROUP_GRACE",
    "KILL_GRACE",
    "LAST_WORDS_GRACE",
    "STDERR_TAIL",
    "TERMINATE_GRACE",
    "Ending",
    "Graces",
    "StdioTransport",
    "find_program",
    "own_stdio",
    "stdio_transport",
)

logger: logging.Logger = logging.getLogger("thinkwell.acp")

STDERR_TAIL = 64 * 1024
"""Bytes of the end of standard error that are kept."""

LAST_WORDS_GRACE = 0.5
"""Seconds of silence after the process's end before its output counts as ended, even if a grandchild keeps it
open."""

EXIT_STATUS_GRACE = 1.0
"""Seconds after the end of the output for the process to end too, so that the error has its exit code."""


class StdioTransport:
    """A running agent process. Made by `stdio_transport`."""

    def __init__(self, process: Process, tree: ProcessTree, command: Sequence[str], graces: Graces) -> None:
        self._process = process
        self._tree = tree
        self._graces = graces
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._stderr_dropped = False
        self._stderr_ended = anyio.Event()
        self._exited = anyio.Event()
        self._closing = False
        self._ending = anyio.Event()
        self._closed = anyio.Event()
        self._attendants = anyio.CancelScope(shield=True)
        self._unattended = anyio.Event()
        self.command: tuple[str, ...] = tuple(command)
        """The command that runs, its program resolved."""
        self.on_stderr: Callable[[bytes], None] | None = None
        """Called with standard error as it is read; with nothing at its end."""
        self.ended_by: Ending | None = None
        """The step that ended the process; ``None`` before `aclose` has seen it end."""

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; ``None`` while the process runs."""
        return self._process.exit_code

    @property
    def stderr_tail(self) -> str:
        """The end of the agent's standard error: whole lines, at most `STDERR_TAIL` bytes."""
        kept = b"".join(self._stderr)
        tail = kept[-STDERR_TAIL:]
        if self._stderr_dropped or len(kept) > len(tail):
            tail = tail[tail.find(b"\n") + 1 :]  # half a line may be half a secret, not recognisable
        return tail.decode("utf-8", "replace")

    async def receive(self) -> bytes:
        """Return the next output of the agent.

        Raises:
            ProcessExited: The output has ended; with the exit code and the end of standard error.
            anyio.ClosedResourceError: `aclose` was called.
        """
        space = memoryview(bytearray(READ_SIZE))
        return bytes(space[: await self.receive_into(space)])

    async def receive_into(self, space: memoryview, /) -> int:
        """Put the next output of the agent into a space and return how many bytes. Raises as `receive`."""
        size: int | None = None
        while size is None and not self._closing:
            if self._exited.is_set():
                size = 0
                with anyio.move_on_after(LAST_WORDS_GRACE):
                    size = await self._process.stdout.read_into(space)
            else:
                size = await self._process.stdout.read_into(space)
        if self._closing:
            raise anyio.ClosedResourceError
        if size:
            return size
        with anyio.move_on_after(EXIT_STATUS_GRACE):
            await self._exited.wait()
            await self._stderr_ended.wait()
        raise ProcessExited(self.exit_code, self.stderr_tail)

    async def send(self, item: bytes, /) -> None:
        """Send all the bytes to the agent's standard input.

        Raises:
            anyio.BrokenResourceError: The agent has stopped reading.
        """
        try:
            await self._process.write_stdin(item)
        except (OSError, ValueError) as exc:
            raise anyio.BrokenResourceError from exc

    def send_now(self, item: bytes, /) -> int:
        """Send the first bytes, as many as the pipe accepts now, and return how many. Raises as `send`."""
        try:
            return self._process.write_stdin_now(item)
        except (OSError, ValueError) as exc:
            raise anyio.BrokenResourceError from exc

    def kill(self) -> None:
        """Kill the process and everything that it started, now. `receive` reports its end."""
        self._tree.look()
        self._process.signal("kill")
        self._tree.kill()

    def spare_daemons(self) -> None:
        """Leave alone processes that have left the process's session, such as the browser of a login."""
        self._tree.spare()

    async def aclose(self) -> None:
        """End the process and everything that it started: close its input, then SIGTERM, then SIGKILL.

        Each step waits for a bounded time, and the first two are skipped if the process has ended. No cancel
        scope shortens it; but Ctrl-C, and asyncio's own task cancellation, ignore shields: they skip the rest
        of the waits. When this returns, nothing of the agent's process group runs, and on Linux nothing else
        that it has started (see `process_tree`). Calling it again waits for that.
        """
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        self._process.stdout.wake()
        try:
            with anyio.CancelScope(shield=True):
                try:
                    async with background_tasks() as tasks:
                        tasks.start_soon(self._watch_unattended)
                        await self._end()
                except BaseException:
                    self.kill()
                    await set_within(self._exited, self._graces.kill)
                    raise
                finally:
                    self._attendants.cancel()
                    await self._unattended.wait()
                    self._tree.close()
                    await self._process.release()
        finally:
            self._closed.set()

    async def _end(self) -> None:
        self._tree.look()
        self._process.close_stdin()
        self._ending.set()
        self.ended_by = await end_process(self._process.signal, self._exited, self._graces)
        if self.ended_by in ("terminate", "kill"):
            about = "Process %s of %s did not end by itself within %g s; it took %s"
            signal = "SIGTERM" if self.ended_by == "terminate" else "SIGKILL"
            logger.info(about, self.pid, self.command[0], self._graces.exit, signal)
        if self.ended_by is None:
            logger.error("Process %s of %s does not die", self.pid, self.command)
        await self._tree.end(self._graces.terminate, self._graces.kill)

    async def _discard_output(self) -> None:
        await self._ending.wait()
        space = memoryview(bytearray(READ_SIZE))
        while await self._process.stdout.read_into(space):
            pass

    async def attend(self) -> None:
        """Drain standard error, watch for the end, and then drain the output. Only `aclose` stops it."""
        try:
            with self._attendants:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._drain_stderr)
                    tasks.start_soon(self._watch)
                    tasks.start_soon(self._discard_output)
        finally:
            self._unattended.set()

    async def _drain_stderr(self) -> None:
        try:
            while data := await self._process.read_stderr():
                logger.debug("stderr of %s: %r", self.command[0], data)
                if self.on_stderr is not None:
                    self.on_stderr(data)
                self._stderr.append(data)
                self._stderr_size += len(data)
                while self._stderr_size - len(self._stderr[0]) >= STDERR_TAIL:
                    self._stderr_size -= len(self._stderr.popleft())
                    self._stderr_dropped = True
        finally:
            if self.on_stderr is not None:
                self.on_stderr(b"")
            self._stderr_ended.set()

    async def _watch(self) -> None:
        await self._process.wait()
        self._exited.set()
        self._process.stdout.wake()  # to wait only for the last output

    async def _watch_unattended(self) -> None:
        """Watch for the end when the event loop closes: asyncio cancels all its tasks at once."""
        await self._unattended.wait()
        await self._watch()

    @classmethod
    def defer_ctrl_c(cls) -> None:
        """Let trio raise Ctrl-C where the program's main task waits, and nowhere else in a transport.

        By default it does so at any point of any task, even half-way into a block or at the start of a task,
        and then the agent's end is not noticed.
        """
        if "trio" in sys.modules:  # otherwise trio is not running, and may not be installed
            from trio.lowlevel import enable_ki_protection

            attending = (
                cls.attend,
                cls._discard_output,
                cls._drain_stderr,
                cls._watch,
                cls._watch_unattended,
            )
            for function in (cls.aclose, *attending):
                enable_ki_protection(function)


@asynccontextmanager
async def stdio_transport(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    exit_grace: float = EXIT_GRACE,
    terminate_grace: float = TERMINATE_GRACE,
    kill_grace: float = KILL_GRACE,
    keep_daemons: bool = False,
) -> AsyncGenerator[StdioTransport]:
    """Start an agent and talk to it over its standard input and output.

    The agent leads its own process group. Leaving the block ends the group; on Linux it also ends processes
    that the agent has started and that have left the group.

    Args:
        command: Program and arguments; never a shell line.
        env: The whole environment; ``None``: the caller's.
        cwd: The folder to start in.
        exit_grace: Seconds to exit once its standard input is closed.
        terminate_grace: Seconds to exit after SIGTERM.
        kill_grace: Seconds to end after SIGKILL.
        keep_daemons: Leave alone processes that have left the group. On Windows they end too.

    Raises:
        ProgramNotFound: The program or the folder does not exist.
        ProgramNotStarted: The operating system refuses to run it.
    """
    resolved = find_program(command, env, cwd)
    tree = ProcessTree(keep_daemons=keep_daemons)
    try:
        process = Process(resolved, env=tree.environment(env), cwd=None if cwd is None else os.fspath(cwd))
    except (OSError, ValueError, subprocess.SubprocessError) as exc:
        raise ProgramNotStarted(command, f"{command[0]} cannot be started: {exc}") from exc
    tree.add(process.pid)
    transport = StdioTransport(process, tree, resolved, Graces(exit_grace, terminate_grace, kill_grace))
    transport.defer_ctrl_c()
    async with background_tasks() as tasks:
        tasks.start_soon(transport.attend)
        try:
            yield transport
        finally:
            await transport.aclose()


def find_program(
    command: Sequence[str], env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None
) -> list[str]:
    """Return the command with its program's path, found as a shell would, and on Windows by PATHEXT too.

    Raises:
        ProgramNotFound: The program or the folder does not exist.
        ProgramNotStarted: It is not a program, or this program would start itself.
    """
    if not command:
        raise ProgramNotFound(command, "the command is empty: name a program")
    refuse_itself(command)
    if cwd is not None and not Path(cwd).is_dir():
        raise ProgramNotFound(command, f"the folder {os.fspath(cwd)} to start {command[0]} in does not exist")
    from shutil import which  # loads compressors, which `import thinkwell` avoids

    program = which(command[0], path=None if env is None else env.get("PATH"))
    if program is None:
        if not os.path.dirname(command[0]):  # noqa: PTH120 - Path drops the "./" that makes the difference
            raise ProgramNotFound(command, f"there is no program {command[0]!r} on the PATH")
        if Path(command[0]).exists():
            raise ProgramNotStarted(command, f"{command[0]} exists but is not an executable program")
        raise ProgramNotFound(command, f"there is no program {command[0]}")
    return [str(Path(program).absolute()), *command[1:]]  # relative to the caller's folder, not to cwd


class _OwnStdio:
    """This process's standard input and output as a transport, for programs that are agents."""

    def __init__(self, stdin: int, stdout: int, blocked: Sequence[int]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._blocked = blocked
        self._closed = False

    async def receive(self) -> bytes:
        """Return the next input."""
        try:
            data = await read_descriptor(self._stdin)
        except OSError as exc:  # the terminal has closed
            raise anyio.BrokenResourceError from exc
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes, /) -> None:
        """Write all the bytes."""
        try:
            await write_descriptor(self._stdout, item)
        except OSError as exc:
            raise anyio.BrokenResourceError from exc

    async def aclose(self) -> None:
        """Close both descriptors, and leave their files unchanged: others may use them."""
        if not self._closed:
            self._closed = True
            for descriptor in self._blocked:
                os.set_blocking(descriptor, True)
            os.close(self._stdin)
            os.close(self._stdout)
        await checkpoint()


def own_stdio() -> Transport:
    """Return a transport over this process's standard input and output.

    From then on ``print`` writes to standard error, and ``input`` reads nothing, so that no stray line can
    break the protocol.
    """
    stdin, stdout = os.dup(0), os.dup(1)
    blocked: list[int] = []
    if sys.platform != "win32":  # pragma: no branch - the tests run on POSIX
        blocked = [descriptor for descriptor in (stdin, stdout) if os.get_blocking(descriptor)]
        for descriptor in blocked:
            os.set_blocking(descriptor, False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return _OwnStdio(stdin, stdout, blocked)
