"""A command in the caller's own terminal, run as by a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell_acp._ladder import KILL_GRACE, TERMINATE_GRACE, Graces, end_process
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.process_tree import ProcessTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

POLL_INTERVAL: Final = 0.05
"""Seconds between checks of the command. There is no notification that it was stopped from the keyboard."""

TERMINAL: Final = 0
"""Standard input: the descriptor that identifies a terminal."""

if sys.platform == "win32":
    import anyio.to_thread

    def in_foreground() -> bool:
        """Return whether standard input is a terminal."""
        return os.isatty(TERMINAL)

    async def run_in_foreground(command: Sequence[str], *, env: Mapping[str, str], cwd: str) -> int:
        """Run a command in the caller's console and return its exit code.

        A console has no jobs: the caller receives Ctrl-C too.

        Raises:
            OSError: The command cannot be started.
        """
        process = subprocess.Popen(command, env=env, cwd=cwd)  # noqa: ASYNC220 - returns at once
        try:
            return await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        finally:
            process.kill()

else:
    import signal
    import termios
    from contextlib import contextmanager, suppress

    if TYPE_CHECKING:
        from collections.abc import Generator

        from thinkwell_acp._ladder import Signal

    def in_foreground() -> bool:
        """Return whether standard input is a terminal, and its foreground job is this process's."""
        try:
            return os.tcgetpgrp(TERMINAL) == os.getpgrp()
        except OSError:  # it is not a terminal, or another session's
            return False

    async def run_in_foreground(command: Sequence[str], *, env: Mapping[str, str], cwd: str) -> int:
        """Run a command with the caller's terminal and return its exit code, negative for a signal.

        It is the terminal's foreground job, so only it receives Ctrl-C. Cancelling the caller ends it and
        what it has started; processes that it leaves when it ends by itself, such as a browser, stay. The
        terminal is then restored.

        Raises:
            OSError: The command cannot be started.
        """
        tree = ProcessTree()
        with _terminal_kept():
            process = subprocess.Popen(  # noqa: ASYNC220 - returns at once
                command, env=tree.environment(env), cwd=cwd, process_group=0
            )
            tree.add(process.pid)
            try:
                return await _follow(process)
            finally:
                if process.returncode is None:
                    with anyio.CancelScope(shield=True):
                        tree.look()
                        await _end(process)
                        await tree.end(TERMINATE_GRACE, KILL_GRACE)
                        tree.close()

    @contextmanager
    def _terminal_kept() -> Generator[None]:
        """Take the terminal back at the end of a block, and restore its settings."""
        settings = termios.tcgetattr(TERMINAL)
        try:
            yield
        finally:
            with suppress(OSError, termios.error):  # the terminal has closed
                _give_terminal(os.getpgrp())
                termios.tcsetattr(TERMINAL, termios.TCSADRAIN, settings)

    def _give_terminal(group: int) -> None:
        """Make a process group the foreground one; in the background, the system would stop the caller."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            os.tcsetpgrp(TERMINAL, group)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    async def _follow(process: subprocess.Popen[bytes]) -> int:
        """Keep a command in the foreground until it ends."""
        _resume(process)
        while True:
            changed, status = os.waitpid(  # noqa: ASYNC222 - it does not wait
                process.pid, os.WNOHANG | os.WUNTRACED
            )
            if not changed:
                await anyio.sleep(POLL_INTERVAL)
            elif os.WIFSTOPPED(status):
                await _stop_with_it()
                _resume(process)
            else:
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode

    async def _stop_with_it() -> None:
        """Stop too, as Ctrl-Z does for a whole job, until the caller's shell continues us in the foreground.

        Without such a shell the system ignores the signal, and the command just continues.
        """
        _give_terminal(os.getpgrp())
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        while not in_foreground():  # noqa: ASYNC110 - nothing would tell
            await anyio.sleep(POLL_INTERVAL)

    def _resume(process: subprocess.Popen[bytes]) -> None:
        """Give a command the terminal, and wake it: it was stopped if it used the terminal too early."""
        with suppress(OSError):  # it has ended
            _give_terminal(process.pid)
            os.killpg(process.pid, signal.SIGCONT)

    async def _end(process: subprocess.Popen[bytes]) -> None:
        """End a command and the processes that it has started."""

        def send(which: Signal) -> None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGTERM if which == "terminate" else signal.SIGKILL)
                os.killpg(process.pid, signal.SIGCONT)  # a stopped process does not notice

        async def watch() -> None:
            while process.poll() is None:  # noqa: ASYNC110 - nothing would tell
                await anyio.sleep(POLL_INTERVAL)
            exited.set()

        exited = anyio.Event()
        async with background_tasks() as tasks:
            tasks.start_soon(watch)
            await end_process(send, exited, Graces(exit=0))
