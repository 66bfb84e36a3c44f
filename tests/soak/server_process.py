"""A server of runs in a process of its own, which can be killed and started again in the same place."""

from __future__ import annotations

import os
import resource
import secrets
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from soak.watching_client import Broken, ask

from thinkwell.journal import SqliteJournal
from thinkwell.journal.redis import RedisJournal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.journal import Journal

__all__ = ("PROC", "ServerProcess", "allow_files", "free_port")

TESTS: Final = Path(__file__).parents[1]

PROC: Final = Path("/proc")
"""Where Linux tells of processes."""

PATIENCE: Final = 30.0
"""Seconds after which a server does not come up, or does not end."""


def allow_files(most: int) -> None:
    """Let this process, and those that it starts, have so many files and connections open, if that may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < most:
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def free_port() -> int:
    """Return a port on the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


TOKEN: Final = secrets.token_hex(16)
"""What all servers are asked with, as runs belong to whoever has started them."""

CONFIG: Final = """\
journal = "{journal}"

[agents.playing]
command = "{python} -m soak.playing_agent"

[limits]
max_runs = {most}
max_runs_per_caller = {most}
max_watchers = {most}
max_watchers_per_caller = {most}
"""


class ServerProcess:
    """``thinkwell serve`` on the loopback, with an agent that plays what it is asked for.

    Args:
        folder: Where it keeps its journal and what it says.
        most: How many runs and watchers there may be.
        redis: Address of a Redis that has the journal instead, and shares it with other servers.
    """

    def __init__(self, folder: Path, most: int, *, redis: str = "") -> None:
        self.own_port = free_port()
        """Where it listens."""
        self.port = self.own_port
        """Where it can be asked."""
        self.life = 0
        """How often it was started; 0 while it does not answer."""
        self.said = folder / "server.log"
        self.peak = 0
        """The most memory that one of its processes had, in bytes."""
        self.left: list[int] = []
        """Processes that outlived the server that had started them."""
        self._redis = redis
        self._file = folder / "runs.sqlite"
        self._starts = 0
        self._config = folder / "serve.toml"
        where = "redis" if redis else self._file.name
        config = CONFIG.format(journal=where, python=shlex.quote(sys.executable), most=most)
        self._config.write_text(config, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What it has to be told."""
        return {"Authorization": f"Bearer {TOKEN}"}

    def journal(self) -> Journal:
        """Its journal, to be looked at when it has ended."""
        return RedisJournal(self._redis) if self._redis else SqliteJournal(self._file)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            RuntimeError: It does not.
        """
        command = [sys.executable, "-m", "thinkwell", "serve", "--config", str(self._config)]
        found = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": found, "THINKWELL_SERVE_TOKEN": TOKEN}
        environment["THINKWELL_SERVE_REDIS"] = self._redis
        with self.said.open("ab") as said:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it is to outlive its task, and to be killed
                [*command, "--port", str(self.own_port)],
                cwd=TESTS,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        with anyio.move_on_after(PATIENCE):
            while self._process.poll() is None:
                try:
                    status, _ = await ask(self.port, "GET", "/healthz")
                except Broken:
                    await anyio.sleep(0.02)
                    continue
                if status == 200:
                    self._starts += 1
                    self.life = self._starts
                    return
        raise RuntimeError(f"the server does not come up:\n{self.tail()}")

    def strike(self) -> None:
        """Kill it, as a power cut does."""
        self.life = 0
        assert self._process is not None
        self._process.kill()

    async def wait_killed(self, children: Sequence[int]) -> None:
        """Wait until the system has noticed that it was killed, and what it had started too."""
        await self.wait()
        await self._wait_for(children)

    async def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        self.life = 0
        children = self.children()
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        status = await self.wait()
        await self._wait_for(children)
        return status

    async def wait(self) -> int:
        """Wait until it has ended, and return its exit status."""
        process = self._process
        assert process is not None
        status: int = await anyio.to_thread.run_sync(process.wait, PATIENCE)
        return status

    def close(self) -> None:
        """End it in any case."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    async def _wait_for(self, children: Sequence[int]) -> None:
        """An agent learns from the end of its input that its server has gone."""
        with anyio.move_on_after(5):
            while any(map(_is_there, children)):  # noqa: ASYNC110 - nobody tells of another's children
                await anyio.sleep(0.01)
        self.left += [child for child in children if _is_there(child)]

    def tail(self) -> str:
        """What it said last."""
        return "\n".join(self.said.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])

    # What the system knows of it; nothing where that is not Linux

    def children(self) -> list[int]:
        """The processes that it has started."""
        found: list[int] = []
        for stat in PROC.glob("[0-9]*/stat"):
            try:
                _, _, rest = stat.read_text(encoding="utf-8", errors="replace").rpartition(") ")
            except OSError:  # it has ended meanwhile
                continue
            if int(rest.split()[1]) == self.pid:
                found.append(int(stat.parent.name))
        return found

    def look(self) -> None:
        """Look how much memory it has."""
        try:
            status = (PROC / str(self.pid) / "status").read_text(encoding="ascii")
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM:"):  # the most since it began
                self.peak = max(self.peak, int(line.split()[1]) * 1024)


def _is_there(pid: int) -> bool:
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(") ")[2][0] != "Z"  # it may belong to nobody who waits for it
