"""A server of PostgreSQL for tests: a real one, with a folder and a socket of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from debian_packages import find_program

if TYPE_CHECKING:
    from collections.abc import Generator

    from debian_packages import Program

__all__ = ("PostgresServer", "running_postgres")

PATIENCE: Final = 60.0
"""Seconds for a server to start or to end."""

IS_ROOT: Final = sys.platform != "win32" and os.getuid() == 0

USER: Final = "nobody"
"""Who runs it where the tests are root's: PostgreSQL refuses to be."""


class PostgresServer:
    """A server that can be stopped and started again.

    Args:
        program: One of PostgreSQL's programs, which are in one folder.
        folder: Its own. The path has to be short, as it is part of a socket's name.
    """

    def __init__(self, program: Program, folder: Path) -> None:
        self._programs = Path(program.path).resolve().parent
        self._env = {**program.env, "LC_ALL": "C"}
        self._folder = folder
        self._data = folder / "data"
        self._databases = 0
        self._run("initdb", "--username=tests", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = f"-k {self._folder} -c listen_addresses='' -c fsync=off"
        log = str(self._folder / "log")
        self._run("pg_ctl", "--wait", "--silent", "--options", settings, "--log", log, "start")

    def stop(self) -> None:
        """Break it off, as a machine that dies does."""
        self._run("pg_ctl", "--wait", "--silent", "--mode=immediate", "stop")

    def log(self) -> str:
        """Return what it has logged."""
        return (self._folder / "log").read_text("utf-8")

    def database(self) -> str:
        """Make an empty database, and return its URL."""
        self._databases += 1
        name = f"trials{self._databases}"
        self._run("createdb", "-h", str(self._folder), "-U", "tests", name, data=False)
        return f"postgresql://tests@/{name}?host={self._folder}"

    def ask(self, url: str, statement: str) -> str:
        """Have it do something in a database, and return what it says."""
        return self._run(
            "psql", "--no-psqlrc", "-At", "-v", "ON_ERROR_STOP=1", "-c", statement, url, data=False
        )

    def _run(self, program: str, *words: str, data: bool = True) -> str:
        command = [str(self._programs / program), *words]
        env = {**self._env, **({"PGDATA": str(self._data)} if data else {})}
        if IS_ROOT:
            command = ["setpriv", f"--reuid={USER}", "--regid=nogroup", "--clear-groups", *command]
        done = subprocess.run(
            command,
            env=env,
            cwd=self._folder,
            text=True,
            check=False,
            timeout=PATIENCE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()


@contextmanager
def running_postgres() -> Generator[PostgresServer]:
    """Run a server. Skips the test where PostgreSQL is missing, and not to be had."""
    program = find_program("initdb")
    if IS_ROOT and not all(folder.stat().st_mode & 1 for folder in Path(program.path).parents):
        pytest.skip(f"PostgreSQL does not run as root, and {USER} cannot use {program.path}")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # its socket needs a short path
    try:
        if IS_ROOT:
            shutil.chown(folder, USER)
        server = PostgresServer(program, folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
