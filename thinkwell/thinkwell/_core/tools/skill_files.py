"""The files of a skill: below its folder, regular, of limited size."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE_LIMIT: Final = 1024 * 1024
"""Most bytes of a file that is read: more is no use in the context of a model."""

LIST_LIMIT: Final = 500
"""Most files that are listed."""

_DRIVE: Final = re.compile(r"[A-Za-z]:")


class SkillFileError(Exception):
    """A file cannot be read; the message is for the caller."""


class FileEntry(NamedTuple):
    """A listed file."""

    path: str
    """Relative to the skill, with ``/`` between its parts."""
    size: int
    """In bytes."""


class SkillFiles(Protocol):
    """The files of a skill."""

    def list(self) -> tuple[FileEntry, ...]:
        """Return the files, at most `LIST_LIMIT`."""
        ...

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            SkillFileError: The file is missing, outside the skill, or too large.
        """
        ...


def path_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path that stays below its start.

    Raises:
        SkillFileError: It points out of it.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if "\\" in path or "\0" in path or not _has_utf8(path):
        raise SkillFileError(f"{path!r:.200} is not a path of a file; put / between folders")
    if path.startswith("/") or ".." in parts or _DRIVE.match(path):
        raise SkillFileError(f"{path!r:.200} points out of the skill; give a path below its folder")
    if not parts:
        raise SkillFileError(f"{path!r} names no file")
    return parts


class VirtualFiles:
    """Files in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = {"/".join(path_parts(path)): data for path, data in files.items()}

    def list(self) -> tuple[FileEntry, ...]:
        """Return the files."""
        entries = (FileEntry(path, len(data)) for path, data in sorted(self._files.items()))
        return tuple(islice(entries, LIST_LIMIT))

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        data = self._files.get("/".join(path_parts(path)))
        if data is None:
            raise SkillFileError(f"there is no file {path!r:.200}")
        _check_size(path, len(data))
        return data


class FolderFiles:
    """The files below a folder. Symbolic links are never followed, not even one created in the meantime."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._identity = _identity(folder.stat())

    def list(self) -> tuple[FileEntry, ...]:
        """Return the files, without hidden ones."""
        return tuple(sorted(islice(self._walk(), LIST_LIMIT)))

    def _walk(self) -> Iterator[FileEntry]:
        for base, folders, names in os.walk(self._folder):
            folders[:] = sorted(filter(_is_shown, folders))
            for name in sorted(filter(_is_shown, names)):
                path = Path(base, name)
                try:
                    info = path.lstat()
                except OSError:  # pragma: no cover - it has gone since it was found
                    continue
                if stat.S_ISREG(info.st_mode):
                    yield FileEntry(path.relative_to(self._folder).as_posix(), info.st_size)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        parts = path_parts(path)
        try:
            descriptor = _open_below(self._folder, self._identity, parts)
        except OSError as exc:
            raise SkillFileError(_why(path, exc)) from None
        try:
            info = os.fstat(descriptor)
            _check_regular(path, info.st_mode)
            _check_size(path, info.st_size)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(FILE_LIMIT + 1)
        finally:
            os.close(descriptor)
        _check_size(path, len(data))  # it may have grown
        return data


def _is_shown(name: str) -> bool:
    """Return whether a name should be listed, and can be."""
    return not name.startswith(".") and name != "__pycache__" and _has_utf8(name)


def _has_utf8(text: str) -> bool:
    """Return whether a text has a UTF-8 form: file names may have none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_regular(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise SkillFileError(f"{path!r:.200} is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise SkillFileError(f"{path!r:.200} is not a regular file")


def _check_size(path: str, size: int) -> None:
    if size > FILE_LIMIT:
        raise SkillFileError(f"{path!r:.200} is too large: {size:,} bytes, where {FILE_LIMIT:,} can be read")


def _identity(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _check_identity(info: os.stat_result, identity: tuple[int, int]) -> None:
    if _identity(info) != identity:
        raise SkillFileError("the skill's folder is no longer the one that the skill was loaded from")


def _why(path: str, exc: OSError) -> str:
    if exc.errno == errno.ENOENT:
        return f"there is no file {path!r:.200}"
    if exc.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        # Systems differ in which of these a link that is not followed raises.
        return f"{path!r:.200} leads through a symbolic link, or through a file; links are not followed"
    return f"{path!r:.200} cannot be read: {exc.strerror}"


if sys.platform == "win32":

    def _open_below(root: Path, identity: tuple[int, int], parts: tuple[str, ...]) -> int:
        """Open a file below a folder, checking before and after: there is no better way here."""
        _check_identity(root.stat(), identity)
        path, info = root, root.lstat()
        for part in parts:
            if ":" in part or part != part.rstrip(". "):  # streams, and names that mean another one
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            path /= part
            info = path.lstat()
            if info.st_file_attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if stat.S_ISDIR(info.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        descriptor = os.open(path, os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT)
        if _identity(os.fstat(descriptor)) != _identity(info) or not path.resolve().is_relative_to(root):
            os.close(descriptor)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return descriptor

else:
    _FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    _FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    """Without waiting for a writer, if it is a pipe."""

    def _open_below(root: Path, identity: tuple[int, int], parts: tuple[str, ...]) -> int:
        """Open a file below a folder, part by part, so that nothing can be replaced on the way."""
        folder = os.open(root, _FOLDER)
        try:
            _check_identity(os.fstat(folder), identity)
            for part in parts[:-1]:
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            return os.open(parts[-1], _FILE, dir_fd=folder)
        finally:
            os.close(folder)
