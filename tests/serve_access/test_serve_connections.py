"""Connections of ``thinkwell serve``: who says nothing is let go, and there are only so many."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from serve_access.hurried_serve import MOST

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.xdist_group("hurried serve")

SPEED = 10
"""How many seconds are one."""

HEAD_TIME = 20
"""Seconds that a head may take."""

TOLD = 64
"""Connections that are told that there are too many."""

LIMIT = 20
"""True seconds for what takes two."""

SECRET = "ada-has-this-token-1"
HEAD = f"HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\n"


class Hurried:
    """The command, in a time that goes faster."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self._port = port

    def connect(self, said: str = "") -> closing[socket.socket]:
        """Open a connection, and say something."""
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=LIMIT)
        connection.sendall(said.encode())
        return closing(connection)


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Generator[Hurried]:
    """The command."""
    folder = tmp_path_factory.mktemp("hurried")
    command = [sys.executable, "-m", "serve_access.hurried_serve", str(SPEED)]
    options = ["serve", "--port", "0", "--journal", "memory", "--agent", "builtin"]
    tests = Path(__file__).parents[1]
    settings = {"PYTHONPATH": str(tests), "THINKWELL_SERVE_TOKEN": SECRET, "XDG_CONFIG_HOME": str(folder)}
    with subprocess.Popen(
        [*command, *options],
        cwd=folder,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines: list[str] = []
        try:
            while not (lines and lines[-1].startswith("Ready at ")):
                lines.append(process.stderr.readline())
                assert lines[-1], lines
            yield Hurried(process, urlsplit(lines[-1].split(" ")[2]).port or 0)
            process.terminate()
            assert process.wait(LIMIT) == 143
        finally:
            process.kill()


def until(connection: socket.socket, end: str) -> str:
    """Receive until something has come."""
    text = ""
    while end not in text:
        received = connection.recv(65_536).decode()
        assert received, text
        text += received
    return text


def rest(connection: socket.socket) -> str:
    """Receive until the connection is closed."""
    text = ""
    try:
        while received := connection.recv(65_536).decode():
            text += received
    except ConnectionResetError:
        pass
    return text


def test_the_system_does_not_wait_for_more_to_send(serve: Hurried) -> None:
    with serve.connect(f"GET /healthz {HEAD}Connection: close\r\n\r\n") as connection:
        assert rest(connection).startswith("HTTP/1.1 200 ")
    assert serve.process.stdout is not None
    assert serve.process.stdout.readline() == "it does not wait for more to send\n"


@pytest.mark.long
def test_heads_that_do_not_come(serve: Hurried) -> None:
    begun = time.monotonic()
    with ExitStack() as opened:
        connections = [
            opened.enter_context(serve.connect(said))
            for said in ("", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n")
        ]
        second = opened.enter_context(serve.connect(f"GET /healthz {HEAD}\r\n"))
        assert until(second, '"status":"ok"}').startswith("HTTP/1.1 200 ")
        second.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert [rest(connection) for connection in (*connections, second)] == [""] * 4
    assert (time.monotonic() - begun) * SPEED >= HEAD_TIME


def test_an_answer_may_take_its_time_and_what_is_asked_meanwhile_is_answered(serve: Hurried) -> None:
    body = '{"prompt": 5}'
    start = f"POST /api/runs {HEAD}Content-Length: {len(body)}\r\n\r\n"
    with serve.connect(start) as connection, serve.connect() as idle:
        assert rest(idle) == "", "so much time has gone by"
        connection.sendall(f"{body}GET /healthz {HEAD}Connection: close\r\n\r\n".encode())
        answer = rest(connection)
    assert answer.startswith("HTTP/1.1 422 ")
    assert answer.endswith('{"status":"ok"}')


def test_there_are_only_so_many(serve: Hurried) -> None:
    with ExitStack() as opened:
        silent = [opened.enter_context(serve.connect()) for _ in range(MOST + TOLD)]
        with serve.connect() as beyond:
            assert rest(beyond) == ""
        assert select.select(silent, [], [], 0)[0] == [], "it is closed at once, and they are not"
        silent.pop().close()
        told, begun = "", time.monotonic()
        while not told and time.monotonic() < begun + LIMIT:  # until it has learned that one has gone
            with serve.connect(f"GET /healthz {HEAD}Connection: close\r\n\r\n") as connection:
                told = rest(connection)
        assert told.startswith("HTTP/1.1 503 ")
