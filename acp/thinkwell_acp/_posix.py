"""A child process with pipes, on POSIX.

Not `anyio.open_process`: with asyncio it also waits for the end of the pipes, so a grandchild that keeps
standard output open makes the wait hang, and its destructor complains once the event loop has ended. Here the
process leads its own process group, is watched by a file descriptor, and is not reaped before its whole group
was killed: until then the group's number cannot be reused.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint, checkpoint_if_cancelled

from thinkwell_acp._forks import let_go_in_forks
from thinkwell_acp._ladder import GROUP_GRACE

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence
    from typing import IO

    from thinkwell_acp._ladder import Signal

READ_SIZE = 64 * 1024
"""Bytes asked for in one read of a descriptor that has no space to read into."""

PIPE_SIZE = 1024 * 1024
"""Bytes requested for the pipe that the agent writes to: a burst then causes few wake-ups."""

POLL_INTERVAL = 0.02
"""Seconds between checks of the process if the system offers no file descriptor for it."""

GROUP_POLL_INTERVAL = 0.005
"""Seconds between checks of a killed group."""


class Process:
    """A running child in its own process group."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        cwd: str | None,
        merge_stderr: bool = False,
    ) -> None:
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
            bufsize=0,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._stdin, self._stdout, self._stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
        _enlarge(self._stdout.fileno())
        self.stdout: Output = Output(self._stdout.fileno())
        self._pidfd = _open_pidfd(self._popen.pid)
        self._released = False
        let_go_in_forks(self)

    def forked(self) -> list[int]:  # pragma: no cover - in a fork, into which no tool looks
        """Do nothing more to the process, which is another process's child."""
        self._released = True
        self._popen.returncode = 0
        open_ = [pipe.fileno() for pipe in self._pipes() if not pipe.closed]
        return open_ if self._pidfd is None else [*open_, self._pidfd]

    def _pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self._stdin, self._stdout, self._stderr) if pipe is not None]

    @property
    def pid(self) -> int:
        """The process's number, also its group's."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; ``None`` while the process runs."""
        if self._popen.returncode is None and hasattr(os, "waitid"):  # which macOS has since Python 3.13
            with suppress(ChildProcessError):  # the caller ignores SIGCHLD: the system has reaped it
                ended = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None:
                    return None
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return self._popen.poll()

    async def read_stderr(self) -> bytes:
        """Return the next error output, empty at its end. Not with `merge_stderr`."""
        assert self._stderr is not None
        return await read_descriptor(self._stderr.fileno())

    async def write_stdin(self, data: bytes) -> None:
        """Write it all. Raises `BrokenPipeError` if there is no reader."""
        await write_descriptor(self._stdin.fileno(), data)

    def write_stdin_now(self, data: bytes) -> int:
        """Write what the pipe accepts without waiting, and return how many bytes. Raises as `write_stdin`."""
        try:
            return os.write(self._stdin.fileno(), data)
        except BlockingIOError:
            return 0

    def close_stdin(self) -> None:
        """Close the process's input."""
        _close(self._stdin)

    async def wait(self) -> None:
        """Wait until the process has ended, not until its pipes have."""
        if self._pidfd is not None:
            await anyio.wait_readable(self._pidfd)
            return
        while self.exit_code is None:  # noqa: ASYNC110 - there is nothing to wait for
            await anyio.sleep(POLL_INTERVAL)

    def signal(self, which: Signal) -> None:
        """Send a signal to the whole group. A group that has ended is not an error."""
        if self._released:  # its number may belong to another process by now
            return
        number = signal.SIGTERM if which == "terminate" else signal.SIGKILL
        # macOS refuses to signal a group of zombies.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    async def release(self) -> None:
        """Reap the process if it has ended, and close the rest of its pipes.

        It waits for the rest of its group, at most `GROUP_GRACE`: a kill takes a moment to be visible.
        """
        self._released = True
        if self._popen.poll() is None:  # pragma: no cover - a process that is stuck in the kernel
            self._popen.returncode = -signal.SIGKILL  # otherwise its destructor complains
        self.stdout.wake()
        self.stdout.let_go()
        for pipe in self._pipes():
            _close(pipe)
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        with anyio.move_on_after(GROUP_GRACE), suppress(ProcessLookupError, PermissionError):
            while True:
                os.killpg(self._popen.pid, 0)
                await anyio.sleep(GROUP_POLL_INTERVAL)


