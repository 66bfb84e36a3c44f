"""Find the processes that a process has started, even after they left its group.

A daemon leaves its parent, its process group and its session. It keeps its environment, unless a program
clears it: there, a tree has a mark that cannot be guessed. Only Linux shows the environment of processes, and
allows signals without mistakes, by a descriptor (``pidfd_open``); elsewhere nothing is found.
"""

from __future__ import annotations

import logging
import os
import select
import signal
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from thinkwell_acp._forks import let_go_in_forks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ("VARIABLE", "ProcessTree")

logger: logging.Logger = logging.getLogger("thinkwell.acp")

VARIABLE: Final = "THINKWELL_TREE"
"""The environment variable with the marks of all trees that a process is in, outermost first."""

MAX_PASSES: Final = 32
"""Most searches for new processes. Few programs start others so fast that a third search is needed: each
takes a millisecond, and stopped processes start no more."""


class _Status(NamedTuple):
    """The fields of ``/proc/PID/stat``."""

    running: bool
    parent: int
    session: int
    started: int
    """In ticks since the system was booted."""


class ProcessTree:
    """The processes that were started with `environment` and given to `add`, and all that they started.

    A process belongs to it if its environment has the mark, if its parent belongs to it, or if it is in the
    session of an added one. Other users' processes do not. Before a process is signalled, a descriptor holds
    it and all of this is read again: its number may have been reused.

    Args:
        keep_daemons: Find nothing.
    """

    def __init__(self, *, keep_daemons: bool = False) -> None:
        self._mark = os.urandom(16).hex()
        self._blind = keep_daemons or not _can_find()
        self._roots: dict[int, int] = {}
        """When each added process was started."""
        self._since = 0
        """When the first one was. Older processes cannot have the mark."""
        self._members: dict[int, int] = {}
        """The descriptor of each found process, except the roots."""
        self._spared: dict[int, int] = {}
        """When each process to spare was started."""
        let_go_in_forks(self)

    def forked(self) -> list[int]:  # pragma: no cover - in a fork, into which no tool looks
        """Find nothing more: all of it belongs to another process."""
        self._blind = True
        self._roots.clear()
        descriptors = list(self._members.values())
        self._members.clear()
        return descriptors

    def environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        """Return an environment, ``None`` for the caller's, with the mark of this tree.

        The marks of the caller's trees are kept, whatever else is passed on.
        """
        outer = os.environ.get(VARIABLE)
        marks = self._mark if outer is None else f"{outer}:{self._mark}"
        return {**(os.environ if env is None else env), VARIABLE: marks}

    def add(self, pid: int) -> None:
        """Add a child of this process that leads a session. It must not be reaped before `discard`."""
        if self._blind:
            return
        status = _status(pid)
        self._roots[pid] = 0 if status is None else status.started
        self._since = self._since or self._roots[pid]

    def discard(self, pid: int) -> None:
        """Forget a child's number. The processes that it started still belong to the tree."""
        self._roots.pop(pid, None)

    def look(self) -> None:
        """Find the descendants, without looking through all processes.

        Once its parent has ended, a process without the mark cannot be found: call this before.
        """
        self._forget_ended()
        queue = [*self._living_roots(), *self._members]
        while queue:
            queue += filter(self._hold, _children(queue.pop()))

    def spare(self) -> None:
        """Leave alone the processes that have left the session of their root, and their descendants."""
        self._search()
        for pid in tuple(self._members):
            status = _status(pid)
            if status is not None and status.session not in self._roots:
                self._spared[pid] = status.started
                os.close(self._members.pop(pid))

    def kill(self) -> bool:
        """Kill the rest at once, except the roots; return whether there was any."""
        self._signal(signal.SIGSTOP)  # it then starts no more processes, and stays the parent of its children
        for _ in range(MAX_PASSES):  # pragma: no branch - that many are hardly needed
            if not self._search(stop=True):
                break
        self._signal(signal.SIGKILL)
        return bool(self._members)

    async def end(self, terminate_grace: float, kill_grace: float) -> None:
        """End the rest, except the roots: SIGTERM, then SIGKILL, until none is left.

        Args:
            terminate_grace: Seconds between the two.
            kill_grace: Seconds until it gives up.
        """
        with anyio.move_on_after(terminate_grace):
            while True:
                self._signal(signal.SIGTERM, signal.SIGCONT)
                await self._ended()
                if not self._search():
                    return
        with anyio.move_on_after(kill_grace):
            while self.kill():
                await self._ended()
            return
        logger.error("Processes do not die, or start others faster than they do: %s", sorted(self._members))

    def close(self) -> None:
        """Close the descriptors, and find nothing more."""
        self._blind = True
        for descriptor in self._members.values():
            os.close(descriptor)
        self._members.clear()

    async def _ended(self) -> None:
        for descriptor in self._members.values():
            await anyio.wait_readable(descriptor)

    def _signal(self, *numbers: signal.Signals, only: Iterable[int] | None = None) -> None:
        for pid in tuple(self._members if only is None else only):
            try:
                with suppress(ProcessLookupError):
                    for number in numbers:
                        signal.pidfd_send_signal(self._members[pid], number)
            except PermissionError:  # pragma: no cover - it runs as another user, which takes sudo
                os.close(self._members.pop(pid))

    def _search(self, *, stop: bool = False) -> bool:
        """Search all processes of this user; return whether new ones of the tree were found.

        A process may start another and end before it is seen: the search repeats until it finds none.

        Args:
            stop: Whether to stop each at once.
        """
        self._forget_ended()
        if self._blind or not self._since:
            return False
        roots = self._living_roots()
        children: defaultdict[int, list[int]] = defaultdict(list)
        known: set[int] = set()
        found = False
        for _ in range(MAX_PASSES):  # pragma: no branch - that many are hardly needed
            new = _processes() - known
            if not new:
                break
            known |= new
            for pid in sorted(new, reverse=True):  # the latest are the first to end
                status = _status(pid) if _is_visible(pid) else None
                if status is None or status.started < self._since:
                    continue
                children[status.parent].append(pid)
                if status.session in roots or self._is_marked(pid):
                    found = self._hold(pid, stop=stop) or found
            queue = [child for parent in (*roots, *self._members) for child in children[parent]]
            while queue:
                pid = queue.pop()
                if self._hold(pid, stop=stop):
                    found = True
                    queue += children[pid]
        return found

    def _hold(self, pid: int, *, stop: bool = False) -> bool:
        """Hold a process if it belongs to the tree and is not held; return whether that is so."""
        if pid in self._members or pid in self._roots:
            return False
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:  # pragma: no cover - it has just ended, or there are no more descriptors
            return False
        if self._belongs(pid):  # it reads the held process, or that one has ended
            self._members[pid] = descriptor
            if stop:
                self._signal(signal.SIGSTOP, only=(pid,))
            return True
        os.close(descriptor)
        return False

    def _belongs(self, pid: int) -> bool:
        status = _status(pid)
        if status is None or not status.running or not _is_ours(pid) or self._is_spared(pid):
            return False
        roots = self._living_roots()
        if status.session in roots or status.parent in roots or self._is_marked(pid):
            return True
        return status.parent in self._members and _exists(self._members[status.parent])

    def _is_marked(self, pid: int) -> bool:
        return self._mark.encode() in _read(f"/proc/{pid}/environ")

    def _is_spared(self, pid: int) -> bool:
        while self._spared and (status := _status(pid)) is not None:
            if self._spared.get(pid) == status.started:
                return True
            pid = status.parent
        return False

    def _living_roots(self) -> list[int]:
        """Return the roots whose numbers were not reused."""
        statuses = {pid: _status(pid) for pid in self._roots}
        return [
            pid
            for pid, status in statuses.items()
            if status is not None and status.started == self._roots[pid]
        ]

    def _forget_ended(self) -> None:
        if not self._members:
            return
        poll = select.poll()
        for descriptor in self._members.values():
            poll.register(descriptor, select.POLLIN)
        ended = {descriptor for descriptor, _ in poll.poll(0)}
        for pid in [pid for pid, descriptor in self._members.items() if descriptor in ended]:
            os.close(self._members.pop(pid))


