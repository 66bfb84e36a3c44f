"""Servers of Redis for tests: real ones, each with a folder and a socket of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from debian_packages import find_program

if TYPE_CHECKING:
    from collections.abc import Generator

    from debian_packages import Program

__all__ = ("RedisServer", "running_redis")

PATIENCE: Final = 30.0
"""Seconds for a server to end."""


class RedisServer:
    """A server that can be killed and started again.

    Args:
        program: Redis.
        folder: Its own. The path has to be short, as it is part of a socket's name.
        options: Lines of its configuration.
    """

    def __init__(self, program: Program, folder: Path, options: tuple[str, ...] = ()) -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._program = program
        self._settings = folder / "redis.conf"
        lines = ("port 0", f"unixsocket {self.socket}", f"dir {folder}", 'save ""', *options)
        self._settings.write_text("\n".join(lines), "utf-8")
        self._process: subprocess.Popen[str] | None = None
        from redis import Redis  # takes half a second

        self._client = Redis(unix_socket_path=str(self.socket))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = (self._program.path, str(self._settings))
        process = subprocess.Popen(
            command, env=dict(self._program.env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._process = process
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if "eady to accept connections" in line:
                threading.Thread(target=_drain, args=(process,), daemon=True).start()
                return
        raise AssertionError("".join(said))

    def ask(self, *words: str | bytes | int) -> Any:
        """Ask it what nobody else asks in a test."""
        return cast("Any", self._client).execute_command(*words)

    def kill(self) -> None:
        """Kill it, so that it can do nothing any more."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process = None

    def close(self) -> None:
        """Kill it where it runs."""
        self._client.close()
        if self._process is not None:
            self.kill()


def _drain(process: subprocess.Popen[str]) -> None:
    """Read what it says, so that it never waits for that."""
    assert process.stdout is not None
    with process.stdout:
        for _ in process.stdout:
            pass


@contextmanager
def running_redis(*options: str) -> Generator[RedisServer]:
    """A server for the time of a block. Of what it stores nothing survives that."""
    program = find_program("redis-server")
    folder = Path(tempfile.mkdtemp(prefix="redis-"))
    server = RedisServer(program, folder, options)
    try:
        server.start()
        yield server
    finally:
        server.close()
        shutil.rmtree(folder)
