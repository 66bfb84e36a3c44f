"""The program that starts or fetches an agent: its place on this machine, and its version."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._core.diagnosis import shown
from thinkwell.agents import Binary, Npx, Uvx

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.agents import AgentProfile

VERSION_TIMEOUT: Final = 10.0
"""Seconds for a program to print its version. npm takes half a second."""


def program_of(profile: AgentProfile, env: Mapping[str, str]) -> str | None:
    """Return the path of the program that starts or fetches an agent; ``None`` if it is missing."""
    if isinstance(profile.launch, Binary):
        return None
    path = shutil.which(profile.command[0], path=env.get("PATH"))
    return None if path is None else os.path.abspath(path)  # noqa: PTH100 - links stay as they are


async def versions_of(profile: AgentProfile, env: Mapping[str, str], cwd: str) -> str:
    """Return the versions of the programs that fetch and run an agent, in words."""
    asked: tuple[str, ...] = ()
    if isinstance(profile.launch, Npx):
        asked = ("node", "npm")
    elif isinstance(profile.launch, Uvx):
        asked = ("uv",)
    return ", ".join([await _version(name, env, cwd) for name in asked])


async def _version(program: str, env: Mapping[str, str], cwd: str) -> str:
    path = shutil.which(program, path=env.get("PATH"))
    if path is None:
        return f"no {program}"
    with anyio.move_on_after(VERSION_TIMEOUT):
        try:
            ran = await anyio.run_process(
                [path, "--version"], stdin=subprocess.DEVNULL, check=False, env=env, cwd=cwd
            )
        except OSError as exc:
            return f"{program} cannot be started ({exc.strerror})"
        said = ran.stdout.decode("utf-8", "replace").strip().partition("\n")[0]
        if ran.returncode == 0 and said:
            return shown(said if said.startswith(program) else f"{program} {said}")
        return f"{program} does not say its version"
    return f"{program} does not answer"
