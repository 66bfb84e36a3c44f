"""The command `thinkwell` as a user starts it: the time to its first output, and to its end.

It runs in its own terminal, a pty, in which the measured agent is the only one.
"""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
import tempfile
import termios
from time import perf_counter

from benchmarks.clients import _common as common

SIZE = (40, 120)
"""Rows and columns of the terminal."""

UPDATES = 10
"""Updates of the run."""


def thinkwell(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "thinkwell", *arguments]


def imports(*packages: str) -> list[str]:
    return [sys.executable, "-c", f"import {', '.join(packages)}; print('done')"]


AGENT = shlex.join(common.Order(action="stream", count=UPDATES).command)

COMMANDS = {
    "import sys": imports("sys"),
    "import thinkwell": imports("thinkwell"),
    "import typer, rich": imports("typer", "rich"),
    "import thinkwell, typer, rich": imports("thinkwell", "typer", "rich"),
    "thinkwell --help": thinkwell("--help"),
    "thinkwell version": thinkwell("version"),
    "thinkwell run": thinkwell("run", "--command", AGENT, "go"),
    "thinkwell run --style lines": thinkwell("run", "--style", "lines", "--command", AGENT, "go"),
    "thinkwell run --quiet": thinkwell("run", "--quiet", "--command", AGENT, "go"),
}
"""The measured programs. The first ones are what a Python program cannot do without."""


def environment() -> dict[str, str]:
    """Return the environment of a terminal that can draw."""
    unwanted = {"NO_COLOR", "CI", "GITHUB_ACTIONS", common.STARTED}
    kept = {key: value for key, value in os.environ.items() if key not in unwanted}
    return {**kept, "TERM": "xterm-256color"}


def measure(command: list[str]) -> common.Figures:
    """Start a command in a terminal and read its output to the end.

    Raises:
        SystemExit: The command failed.
    """
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, SIZE)
    said: list[bytes] = []
    first = 0.0
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # not in the project's own: its folders would be looked into
        begun = perf_counter()
        started = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment()
        )
        os.close(slave)
        while data := read(master):
            first = first or perf_counter()
            said.append(data)
        code = started.wait()
        last = perf_counter()
    os.close(master)
    if code or not first:
        raise SystemExit(f"exit code {code}: {b''.join(said).decode(errors='replace')}")
    return {"first_seconds": first - begun, "last_seconds": last - begun, "bytes": sum(map(len, said))}


def read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # what Linux says when no process has the terminal open any more
        return b""


if __name__ == "__main__":
    common.report(measure(COMMANDS[sys.argv[1]]))
