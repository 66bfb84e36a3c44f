"""The port that ``thinkwell serve`` listens on, and how many connections it can take."""

from __future__ import annotations

import errno
import socket
import sys
from contextlib import ExitStack
from typing import Final

RESERVE: Final = 256
"""Files that are needed for other things than connections: agents, the journal, modules."""

BACKLOG: Final = 1024
"""Connections that wait until they are taken."""

_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""What is said of an address that this machine does not have, such as one of IPv6 where there is none."""


class ListenError(OSError):
    """It cannot be listened there. The text says why, and what to do."""


def listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on a port: one for each address that a name has on this machine.

    Args:
        host: A name or an address.
        port: The port; 0: any that is free.

    Raises:
        ListenError: There is no such place, or it is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise ListenError(f"there is no host {host}; give --host an address of this machine") from None
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    with ExitStack() as opened:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            try:
                # Said to be of TCP: only then does asyncio send what is written at once (TCP_NODELAY), and
                # not wait for some 40 ms whether there is more.
                own = opened.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
                _prepare(own)
                own.bind((address[0], port, *address[2:]))
                own.listen(BACKLOG)
            except OSError as exc:
                if exc.errno not in _ABSENT:
                    raise ListenError(_words(exc, host, port)) from None
                absent = exc
                continue
            port = own.getsockname()[1]  # the same for all of them
            sockets.append(own)
        if absent is not None and not sockets:
            raise ListenError(f"this machine has no address {host}; give --host one that it has") from None
        opened.pop_all()
    return sockets


def _prepare(own: socket.socket) -> None:
    if sys.platform == "win32":
        own.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # there, reuse means to share
    else:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of one that has just ended
    if own.family == socket.AF_INET6:
        own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    own.setblocking(False)


def _words(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} of {host} is taken by another program, maybe by another thinkwell serve. End "
                f"that, or give another one: --port {port - 1 if port == 65_535 else port + 1}, or 0 for any"
            )
        case errno.EACCES:
            return f"port {port} of {host} is not for everybody; give one from 1024 on, such as --port 8283"
        case _:
            return f"it cannot be listened on port {port} of {host}: {error.strerror}"


def make_room(connections: int) -> int:
    """Let this process have as many connections as that, and return how many it can have."""
    if sys.platform == "win32":
        return connections
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, soft - RESERVE)
    return connections
