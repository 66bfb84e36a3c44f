"""A bad line to a server of Redis: it can be cut, held, be slow, or lose an answer."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from redis_servers import RedisServer

__all__ = ("RedisLine", "redis_line")


class RedisLine:
    """Passes on what comes from clients to a server, and back.

    It works in threads, so that no event loop can hold it up.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.lost = 0
        """How many answers were lost."""
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._losing: dict[bytes, int] = {}
        self._swallowing: bytes | None = None
        self._delaying: bytes | None = None
        self._delayed: list[bytes] = []
        self.delaying = threading.Event()
        """Set when something is delayed."""
        self._flowing = threading.Event()
        self._flowing.set()
        self._chunk = 65536
        self._refusing = False
        self._dead: set[socket.socket] = set()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    # What can be done to it

    def cut(self) -> None:
        """End all connections."""
        with self._lock:
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def refuse(self, *, refusing: bool = True) -> None:
        """End all connections, and new ones as soon as they come."""
        self._refusing = refusing
        if refusing:
            self.cut()

    def lose(self, mark: bytes, *, times: int = 1) -> None:
        """Pass requests on that have a mark, and end their connections instead of passing the answers on."""
        self._losing[mark] = times

    def swallow(self, mark: bytes) -> None:
        """End the connection of the next request that has a mark, instead of passing it on."""
        self._swallowing = mark

    def delay(self, mark: bytes) -> None:
        """Keep the next request that has a mark until `deliver`, and give no answer."""
        self._delaying = mark

    def deliver(self) -> list[bytes]:
        """Pass what was delayed on, each over a connection of its own, and return the answers."""
        answers: list[bytes] = []
        for request in self._delayed:
            with self._connect() as upstream:
                upstream.sendall(request)
                answers.append(upstream.recv(65536))
        self._delayed.clear()
        return answers

    def hold(self, *, holding: bool = True) -> None:
        """Pass nothing on, but stay connected."""
        (self._flowing.clear if holding else self._flowing.set)()

    def deaden(self) -> None:
        """Let nothing come through the connections that there are now, ever: new ones are good."""
        with self._lock:
            self._dead |= self._open

    def be_slow(self) -> None:
        """Pass on a byte at a time."""
        self._chunk = 1

    def close(self) -> None:
        """End it."""
        self._flowing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or it would be waited at for ever
        self._listener.close()
        self._accepting.join()
        self.cut()

    # What it does

    def _connect(self) -> socket.socket:
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(str(self._server.socket))
        return upstream

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._refusing:
                    client.close()
                    continue
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            upstream = self._connect()
        except OSError:
            client.close()
            return
        with client, upstream:
            with self._lock:
                self._open |= {client, upstream}
            back = threading.Thread(target=self._pass_back, args=(client, upstream), daemon=True)
            back.start()
            with suppress(OSError):
                self._pass_on(client, upstream)
            for end in (client, upstream):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            back.join()
            with self._lock:
                self._open -= {client, upstream}

    def _pass_on(self, client: socket.socket, upstream: socket.socket) -> None:
        while request := client.recv(1 << 20):
            self._flowing.wait()
            if self._swallowing is not None and self._swallowing in request:
                self._swallowing = None
                self.lost += 1
                return
            if self._delaying is not None and self._delaying in request:
                self._delaying = None
                self._delayed.append(request)
                self.delaying.set()
                continue
            for mark in [mark for mark, times in self._losing.items() if times and mark in request]:
                self._losing[mark] -= 1
                self.lost += 1
                with self._connect() as other:
                    other.sendall(request)
                    answer = other.recv(65536)
                if not answer.startswith(b"-NOSCRIPT"):  # that is no answer yet
                    return
                self._losing[mark] += 1
                self.lost -= 1
            self._send(upstream, request)

    def _pass_back(self, client: socket.socket, upstream: socket.socket) -> None:
        with suppress(OSError):
            while answer := upstream.recv(65536):
                self._flowing.wait()
                self._send(client, answer)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _send(self, end: socket.socket, data: bytes) -> None:
        if end in self._dead:
            return
        for start in range(0, len(data), self._chunk):
            end.sendall(data[start : start + self._chunk])


@contextmanager
def redis_line(server: RedisServer) -> Generator[RedisLine]:
    """A line to a server, for the time of a block."""
    line = RedisLine(server)
    try:
        yield line
    finally:
        line.close()
