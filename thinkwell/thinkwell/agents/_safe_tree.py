"""A new folder that is filled from an untrusted archive. All calls block: use a worker thread.

It is safe because the folder is new and empty. While files are written it has no links, so no path can lead
out of it. Links are made last, and each must point into the folder. Only regular files, folders and links are
made, with our own permissions.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import anyio.from_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

CHUNK: Final = 256 * 1024
"""Bytes read at once."""

MAX_DEPTH: Final = 100
"""Most levels of folders: removing them recurses once for each."""

_WINDOWS_DEVICE: Final = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?")


class Refused(Exception):  # noqa: N818 - says what happened
    """Something in an archive must not be unpacked."""


def relative_parts(name: str, *, windows: bool = os.name == "nt") -> tuple[str, ...]:
    r"""Return the parts of a path that must stay within its folder; none for ``./``.

    A backslash is a separator on every system: some zips are written so.

    Args:
        name: A path from an archive.
        windows: Whether it is written on Windows, where more names have a special meaning.

    Raises:
        Refused: It would be outside of its folder, or is not a valid name.
    """
    shown = ascii(name[:200])
    if not name.isprintable():
        raise Refused(f"the name {shown} has unprintable characters")
    separated = name.replace("\\", "/")
    if separated.startswith("/") or re.match("[A-Za-z]:", separated):
        raise Refused(f"the path {shown} is absolute")
    parts = tuple(part for part in separated.split("/") if part not in ("", "."))
    if len(parts) > MAX_DEPTH:
        raise Refused(f"the path {shown} is more than {MAX_DEPTH} folders deep")
    for part in parts:
        if not part.strip(" ."):  # Windows takes ".. " for ".."
            raise Refused(f"the path {shown} points out of the folder")
        if windows and (set(part) & set('<>:"|?*') or part[-1] in " ." or _WINDOWS_DEVICE.fullmatch(part)):
            raise Refused(f"the path {shown} is invalid on Windows")
    return parts


class Room:
    """The bytes and members that may still be written."""

    def __init__(self, max_bytes: int, max_members: int) -> None:
        self._max_bytes = max_bytes
        self._max_members = max_members
        self._bytes = 0
        self._members = 0

    def take(self, count: int) -> None:
        anyio.from_thread.check_cancelled()
        self._bytes += count
        if self._bytes > self._max_bytes:
            raise Refused(f"more than {self._max_bytes} bytes would come out of it")

    def add_member(self) -> None:
        anyio.from_thread.check_cancelled()
        self._members += 1
        if self._members > self._max_members:
            raise Refused(f"there are more than {self._max_members} files and folders in it")


class SafeTree:
    """A new folder that is being filled."""

    def __init__(self, folder: Path, room: Room) -> None:
        self._folder = folder
        self._room = room
        self._links: list[tuple[tuple[str, ...], str]] = []

    def add_folder(self, parts: Sequence[str]) -> None:
        try:
            self._folder.joinpath(*parts).mkdir(mode=0o755, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as exc:
            raise _twice(parts) from exc

    def add_file(
        self,
        parts: Sequence[str],
        read: Callable[[int], bytes],
        *,
        executable: bool = False,
    ) -> None:
        """Write a file."""
        if not parts:
            raise Refused("a file in it has no name")
        self.add_folder(parts[:-1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(self._folder.joinpath(*parts), flags, 0o755 if executable else 0o644)
        except (FileExistsError, NotADirectoryError) as exc:
            raise _twice(parts) from exc
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            while data := read(CHUNK):
                self._room.take(len(data))
                file.write(data)

    def add_copy(self, parts: Sequence[str], of: Sequence[str]) -> None:
        """Copy a file, for a hard link. The link can only refer to an earlier file."""
        source = self._folder.joinpath(*of)
        if not source.is_file():
            raise Refused(f"a link in it points to {'/'.join(of)!a}, which is not a file in it")
        with source.open("rb") as file:
            self.add_file(parts, file.read, executable=bool(source.stat().st_mode & 0o111))

    def add_link(self, parts: Sequence[str], target: str) -> None:
        """Remember a symbolic link until all files are written."""
        if not parts:
            raise Refused("a link in it has no name")
        shown = ascii(target[:200])
        if not target or len(target) > 4096 or not target.isprintable() or "\\" in target:
            raise Refused(f"a link in it points to {shown}, which is not a path")
        if target.startswith("/") or re.match("[A-Za-z]:", target):
            raise Refused(f"a link in it points to {shown}, out of the folder")
        self._links.append((tuple(parts), target))

    def make_links(self) -> None:
        """Make the links, and check that each stays in the folder when all are followed."""
        # All folders first, so that none of them is a link and no link is made behind another.
        for parts, _ in self._links:
            self.add_folder(parts[:-1])
        for parts, target in self._links:
            try:
                self._folder.joinpath(*parts).symlink_to(target)
            except FileExistsError as exc:
                raise _twice(parts) from exc
        root = os.path.realpath(self._folder)
        for parts, target in self._links:
            # Not Path.resolve, which raises for links in a circle.
            if os.path.commonpath([root, os.path.realpath(self._folder.joinpath(*parts))]) != root:
                raise Refused(f"a link in it points to {target[:200]!a}, out of the folder")


def _twice(parts: Sequence[str]) -> Refused:
    return Refused(f"{'/'.join(parts)!a} is in it twice, or as a file and a folder")