def _can_find() -> bool:
    """Return whether processes can be held, and /proc uses the same process numbers as this process."""
    try:
        descriptor = os.pidfd_open(os.getpid())
        try:
            signal.pidfd_send_signal(descriptor, 0)
        finally:
            os.close(descriptor)
        return os.readlink("/proc/self") == str(os.getpid())  # noqa: PTH115 - it names a number
    except (AttributeError, OSError):  # another system, an old kernel, or a sandbox
        return False


def _processes() -> set[int]:
    return {int(entry) for entry in os.listdir("/proc") if entry.isdecimal()}  # noqa: PTH208 - there are many


def _is_visible(pid: int) -> bool:
    """Return whether a process can be inspected, which is cheaper than to do it."""
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid()  # noqa: PTH116 - as above
    except OSError:  # pragma: no cover - it has just ended
        return False


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - as above
            children += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return children


def _is_ours(pid: int) -> bool:
    """Return whether this user started a process, even if /proc shows another owner of its files."""
    return _read(f"/proc/{pid}/status").partition(b"\nUid:")[2].split()[:1] == [b"%d" % os.getuid()]


def _status(pid: int) -> _Status | None:
    """Return a process's status; ``None`` if it does not exist, not even unreaped."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split(None, 20)  # a name may contain anything
    if not fields:
        return None
    state, parent, _, session = fields[:4]
    return _Status(state not in b"ZX", int(parent), int(session), int(fields[19]))


def _read(path: str) -> bytes:
    data = b""
    with suppress(OSError):  # the process has ended, or we may not inspect it
        descriptor = os.open(path, os.O_RDONLY)
        try:
            while block := os.read(descriptor, 64 * 1024):
                data += block
        finally:
            os.close(descriptor)
    return data


def _exists(descriptor: int) -> bool:
    """Return whether a process still exists, so that its number was not reused."""
    try:
        signal.pidfd_send_signal(descriptor, 0)
    except ProcessLookupError:  # pragma: no cover - it has just ended
        return False
    return True
