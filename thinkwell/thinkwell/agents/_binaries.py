"""Agents that are downloaded as programs. Each version is downloaded and unpacked once."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from thinkwell.agents._archives import ArchiveError, extract
from thinkwell.agents._download import DownloadError, download
from thinkwell.agents._folders import cache_folder
from thinkwell.agents._registry import platform_name
from thinkwell.agents._safe_tree import Refused, relative_parts
from thinkwell.errors import AgentNotFound, AgentStartFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.agents._profile import Archive, Binary

MAX_ARCHIVE: Final = 1024**3
"""Most bytes of an archive."""

ABANDONED: Final = 24 * 3600.0
"""Seconds after which the remains of a killed installation are removed."""


class _NotThere(Exception):  # noqa: N818 - says what is wrong
    """An archive does not contain the program."""


async def installed_binary(
    name: str, binary: Binary, *, starting: Callable[[str], object], path: str | None
) -> tuple[str, ...]:
    """Download and unpack an agent for this machine, unless it is installed; return its command.

    Every version has its own folder in the user's cache folder. Processes that install the same version at
    the same time do not disturb each other: one of them wins.

    Args:
        name: The agent's name.
        binary: Its archives.
        starting: Called with what is installed, before a download.
        path: Folders to search for an interpreter; ``None`` for those of ``PATH``.

    Raises:
        AgentNotFound: There is no archive for this machine, the archive does not contain the program, or the
            interpreter is missing.
        AgentStartFailed: The download or the unpacking failed.
    """
    archive = binary.archives.get(platform_name())
    if archive is None:
        known = ", ".join(sorted(binary.archives)) or "nothing"
        raise AgentNotFound(name, f"it has no program for {platform_name()} (it has: {known})")
    installation = _Installation(name, binary.version, archive, path)
    if not await anyio.to_thread.run_sync(installation.folder.is_dir):
        starting(f"{name} {binary.version} from {_shown(archive.archive)}")
        await installation.install()
    try:
        return await anyio.to_thread.run_sync(installation.command_in, installation.folder)
    except _NotThere as exc:
        again = f"; or remove {installation.folder} to download it again"
        raise AgentNotFound(name, f"{exc}{again}") from exc


class _Installation:
    """A version of an agent for this machine."""

    def __init__(self, name: str, version: str, archive: Archive, path: str | None) -> None:
        self._name = name
        self._version = version
        self._archive = archive
        self._path = path
        asked = "\n".join((archive.archive, archive.cmd, archive.sha256 or ""))
        digest = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self.folder = cache_folder() / "agents" / _file_name(name) / f"{_file_name(version)}-{digest}"

    async def install(self) -> None:
        """Create its folder."""
        try:
            temporary = await anyio.to_thread.run_sync(self._prepare)
        except OSError as exc:
            raise self._failure(f"{self.folder.parent} cannot be created: {exc.strerror}") from exc
        try:
            # The suffix in the address tells whether an interpreter runs the file.
            file = temporary / _file_name(
                urlsplit(self._archive.archive).path.rpartition("/")[2] or "program"
            )
            await download(self._archive.archive, file, limit=MAX_ARCHIVE, sha256=self._archive.sha256)
            await extract(file, self.folder, cmd=self._archive.cmd, check=self.command_in)
        except (DownloadError, ArchiveError) as exc:
            reason = str(exc) if isinstance(exc, DownloadError) else self._of_archive(exc.reason)
            raise self._failure(reason) from exc
        except _NotThere as exc:
            raise AgentNotFound(self._name, str(exc)) from exc
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(lambda: shutil.rmtree(temporary, ignore_errors=True))

    def command_in(self, folder: Path) -> tuple[str, ...]:
        """Return the command that starts it, and make the program executable.

        Raises:
            _NotThere: The folder does not contain it.
        """
        cmd, args = self._archive.cmd, self._archive.args
        program = _find(folder, cmd)
        if program is not None:
            if not program.stat().st_mode & 0o100:
                program.chmod(0o755)
            return (str(program), *args)
        if re.search(r"[/\\]", cmd):
            raise _NotThere(self._of_archive(f"it has no file {_shown(cmd)}. Try another version"))
        interpreter = shutil.which(cmd, path=self._path)
        if interpreter is None:
            reason = f"it has no program {_shown(cmd)}, and none is on the PATH. Install {_shown(cmd)}"
            raise _NotThere(self._of_archive(reason))
        return (interpreter, *_found_args(folder, args))

    def _prepare(self) -> Path:
        """Return a new folder for the download, and remove folders of killed installations."""
        parent = self.folder.parent
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(".*"):
            with suppress(OSError):  # another process has removed it
                if left.stat().st_mtime < time.time() - ABANDONED:
                    shutil.rmtree(left, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=".download-", dir=parent))

    def _of_archive(self, reason: str) -> str:
        return f"the archive {_shown(self._archive.archive)} cannot be used: {reason}"

    def _failure(self, reason: str) -> AgentStartFailed:
        return AgentStartFailed(self._name, reason, phase="installing", version=self._version)


def _find(folder: Path, path: str) -> Path | None:
    """Return a file of a folder, or of its only subfolder; never one outside."""
    try:
        parts = relative_parts(path)
    except Refused:
        return None
    root = folder.resolve()
    inside = list(folder.iterdir())
    for base in [folder, *(inside if len(inside) == 1 else [])]:
        found = base.joinpath(*parts)
        if found.is_file() and found.resolve().is_relative_to(root):
            return found
    return None


def _found_args(folder: Path, args: tuple[str, ...]) -> tuple[str, ...]:
    """Return an interpreter's arguments, with absolute paths of files in the folder.

    The agent does not run in the archive's folder.
    """
    script = next((index for index, arg in enumerate(args) if not arg.startswith("-")), None)
    return tuple(
        str(_find(folder, arg) or arg) if index == script or arg.startswith("./") else arg
        for index, arg in enumerate(args)
    )


def _file_name(text: str) -> str:
    """Return a valid file name that does not begin with a dot."""
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", text)[-100:]
    return re.sub(r"^\.", "_", name)


def _shown(text: str) -> str:
    return text if text.isprintable() and len(text) <= 500 else ascii(text[:500])