class Output:
    """The output of a child, read by one task at a time.

    Registering for each read costs two system calls and two passes of the event loop, so on asyncio the
    descriptor stays registered, and the loop reads directly into the waiting task's space.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = _asyncio_loop()
        self._registered = False
        self._space = memoryview(b"")
        """The space to read into."""
        self._read: asyncio.Future[int | OSError | None] | None = None
        self._unread = b""
        """Bytes that were read for a task that was cancelled before it knew."""

    async def read_into(self, space: memoryview) -> int | None:
        """Wait for bytes, put them into a space and return how many; 0 at the end.

        ``None``: `wake` was called. Cancellation loses nothing.
        """
        # anyio does not cancel a task whose wait is done. With constant input, that may be so each time.
        await checkpoint_if_cancelled()
        if self._unread:
            await checkpoint()
            size = min(len(space), len(self._unread))
            space[:size], self._unread = self._unread[:size], self._unread[size:]
            return size
        if self._loop is None:
            return await self._read_elsewhere(space)
        if self._waits:
            raise anyio.BusyResourceError("reading from")
        if not self._registered:
            self._loop.add_reader(self._fd, self._readable)
            self._registered = True
        self._space = space
        read: asyncio.Future[int | OSError | None] = self._loop.create_future()
        self._read = read
        try:
            outcome = await read
        except BaseException:
            if read.done() and not read.cancelled() and isinstance(got := read.result(), int):
                self._unread = bytes(space[:got])
            raise
        if isinstance(outcome, OSError):
            raise outcome  # pragma: no cover - no pipe was seen to fail
        return outcome

    @property
    def _waits(self) -> bool:
        return self._read is not None and not self._read.done()

    async def _read_elsewhere(self, space: memoryview) -> int | None:
        while True:
            try:
                await anyio.wait_readable(self._fd)
            except anyio.ClosedResourceError:
                return None
            with suppress(BlockingIOError):
                return os.readv(self._fd, [space])

    def _readable(self) -> None:
        if not self._waits:  # the task does something else: check when it waits again
            self.let_go()
            return
        try:
            self._settle(os.readv(self._fd, [self._space]))
        except BlockingIOError:  # pragma: no cover - it was woken for nothing
            pass
        except OSError as exc:  # pragma: no cover - no pipe was seen to fail
            self._settle(exc)

    def _settle(self, outcome: int | OSError | None) -> None:
        if self._read is not None and not self._read.done():
            self._read.set_result(outcome)

    def wake(self) -> None:
        """Let the waiting read return ``None``."""
        if self._loop is None:
            anyio.notify_closing(self._fd)
        else:
            self._settle(None)

    def let_go(self) -> None:
        """Remove the descriptor from the event loop, before it is closed."""
        if self._registered and self._loop is not None:
            self._loop.remove_reader(self._fd)
        self._registered = False


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """Return the running event loop if it is asyncio's; ``None`` with trio."""
    if "trio" in sys.modules:  # otherwise trio is not running, and may not be installed
        import trio

        if trio.lowlevel.in_trio_run():
            return None
    import asyncio

    return asyncio.get_running_loop()


async def read_descriptor(fd: int) -> bytes:
    """Return the next bytes of a non-blocking descriptor, empty at its end."""
    await checkpoint()  # before the read: a caller cancelled after it would lose what was read
    while True:
        try:
            return os.read(fd, READ_SIZE)
        except BlockingIOError:
            await anyio.wait_readable(fd)


async def write_descriptor(fd: int, data: bytes) -> None:
    """Write all the bytes to a non-blocking descriptor."""
    view = memoryview(data)
    await checkpoint_if_cancelled()
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            await anyio.wait_writable(fd)
    await cancel_shielded_checkpoint()  # after the write: the other side can begin


def _close(pipe: IO[bytes]) -> None:
    if not pipe.closed:
        anyio.notify_closing(pipe)
        pipe.close()


def _enlarge(fd: int) -> None:
    if sys.platform == "linux":  # pragma: no branch - macOS has fixed sizes
        with suppress(OSError):  # above the user's limit: the size stays unchanged
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _open_pidfd(pid: int) -> int | None:
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):  # not every build of Python has it
        with suppress(OSError):  # an old kernel, or a sandbox without it
            return os.pidfd_open(pid)
    return None
