"""The command in the background of a shell: `thinkwell run … &`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SHELL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.execv(sys.executable, [sys.executable, "-m", "thinkwell", "run", "Say hello."])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="jobs of POSIX shells")
def test_it_prints_lines_and_draws_nothing() -> None:
    from cli.terminal import Terminal  # it needs modules of POSIX systems

    master, slave = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SHELL], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    ) as process:
        os.close(slave)
        terminal = Terminal(process, master)
        code = terminal.end()
    os.close(master)
    assert code == 0, terminal.shown.decode()
    assert b"done in" in terminal.shown
    assert b"\x1b[?25l" not in terminal.shown, "the cursor was hidden: something was drawn"
