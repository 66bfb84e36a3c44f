"""Programs that outlive who has started them, as long as they are let."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone shows whose a process is")

DAEMON = [sys.executable, "-IS", str(Path(__file__).parent / "login" / "programs" / "browser.py")]
"""The command of one, but for the file that it writes its number into."""


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except OSError:
        return not Path("/proc/self").exists()


async def wait_gone(pid: int) -> None:
    """Wait until a process that was killed has ended."""
    with anyio.fail_after(30):
        while is_alive(pid):  # noqa: ASYNC110 - no child of ours, so nothing tells
            await anyio.sleep(0.01)


async def number_in(file: Path) -> int:
    """Wait for the process that writes its number into a file, and return it. It is alive."""
    pid = await number_told_in(file)
    assert is_alive(pid)
    return pid


async def number_told_in(file: Path) -> int:
    """Wait for the process that writes its number into a file, and return it. It may have ended."""
    with anyio.fail_after(30):
        while not (file.exists() and file.read_text()):  # noqa: ASYNC110 - no child of ours, so nothing tells
            await anyio.sleep(0.01)
    return int(file.read_text())


async def ends(pid: int) -> bool:
    """Whether a process has ended; one that has not is ended."""
    if not is_alive(pid):
        return True
    os.kill(pid, signal.SIGKILL)
    await wait_gone(pid)
    return False
