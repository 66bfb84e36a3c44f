"""What a forked process lets go of: it has copies of all descriptors that its parent has opened.

A copy that is used takes from the parent what it would have read, and one that is merely kept hides from the
agent that the parent has closed its own. So in a fork all of them lead to the end of an empty pipe.
"""

from __future__ import annotations

import os
import re
import select
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakSet

from anyio import NoEventLoopError
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

_WATCHED: Final = re.compile(r"^tfd:\s*(\d+)\s+events:\s*([0-9a-f]+)", re.MULTILINE)
"""A descriptor that an epoll watches, and the events that it waits for (proc_pid_fdinfo(5))."""


class Opened(Protocol):
    """Something that holds descriptors."""

    def forked(self) -> Iterable[int]:
        """Learn that this process is a fork, and return the descriptors that are open."""
        ...


_opened: WeakSet[Opened] = WeakSet()
_loops: WeakSet[Any] = WeakSet()


def let_go_in_forks(opened: Opened) -> None:
    """Have a forked process let go of the descriptors of something, as long as it is referenced.

    It also gets from its parent what it takes to leave blocks in a copy of the running event loop.
    """
    _opened.add(opened)
    with suppress(NoEventLoopError):  # something that needs none, such as a file
        _loops.add(current_token().native_token)


class _Socket:
    def __init__(self, fileno: Callable[[], int]) -> None:
        self._fileno = fileno

    def forked(self) -> Iterable[int]:  # pragma: no cover - in a fork, into which no tool looks
        return () if self._fileno() < 0 else (self._fileno(),)


@contextmanager
def socket_let_go_in_forks(fileno: Callable[[], int]) -> Generator[None]:
    """Have a process that is forked in a block let go of a socket.

    Args:
        fileno: Returns its descriptor; a negative number where it is closed.
    """
    held = _Socket(fileno)
    let_go_in_forks(held)
    yield


# What follows runs in forks, into which no tool looks.


def _let_go() -> None:  # pragma: no cover
    descriptors = {descriptor for opened in tuple(_opened) for descriptor in opened.forked()}
    _opened.clear()
    if not descriptors:
        return
    end, writer = os.pipe()
    os.close(writer)
    for descriptor in descriptors:
        os.dup2(end, descriptor, inheritable=False)
    os.close(end)
    for loop in tuple(_loops):
        _renew_wakeup(loop)
    for poll, watched in _polls():
        if not descriptors.isdisjoint(watched):
            _renew(poll, watched)


def _polls() -> Iterator[tuple[int, dict[int, int]]]:  # pragma: no cover
    """Yield each descriptor of epoll, with the events that it waits for by descriptor."""
    with suppress(OSError):  # no other system has it, and a sandbox may hide it
        for link in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # that of the folder is closed by now
                if os.readlink(link) == "anon_inode:[eventpoll]":  # noqa: PTH115 - it is no path
                    found = _WATCHED.findall(Path("/proc/self/fdinfo", link.name).read_text("ascii"))
                    yield int(link.name), {int(descriptor): int(events, 16) for descriptor, events in found}


def _renew_wakeup(loop: Any) -> None:  # pragma: no cover
    """Give a copied event loop the sockets that wake it: its parent would take what is meant for it."""
    from socket import socketpair  # what has a loop has loaded it

    with suppress(AttributeError):  # neither library tells of them, and uvloop sees to it by itself
        wakeup = loop._reentry_queue.wakeup if hasattr(loop, "_reentry_queue") else None
        ends = (loop._ssock, loop._csock) if wakeup is None else (wakeup.wakeup_sock, wakeup.write_sock)
        for own, old in zip(socketpair(), ends, strict=True):
            own.setblocking(False)
            os.dup2(own.fileno(), old.fileno(), inheritable=False)
            own.close()


def _renew(poll: int, watched: dict[int, int]) -> None:  # pragma: no cover
    """Give this process an epoll of its own: what it stops to watch its parent would not see any more."""
    with select.epoll() as own:
        for descriptor, events in watched.items():
            with suppress(OSError):  # one that is closed, but was watched under another number
                own.register(descriptor, events)
        os.dup2(own.fileno(), poll, inheritable=False)


if hasattr(os, "register_at_fork"):  # pragma: no branch - the tests run on POSIX
    os.register_at_fork(after_in_child=_let_go)
