"""Preparing an agent for its start: downloading its package, or unpacking its archive."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct

from thinkwell.agents._choosing import environment
from thinkwell.agents._profile import LATEST, Npx, Program, Uvx
from thinkwell.errors import AgentNotFound, AgentStartFailed, ThinkwellError, _how_it_ended
from thinkwell_acp import ProcessExited, ProgramNotFound, ProgramNotStarted, stdio_transport
from thinkwell_acp.stdio import find_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from thinkwell.agents._profile import AgentProfile, Binary

CHECK_TIMEOUT: Final = 30.0
"""Seconds to find out whether a package is installed. uv takes a tenth of a second, and downloads nothing."""

NODE: Final = "it comes with Node.js, which nodejs.org and the packages of most systems have"
UV: Final = "it comes with uv"
UV_INSTALL: Final = "pip install uv"


class _Ended(Struct, frozen=True, kw_only=True):
    """The end of a program that downloads a package."""

    exit_code: int | None
    stderr_tail: str
    in_time: bool


class _WouldInstall(Exception):  # noqa: N818 - says what would happen
    """An agent is missing, and could be downloaded."""


def _refuse(what: str) -> None:
    raise _WouldInstall(what)


@dataclass(frozen=True)
class Preparing:
    """Prepares an agent for its start.

    Args:
        profile: The agent.
        env: The agent's environment, also used for the download.
        cwd: The folder in which it will be started.
        installing: Called with what is installed, before a download. By default, nothing is downloaded.
    """

    _profile: AgentProfile
    _env: Mapping[str, str]
    _cwd: str
    _installing: Callable[[str], None] = _refuse

    async def prepare(self) -> tuple[str, ...]:
        """Install the agent if it is missing, and return the command that starts it.

        Raises:
            AgentNotFound: Its program, or the one that downloads it, is missing.
            AgentStartFailed: The installation failed.
        """
        self.find()
        match self._profile.launch:
            case Program() as program:
                return program.command
            case Npx() as npx:
                nothing = _fetching(npx)
                if npx.version == LATEST or not _npx_has(npx, self._env):
                    await self._install(f"npm package {npx.spec}", nothing)
                return npx.command
            case Uvx() as uvx:
                nothing = _fetching(uvx)
                if uvx.version != LATEST and await self._uvx_has(uvx):
                    # It would ask the index again, and fail to start an installed agent when the index does
                    # not answer.
                    return ("uvx", "--offline", *uvx.command[1:])
                await self._install(f"PyPI package {uvx.spec}", nothing)
                return uvx.command
            case binary:
                return await self._unpack(binary)

    def find(self) -> None:
        """Check that the agent's program, or the one that downloads it, is installed. Nothing is started.

        Raises:
            AgentNotFound: It is missing, or the folder to start it in is.
            AgentStartFailed: It is not a program.
        """
        match self._profile.launch:
            case Program() as program:
                if program.install.startswith(("https://", "http://")):
                    self._find(program.command, f"see {program.install}")
                else:
                    self._find(program.command, next_command=program.install)
            case Npx() as npx:
                self._find(_fetching(npx), NODE)
            case Uvx() as uvx:
                self._find(_fetching(uvx), UV, next_command=UV_INSTALL)
            case _:
                pass  # it is downloaded

    def _find(self, command: Sequence[str], hint: str = "", *, next_command: str = "") -> None:
        """Check that a command's program is installed.

        Raises:
            AgentNotFound: It is missing, or the folder to start it in is.
            AgentStartFailed: It is not a program.
        """
        profile = self._profile
        try:
            find_program(command, self._env, self._cwd)
        except ProgramNotStarted as exc:
            raise self._not_started(exc, command, "launching") from exc
        except ProgramNotFound as exc:
            website = f"install it; see {profile.website}" if profile.website else ""
            reason = f"{exc.reason}; {hint or website or 'install it, or give its whole path'}"
            raise AgentNotFound(profile.name, reason, next_command=next_command) from exc

    def _not_started(self, exc: ProgramNotStarted, command: Sequence[str], phase: str) -> AgentStartFailed:
        profile = self._profile
        return AgentStartFailed(
            profile.name, exc.reason, command=command, phase=phase, version=profile.version
        )

    async def _uvx_has(self, uvx: Uvx) -> bool:
        command = ("uvx", "--offline", "--from", uvx.spec, "python", "-c", "")
        return (await self._ended(command, CHECK_TIMEOUT, "launching")).exit_code == 0

    async def _install(self, what: str, command: Sequence[str]) -> None:
        self._installing(what)
        profile = self._profile
        ended = await self._ended(command, profile.cold_start, "installing")
        if ended.exit_code == 0:
            return
        if ended.in_time:
            reason = f"the {what} could not be installed: {command[0]} {_how_it_ended(ended.exit_code)}"
        else:
            reason = self._took_too_long(what)
        raise AgentStartFailed(
            profile.name,
            reason,
            stderr_tail=ended.stderr_tail,
            exit_code=ended.exit_code,
            command=command,
            phase="installing",
            version=profile.version,
            next_command=shlex.join(command),
        )

    def _took_too_long(self, what: str) -> str:
        limit = f"{self._profile.cold_start:g} seconds, cold_start of its profile"
        return f"the {what} was not installed in time ({limit})"

    async def _ended(self, command: Sequence[str], seconds: float, phase: str) -> _Ended:
        """Run a command until it ends or its time is over. No process is left, even after cancellation.

        Raises:
            AgentStartFailed: The operating system refuses to run it.
        """
        try:
            async with stdio_transport(command, env=self._env, cwd=self._cwd, exit_grace=0) as process:
                with anyio.move_on_after(seconds):
                    while True:
                        try:
                            await process.receive()  # what it prints on standard output is dropped
                        except ProcessExited as exc:
                            return _Ended(exit_code=exc.exit_code, stderr_tail=exc.stderr_tail, in_time=True)
                return _Ended(exit_code=None, stderr_tail=process.stderr_tail, in_time=False)
        except ProgramNotStarted as exc:
            raise self._not_started(exc, command, phase) from exc

    async def _unpack(self, binary: Binary) -> tuple[str, ...]:
        from thinkwell.agents._binaries import installed_binary  # imports unpacking and downloads

        profile = self._profile
        path = self._env.get("PATH")
        try:
            with anyio.fail_after(profile.cold_start):
                return await installed_binary(profile.name, binary, starting=self._installing, path=path)
        except TimeoutError as exc:
            raise AgentStartFailed(
                profile.name, self._took_too_long("program"), phase="installing", version=profile.version
            ) from exc


def find_starter(profile: AgentProfile, cwd: Path) -> None:
    """Check that an agent's program, or the one that downloads it, is installed. Nothing is started.

    Args:
        profile: The agent.
        cwd: The folder in which it will be started.

    Raises:
        AgentNotFound: It is missing, or the folder is.
        AgentStartFailed: It is not a program.
    """
    Preparing(profile, environment(profile, None), str(cwd)).find()


async def is_installed(profile: AgentProfile, cwd: str) -> bool:
    """Return whether an agent can be started in a folder without a download. Nothing is downloaded."""
    try:
        await Preparing(profile, environment(profile, None), cwd).prepare()
    except (_WouldInstall, ThinkwellError):
        return False
    return True


def _fetching(package: Npx | Uvx) -> tuple[str, ...]:
    """Return a command that downloads a package, and does nothing else."""
    if isinstance(package, Npx):
        # npx installs a missing package before it runs anything.
        return ("npx", "--yes", f"--package={package.spec}", "--", "node", "-e", "0")
    return ("uvx", "--from", package.spec, "python", "-c", "")


def _npx_has(npx: Npx, env: Mapping[str, str]) -> bool:
    """Return whether npx starts a package without downloading it.

    npx keeps each package under a hash of the request (libnpmexec). If that changes, or the cache is
    elsewhere, packages are requested twice, which takes half a second and does no harm.
    """
    from hashlib import sha512  # loads OpenSSL, which `import thinkwell` avoids

    folder = _npm_cache(env) / "_npx" / sha512(npx.spec.encode()).hexdigest()[:16]
    return (folder / "node_modules" / npx.package / "package.json").is_file()


def _npm_cache(env: Mapping[str, str]) -> Path:
    for name, value in env.items():
        if name.lower() == "npm_config_cache" and value:
            return Path(value)
    if os.name == "nt":  # pragma: no cover - the tests run on POSIX
        return Path(env.get("LOCALAPPDATA", "")) / "npm-cache"
    return Path(env.get("HOME") or Path.home()) / ".npm"
