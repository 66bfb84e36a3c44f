"""Each case is checked for what it leaves: processes, threads, listening sockets, files outside its folder.

What fixtures of a wider scope keep is theirs: they begin before the check does.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

KEPT_THREADS: Final = ("Trio thread", "execnet", "thinkwell progress")
"""Threads that wait for more work, and that of a display, which a terminal that hangs may hold."""

IGNORED: Final = (
    ".coverage",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".cache",
    "__pycache__",
)

LINUX: Final = sys.platform == "linux"

MARK: Final = "SUITE_WORKER"
"""The variable by which processes are known whose parents are gone."""

_folder = pytest.StashKey[str]()

_foreign: set[int] = set()
"""Processes that are not this worker's."""

_newest_without = ""
"""The id of the newest process when there was none of ours."""

_last: Found | None = None
"""What was there when the last case had ended, unless a fixture of a wider scope has begun or ended since."""

_listed: dict[str, tuple[int, frozenset[str]]] = {}
"""What a folder held when it was last changed: the check runs for each case."""


class Found(NamedTuple):
    """What is there at one moment."""

    processes: frozenset[int]
    threads: frozenset[threading.Thread]
    sockets: frozenset[str]
    files: frozenset[str]

    @classmethod
    def now(cls) -> Found:
        """Look."""
        return cls(_processes(), _threads(), _sockets(), _files())

    def more_than(self, other: Found) -> str:
        """Return what is here that was not there, in words; an empty text for nothing."""
        names = [f"process {process}: {_command(process)}" for process in self.processes - other.processes]
        names += [f"thread {thread.name!r}" for thread in self.threads - other.threads]
        names += [
            f"a socket that listens: {name}" for name in map(_listening, self.sockets - other.sockets) if name
        ]
        names += [f"file {path}" for path in self.files - other.files]
        return "; ".join(sorted(names))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the patience with what has been told to end."""
    parser.addoption("--patience", type=float, default=10.0, help="seconds for what a case leaves to be gone")


def pytest_configure(config: pytest.Config) -> None:
    """Give this process a folder for temporary files, and those that it starts a mark."""
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # where ``tmp_path`` goes on to be
    config.stash[_folder] = folder = tempfile.mkdtemp(prefix="tw-")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    os.environ[MARK] = str(os.getpid())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove that folder."""
    tempfile.tempdir = None
    rmtree(config.stash[_folder], ignore_errors=True)


@pytest.fixture(autouse=True)
def nothing_left(pytestconfig: pytest.Config) -> Generator[None]:
    """Fail a case that leaves a process, a thread, an open port or a file outside its folder."""
    global _last
    before = _last or Found.now()
    yield
    gc.collect(1)  # so that what garbage says at its end is said in its own test
    _last = Found.now()
    left = _last.more_than(before)
    if left:
        _last = None
        until = time.monotonic() + cast("float", pytestconfig.getoption("--patience"))
        while left and time.monotonic() < until:
            time.sleep(0.01)
            gc.collect()
            left = Found.now().more_than(before)
        if left:
            pytest.fail(f"The test has left {left}", pytrace=False)


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> None:
    """Look again: what a fixture of a wider scope starts is its own."""
    global _last
    if fixturedef.scope != "function":
        _last = None


pytest_fixture_post_finalizer = pytest_fixture_setup


def _processes() -> frozenset[int]:
    global _newest_without
    if not LINUX:
        return frozenset()
    newest = _read("/proc/loadavg").split()[-1]
    if newest == _newest_without:  # there was none of ours, and none has begun since
        return frozenset()
    here = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208
    _foreign.intersection_update(here)
    known = {process: _is_ours(process) for process in here - _foreign}
    ours = frozenset(process for process, is_ours in known.items() if is_ours)
    _foreign.update(process for process, is_ours in known.items() if is_ours is False)
    _newest_without = "" if ours or None in known.values() else newest
    return ours


def _is_ours(process: int) -> bool | None:
    """Return whether this worker has started a process; ``None``: it is about to become a program."""
    state, parent = (*_read(f"/proc/{process}/stat").rpartition(")")[2].split()[:2], "", "")[:2]
    if state in ("", "Z") or process == os.getpid():
        return False
    environment = _read(f"/proc/{process}/environ")
    if parent == str(os.getpid()) or f"{MARK}={os.getpid()}\0" in environment:
        return True
    return False if environment or parent in ("0", "2") else None  # threads of the kernel have none


def _threads() -> frozenset[threading.Thread]:
    return frozenset(
        thread
        for thread in threading.enumerate()
        if thread.is_alive() and not thread.name.startswith(KEPT_THREADS)
    )


def _sockets() -> frozenset[str]:
    if not LINUX:
        return frozenset()
    links: set[str] = set()
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            link = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        except OSError:
            continue
        if link.startswith("socket:"):
            links.add(f"{descriptor} {link}")
    return frozenset(links)


def _listening(link: str) -> str | None:
    try:
        with socket.socket(fileno=os.dup(int(link.split()[0]))) as opened:
            if opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return str(opened.getsockname())
    except OSError:
        pass
    return None


def _files() -> frozenset[str]:
    return _names(Path.cwd().as_posix()) | _names(tempfile.gettempdir())


def _names(folder: str) -> frozenset[str]:
    changed = os.stat(folder).st_mtime_ns  # noqa: PTH116
    if _listed.get(folder, (0,))[0] != changed:
        names = os.listdir(folder)  # noqa: PTH208
        kept = frozenset(f"{folder}/{name}" for name in names if not name.startswith(IGNORED))
        _listed[folder] = changed, kept
    return _listed[folder][1]


def _command(process: int) -> str:
    return _read(f"/proc/{process}/cmdline").replace("\0", " ")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
