"""Reading and writing files for an untrusted caller. All calls block: use a worker thread."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell._workspace.walk import FileRefused, Places, Walk

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK: Final = 256 * 1024
"""Bytes read at once."""

_FILE: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe that replaces the file must not block us
)


class Text(NamedTuple):
    """The text that was read."""

    text: str
    cut: bool
    """Whether the range has more than the allowed size."""


def open_folder(places: Places, path: str) -> tuple[str, int]:
    """Return a folder's real path and a descriptor of it, which the caller closes.

    Raises:
        FileRefused: The path is refused.
    """
    with Walk(places) as walk:
        walk.follow(path, folder=True)
        return "/" + "/".join(walk.parts), os.dup(walk.fd)


def read(
    places: Places,
    path: str,
    *,
    max_bytes: int,
    line: int | None = None,
    limit: int | None = None,
    check: Callable[[], object] = bool,
) -> Text:
    """Return a file's text, with its line ends unchanged.

    Args:
        places: The places that the path may lead to.
        path: An absolute path.
        max_bytes: Most bytes to return.
        line: The first line, counted from 1; 0 means the first too.
        limit: Most lines. A line ends with a line feed.
        check: Called regularly; its exceptions end the reading.

    Raises:
        FileRefused: The path is refused. Without `line` and `limit`, a file that is too large is refused
            too: an agent that writes back what it got would cut it off.
    """
    with Walk(places) as walk:
        fd = _open_regular(walk.follow(path), os.O_RDONLY, walk.fd)
        with os.fdopen(fd, "rb", buffering=0) as file:
            if line is None and limit is None:
                if os.fstat(fd).st_size > max_bytes:
                    raise _too_large(max_bytes)
                data = _read_lines(_Chunks(file.read, check), None, max_bytes)
                if len(data) > max_bytes:
                    raise _too_large(max_bytes)
                return Text(_decode(data), cut=False)
            chunks = _Chunks(file.read, check)
            chunks.skip_lines(max(line or 1, 1) - 1)
            data = _read_lines(chunks, limit, max_bytes)
            end = min(len(data), max_bytes)
            while 0 < end < len(data) and data[end] & 0xC0 == 0x80:
                end -= 1  # within a character
            return Text(_decode(data[:end]), cut=end < len(data))


def write(places: Places, path: str, content: str, *, max_bytes: int) -> None:
    """Replace a file's text, completely or not at all; a missing file and its folders are created.

    A link that stays within the roots is kept: its target is written. The file keeps its permissions, and
    its owner if the system allows that.

    Raises:
        FileRefused: It was not written.
    """
    try:
        data = content.encode()
    except UnicodeEncodeError as exc:  # pragma: no cover - the connection mends lone surrogates
        raise FileRefused("text", f"cannot be written: the text is no Unicode ({exc.reason})") from exc
    if len(data) > max_bytes:
        raise FileRefused("size", f"cannot be written: {len(data)} bytes are more than {max_bytes}")
    with Walk(places, make=True) as walk:
        name = walk.follow(path)
        old = None
        with suppress(FileNotFoundError):
            fd = _open_regular(name, os.O_WRONLY, walk.fd)  # also checks whether it may be written
            old = os.fstat(fd)
            os.close(fd)
        assert name is not None
        _replace(name, data, old, walk.fd)


class _Chunks:
    """A file's bytes, in chunks."""

    def __init__(self, read: Callable[[int], bytes], check: Callable[[], object]) -> None:
        self._read = read
        self._check = check
        self._left = b""

    def next(self) -> bytes:
        """Return the next bytes, empty at the end."""
        self._check()
        data, self._left = self._left, b""
        return data or self._read(CHUNK)

    def skip_lines(self, count: int) -> None:
        """Skip that many line feeds, or to the end."""
        while count and (data := self.next()):
            found = data.count(b"\n")
            if found < count:
                count -= found
            else:
                self._left = data[_behind_line(data, count) :]
                return


def _read_lines(chunks: _Chunks, limit: int | None, max_bytes: int) -> bytes:
    """Return at most so many lines, and a little more than `max_bytes` if there is more."""
    parts: list[bytes] = []
    size = 0
    while size <= max_bytes and limit != 0 and (data := chunks.next()):
        if limit is not None:
            found = data.count(b"\n")
            data = data[: _behind_line(data, limit)] if found >= limit else data
            limit -= min(found, limit)
        parts.append(data)
        size += len(data)
    return b"".join(parts)


def _behind_line(data: bytes, count: int) -> int:
    end = 0
    for _ in range(count):
        end = data.index(b"\n", end) + 1
    return end


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise FileRefused("text", f"is not UTF-8 text (byte {exc.start} of what was read)") from exc


def _open_regular(name: str | None, flags: int, folder: int) -> int:
    """Open a regular file. The check beforehand keeps devices from being opened at all."""
    if name is None or not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise FileRefused("kind", "is not a regular file")
    fd = os.open(name, flags | _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # pragma: no cover - exchanged since the look
        os.close(fd)
        raise FileRefused("kind", "is not a regular file")
    return fd


def _replace(name: str, data: bytes, old: os.stat_result | None, folder: int) -> None:
    """Replace a file with a new one, by renaming: its name is never opened, so no link is followed."""
    temporary = f".thinkwell-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
    fd = os.open(temporary, flags, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if old is not None:
                with suppress(OSError):  # only the superuser may change the owner
                    os.fchown(fd, old.st_uid, old.st_gid)
                os.fchmod(fd, old.st_mode & 0o777)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _too_large(max_bytes: int) -> FileRefused:
    return FileRefused("size", f"has more than {max_bytes} bytes; read it in parts, by line and limit")
