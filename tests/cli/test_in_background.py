"""The command in the background of a shell: `thinkwell run … &`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest
from cli.terminal import Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="jobs of POSIX shells")

SHELL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.execv(sys.executable, [sys.executable, "-m", "thinkwell", "run", "Say hello."])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]))
"""


def test_it_prints_lines_and_draws_nothing() -> None:
    master, slave = pty.openpty()
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    with subprocess.Popen([sys.executable, "-c", SHELL], **streams, start_new_session=True) as process:
        os.close(slave)
        terminal = Terminal(process, master)
        code = terminal.end()
    os.close(master)
    assert code == 0, terminal.shown.decode()
    assert b"[end] done" in terminal.shown or b"done in" in terminal.shown
    assert b"\x1b[?25l" not in terminal.shown, "the cursor was hidden: something was drawn"
