"""A new folder that is filled as an archive says which is not trusted. All of it blocks: use a worker thread.

What keeps it safe: the folder is new and empty. While files are written there is no link in it, so no path
can lead out; links come last, and then each must lead to within. Only regular files, folders and links are
made, with rights of ours.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import anyio.from_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ("CHUNK", "Refused", "Room", "SafeTree", "relative_parts")

CHUNK: Final = 256 * 1024
"""Bytes read at once."""

MAX_DEPTH: Final = 100
"""How deep folders may lie in each other: what removes them calls itself for each."""

_WINDOWS_DEVICE: Final = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?")


class Refused(Exception):  # noqa: N818 - says what happened
    """Something in an archive is not unpacked."""


def relative_parts(name: str, *, windows: bool = os.name == "nt") -> tuple[str, ...]:
    r"""Return the parts of a path that must stay within its folder. None are left of ``./``.

    A backslash separates as a slash does, on every system: zips have been written so.

    Args:
        name: What an archive says.
        windows: Whether Windows is to write it, which takes more names for something else.

    Raises:
        Refused: It would be outside of its folder, or cannot be a name.
    """
    shown = ascii(name[:200])
    if not name.isprintable():
        raise Refused(f"the name {shown} has characters that cannot be shown")
    separated = name.replace("\\", "/")
    if separated.startswith("/") or re.match("[A-Za-z]:", separated):
        raise Refused(f"the path {shown} is absolute")
    parts = tuple(part for part in separated.split("/") if part not in ("", "."))
    if len(parts) > MAX_DEPTH:
        raise Refused(f"the path {shown} is more than {MAX_DEPTH} folders deep")
    for part in parts:
        if not part.strip(" ."):  # Windows takes ".. " for ".."
            raise Refused(f"the path {shown} leads out of the folder")
        if windows and (set(part) & set('<>:"|?*') or part[-1] in " ." or _WINDOWS_DEVICE.fullmatch(part)):
            raise Refused(f"the path {shown} cannot be one on Windows")
    return parts


class Room:
    """How much may still be written."""

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
    """A new folder that is filled."""

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
        """Write a file once more, for a hard link: only what has come before can be meant."""
        source = self._folder.joinpath(*of)
        if not source.is_file():
            raise Refused(f"a link in it leads to {'/'.join(of)!a}, which is no file in it")
        with source.open("rb") as file:
            self.add_file(parts, file.read, executable=bool(source.stat().st_mode & 0o111))

    def add_link(self, parts: Sequence[str], target: str) -> None:
        """Remember a symbolic link, until there are no files to be written any more."""
        if not parts:
            raise Refused("a link in it has no name")
        shown = ascii(target[:200])
        if not target or len(target) > 4096 or not target.isprintable() or "\\" in target:
            raise Refused(f"a link in it leads to {shown}, which cannot be a path")
        if target.startswith("/") or re.match("[A-Za-z]:", target):
            raise Refused(f"a link in it leads to {shown}, out of the folder")
        self._links.append((tuple(parts), target))

    def make_links(self) -> None:
        """Make the links, and check that each, with the help of all others, stays in the folder."""
        # All of their folders first: so these are folders and no links, and no link is made behind another.
        for parts, _ in self._links:
            self.add_folder(parts[:-1])
        for parts, target in self._links:
            try:
                self._folder.joinpath(*parts).symlink_to(target)
            except FileExistsError as exc:
                raise _twice(parts) from exc
        root = os.path.realpath(self._folder)
        for parts, target in self._links:
            # Not Path.resolve, which raises where links lead in circles.
            if os.path.commonpath([root, os.path.realpath(self._folder.joinpath(*parts))]) != root:
                raise Refused(f"a link in it leads to {target[:200]!a}, out of the folder")


def _twice(parts: Sequence[str]) -> Refused:
    return Refused(f"{'/'.join(parts)!a} is in it twice, or is a file and a folder")
