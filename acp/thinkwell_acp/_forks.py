"""Release the descriptors that a forked process has copied from its parent.

A used copy takes bytes from the parent, and a copy that stays open hides from the agent that the parent has
closed its own. So in a fork, all of them are replaced with the end of an empty pipe.
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
    """An object that holds descriptors."""

    def forked(self) -> Iterable[int]:
        """Handle that this process is a fork, and return the open descriptors."""
        ...


_opened: WeakSet[Opened] = WeakSet()
_loops: WeakSet[Any] = WeakSet()


def let_go_in_forks(opened: Opened) -> None:
    """Release an object's descriptors in forked processes, as long as it is referenced.

    This also lets a fork leave blocks in its copy of the running event loop.
    """
    _opened.add(opened)
    with suppress(NoEventLoopError):  # an object without an event loop, such as a file
        _loops.add(current_token().native_token)


class _Socket:
    def __init__(self, fileno: Callable[[], int]) -> None:
        self._fileno = fileno

    def forked(self) -> Iterable[int]:  # pragma: no cover - in a fork, into which no tool looks
        return () if self._fileno() < 0 else (self._fileno(),)


@contextmanager
def socket_let_go_in_forks(fileno: Callable[[], int]) -> Generator[None]:
    """Release a socket in processes that are forked in a block.

    Args:
        fileno: Returns its descriptor; a negative number if it is closed.
    """
    held = _Socket(fileno)
    let_go_in_forks(held)
    yield


# The rest runs in forks, which coverage does not see.


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
    """Yield each epoll descriptor, with the events that it waits for by descriptor."""
    with suppress(OSError):  # only Linux has it, and a sandbox may hide it
        for link in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # the folder's own is closed by now
                if os.readlink(link) == "anon_inode:[eventpoll]":  # noqa: PTH115 - it is no path
                    found = _WATCHED.findall(Path("/proc/self/fdinfo", link.name).read_text("ascii"))
                    yield int(link.name), {int(descriptor): int(events, 16) for descriptor, events in found}


def _renew_wakeup(loop: Any) -> None:  # pragma: no cover
    """Replace the sockets that wake a copied event loop: it would take the parent's wake-ups."""
    from socket import socketpair  # the event loop has imported it

    with suppress(AttributeError):  # they are private in both libraries, and uvloop does it itself
        wakeup = loop._reentry_queue.wakeup if hasattr(loop, "_reentry_queue") else None
        ends = (loop._ssock, loop._csock) if wakeup is None else (wakeup.wakeup_sock, wakeup.write_sock)
        for own, old in zip(socketpair(), ends, strict=True):
            own.setblocking(False)
            os.dup2(own.fileno(), old.fileno(), inheritable=False)
            own.close()


def _renew(poll: int, watched: dict[int, int]) -> None:  # pragma: no cover
    """Give this process its own epoll: changes to the copy would affect the parent's."""
    with select.epoll() as own:
        for descriptor, events in watched.items():
            with suppress(OSError):  # a closed one that was watched under another number
                own.register(descriptor, events)
        os.dup2(own.fileno(), poll, inheritable=False)


if hasattr(os, "register_at_fork"):  # pragma: no branch - the tests run on POSIX
    os.register_at_fork(after_in_child=_let_go)
