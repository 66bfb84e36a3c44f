"""A child process with pipes, on Windows: in a Job Object, which ends the whole tree when it is closed."""
# pragma: no cover file - the tests run on POSIX; kept small and checked by the type checkers

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO

    from thinkwell_acp._ladder import Signal

READ_SIZE = 64 * 1024
JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE = 0x2000
JOB_OBJECT_EXTENDED_LIMIT_INFORMATION = 9
_LIMITS_SIZE = 144 if sys.maxsize > 2**32 else 112
_LIMIT_FLAGS_OFFSET = 16
CREATE_NEW_PROCESS_GROUP = 0x00000200


class _Job:
    """A Job Object with one process in it."""

    def __init__(self, process: int) -> None:
        self._kernel: Any = getattr(ctypes, "WinDLL")("kernel32")  # noqa: B009 - known on Windows only
        self._kernel.CreateJobObjectW.restype = ctypes.c_void_p
        self._handle = ctypes.c_void_p(self._kernel.CreateJobObjectW(None, None))
        limits = ctypes.create_string_buffer(_LIMITS_SIZE)
        ctypes.c_uint32.from_buffer(limits, _LIMIT_FLAGS_OFFSET).value = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
        what = JOB_OBJECT_EXTENDED_LIMIT_INFORMATION
        self._kernel.SetInformationJobObject(self._handle, what, limits, _LIMITS_SIZE)
        self._kernel.AssignProcessToJobObject(self._handle, ctypes.c_void_p(process))

    def terminate(self) -> None:
        self._kernel.TerminateJobObject(self._handle, 1)

    def close(self) -> None:
        self._kernel.CloseHandle(self._handle)


class Process:
    """A running child in a Job Object. Its blocking pipes are read and written in worker threads."""

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
            creationflags=CREATE_NEW_PROCESS_GROUP,
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._stdin, self._stdout, self._stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        self._writing = False
        assert self._stdout is not None
        self.stdout: Output = Output(self._stdout)
        self._job = _Job(getattr(self._popen, "_handle"))  # noqa: B009 - the only way to it

    def _pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self._stdin, self._stdout, self._stderr) if pipe is not None]

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; ``None`` while the process runs."""
        return self._popen.poll()

    async def read_stderr(self) -> bytes:
        """Return the next error output, empty at its end. Not with `merge_stderr`."""
        assert self._stderr is not None
        return await _read(self._stderr)

    async def write_stdin(self, data: bytes) -> None:
        """Write it all."""
        await anyio.to_thread.run_sync(self._write, data, abandon_on_cancel=True)

    def write_stdin_now(self, data: bytes) -> int:
        """Write nothing: any write may block here."""
        del data
        return 0

    def _write(self, data: bytes) -> None:
        self._writing = True
        try:
            view = memoryview(data)
            while view:
                view = view[self._stdin.write(view) :]
        finally:
            self._writing = False

    def close_stdin(self) -> None:
        """Close the process's input, unless that would wait for a write to be read."""
        if not self._writing:
            self._stdin.close()

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await anyio.to_thread.run_sync(self._popen.wait, abandon_on_cancel=True)

    def signal(self, which: Signal) -> None:
        """End the whole job. Windows has no gentle way for a program without a window."""
        del which
        self._job.terminate()

    async def release(self) -> None:
        """Close the rest of the process; closing the job ends its remaining processes."""
        self._job.close()
        for pipe in self._pipes():
            pipe.close()


class Output:
    """The output of a child, read by one task at a time."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._reading = anyio.CancelScope()

    async def read_into(self, space: memoryview) -> int | None:
        """Wait for bytes, put them into a space and return how many; 0 at the end, ``None`` by `wake`."""
        with anyio.CancelScope() as self._reading:
            data = await anyio.to_thread.run_sync(self._pipe.read, len(space), abandon_on_cancel=True)
            space[: len(data)] = data
            return len(data)
        return None

    def wake(self) -> None:
        """Let the waiting read return ``None``."""
        self._reading.cancel()


async def _read(pipe: IO[bytes]) -> bytes:
    return await anyio.to_thread.run_sync(pipe.read, READ_SIZE, abandon_on_cancel=True)


async def read_descriptor(fd: int) -> bytes:
    """Return the next bytes of a descriptor, empty at its end."""
    return await anyio.to_thread.run_sync(os.read, fd, READ_SIZE, abandon_on_cancel=True)


async def write_descriptor(fd: int, data: bytes) -> None:
    """Write all the bytes to a descriptor."""
    view = memoryview(data)
    while view:
        view = view[await anyio.to_thread.run_sync(os.write, fd, view) :]
