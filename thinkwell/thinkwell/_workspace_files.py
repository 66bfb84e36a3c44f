"""Files below some folders, and no others, for somebody who is not trusted.

A path is followed by hand, one name at a time from an open folder (`dir_fd`), and never through a link by
the system (`O_NOFOLLOW`): links are read and followed here. So a name that is exchanged for a link between
the look at it and its use is refused, whoever exchanges it. Outside the roots nothing is looked at, so that
nothing can be learned about it.

All of it blocks: call it in a worker thread.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import secrets
import stat
import unicodedata
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

SUPPORTED: Final = hasattr(os, "O_NOFOLLOW") and {os.open, os.readlink, os.rename} <= os.supports_dir_fd
"""Whether this system can do it. Windows cannot."""

MAX_PATH: Final = 4096
"""The longest path that is looked at, in bytes."""

MAX_LINKS: Final = 40
"""How many links one path may lead through, as on Linux."""

MAX_STEPS: Final = 10_000
"""How many folders one path may open. Only paths made to cost time come near it."""

CHUNK: Final = 256 * 1024
"""Bytes read at once."""

_FOLDER: Final = (
    getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_PATH", 0)  # where there is it, a folder need not be readable to be passed through
)
_FILE: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe put in the file's place must not hold us up
)

Parts: TypeAlias = tuple[str, ...]
"""The names in an absolute path."""

Why: TypeAlias = Literal["path", "outside", "denied", "missing", "kind", "text", "size", "system"]


class FileRefused(Exception):  # noqa: N818 - says what happened
    """A file is not served.

    Attributes:
        why: ``path`` it is no usable path, ``outside`` it leaves the roots, ``denied`` it is excluded,
            ``missing`` it does not exist, ``kind`` it is no regular file or no folder, ``text`` it is no
            UTF-8, ``size`` it is too large, ``system`` the system says no.
        reason: The same as the end of a sentence that begins with the path.
    """

    def __init__(self, why: Why, reason: str) -> None:
        super().__init__(why, reason)
        self.why = why
        self.reason = reason


class Text(NamedTuple):
    """What was read."""

    text: str
    cut: bool
    """Whether there is more in the range than was asked for at most."""


class Files:
    """The files below some roots.

    Args:
        roots: Folders that exist.
        deny: Patterns of what is not served (`Workspace.deny`).
    """

    def __init__(self, roots: Sequence[str | os.PathLike[str]], deny: Sequence[str] = ()) -> None:
        self._roots = tuple(_parts(os.path.realpath(root)) for root in roots)
        self._deny = tuple(_folded(pattern.rstrip("/")) for pattern in deny)
        self._aliases: dict[Parts, Parts] = {}
        for root in roots:
            self.add_alias(root)

    def add_alias(self, folder: str | os.PathLike[str]) -> None:
        """Know a folder within the roots by this name too, which may lead through links outside of them."""
        real = _parts(os.path.realpath(folder))
        spelled = _parts(os.path.abspath(folder))  # noqa: PTH100 - Path keeps the ".."
        if real != spelled and self.is_inside(real):
            self._aliases = {**self._aliases, spelled: real}

    @property
    def aliases(self) -> Mapping[Parts, Parts]:
        """Other names of folders within the roots."""
        return self._aliases

    def is_inside(self, parts: Parts) -> bool:
        """Return whether a place is a root or within one."""
        return any(is_below(parts, root) for root in self._roots)

    def leads_to_root(self, parts: Parts) -> bool:
        """Return whether a place outside the roots is on the way to one."""
        return any(is_below(known, parts) for known in (*self._roots, *self._aliases))

    def is_denied(self, parts: Parts) -> bool:
        """Return whether a place within the roots is excluded, those above it aside."""
        if not self._deny:
            return False
        names = {_folded(parts[-1])}
        names |= {
            _folded("/" + "/".join(parts[len(root) :])) for root in self._roots if is_below(parts, root)
        }
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self._deny for name in names)

    def open_folder(self, path: str) -> tuple[str, int]:
        """Return a folder's real path and a descriptor of it, which is to be closed.

        Raises:
            FileRefused: It is not served.
        """
        with _system_errors(), _Walk(self) as walk:
            walk.follow(path, folder=True)
            return "/" + "/".join(walk.parts), os.dup(walk.fd)

    def read(
        self,
        path: str,
        *,
        max_bytes: int,
        line: int | None = None,
        limit: int | None = None,
        check: Callable[[], object] = bool,
    ) -> Text:
        """Return a file's text, line ends as they are.

        Args:
            path: An absolute path.
            max_bytes: The most to return.
            line: The first line, counted from 1; 0 means the first too.
            limit: How many lines at most. A line ends with a line feed.
            check: Called now and then; what it raises ends the reading.

        Raises:
            FileRefused: It is not served. Without `line` and `limit`, one that is too large is refused too:
                an agent that writes back what it got would cut it off.
        """
        with _system_errors(), _Walk(self) as walk:
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
                    end -= 1  # in mid character
                return Text(_decode(data[:end]), cut=end < len(data))

    def write(self, path: str, content: str, *, max_bytes: int) -> None:
        """Give a file this text, all of it or nothing; a file and its folders that are missing are made.

        A link that stays within the roots is kept: the file that it leads to is written. The file keeps its
        permissions, and its owner where the system lets us.

        Raises:
            FileRefused: It was not written.
        """
        try:
            data = content.encode()
        except UnicodeEncodeError as exc:
            raise FileRefused("text", f"cannot be written: the text is no Unicode ({exc.reason})") from exc
        if len(data) > max_bytes:
            raise FileRefused("size", f"cannot be written: {len(data)} bytes are more than {max_bytes}")
        with _system_errors(), _Walk(self, make=True) as walk:
            name = walk.follow(path)
            old = None
            with suppress(FileNotFoundError):
                fd = _open_regular(name, os.O_WRONLY, walk.fd)  # which asks whether it may be written, too
                old = os.fstat(fd)
                os.close(fd)
            assert name is not None
            _replace(name, data, old, walk.fd)


class _Walk:
    """The way along one path. Holds one folder open at a time."""

    def __init__(self, files: Files, *, make: bool = False) -> None:
        self.parts: Parts = ()
        """Where we are. Within the roots, no name in it is a link."""
        self.fd = -1
        """The folder where we are; -1 outside the roots."""
        self._files = files
        self._make = make
        self._steps = 0

    def __enter__(self) -> _Walk:
        return self

    def __exit__(self, *error: object) -> None:
        self._hold(-1)

    def follow(self, path: str, *, folder: bool = False) -> str | None:
        """Go to the folder of a path's last name and return that name, which was no link.

        ``None``: the path ends in the folder itself, as it must where it is to be one.
        """
        _check_path(path)
        links = 0
        self._move(())
        ahead = _pieces(path + "/" if folder else path)
        while ahead:
            name = ahead.pop()
            if name == ".":
                continue
            if name == "..":
                self._move(self.parts[:-1])
            elif self.fd < 0:
                self._move((*self.parts, name))
            elif (target := self._link(name)) is not None:
                links += 1
                if links > MAX_LINKS:
                    raise FileRefused("path", "leads through too many links")
                if target.startswith("/"):
                    self._move(())
                ahead += _pieces(target)
            elif not ahead:
                return name
            else:
                self._descend(name, make=self._make and not {".", ".."} & {*ahead})
        if self.fd < 0:
            raise _outside()
        return None

    def _link(self, name: str) -> str | None:
        """Return where a link leads; ``None``: it is none, or nothing at all."""
        if self._files.is_denied((*self.parts, name)):
            raise FileRefused("denied", "is not open to the agent")
        try:
            return os.readlink(name, dir_fd=self.fd)
        except OSError as exc:
            if exc.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def _move(self, parts: Parts) -> None:
        """Go to a place in whose names there is no link."""
        self._hold(-1)
        parts = self._files.aliases.get(parts, parts)
        self.parts = ()
        if not self._files.is_inside(parts):
            if not self._files.leads_to_root(parts):
                raise _outside()
            self.parts = parts
            return
        self._hold(self._open("/"))
        for name in parts:
            self._descend(name)

    def _descend(self, name: str, *, make: bool = False) -> None:
        try:
            fd = self._open(name)
        except FileNotFoundError:
            if not make:
                raise
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.fd)
            fd = self._open(name)
        self._hold(fd)
        self.parts = (*self.parts, name)

    def _open(self, name: str) -> int:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise FileRefused("path", "leads through too many folders")
        return os.open(name, _FOLDER, dir_fd=None if self.fd < 0 else self.fd)

    def _hold(self, fd: int) -> None:
        old, self.fd = self.fd, fd
        if old >= 0:
            os.close(old)


class _Chunks:
    """A file's bytes, some at a time."""

    def __init__(self, read: Callable[[int], bytes], check: Callable[[], object]) -> None:
        self._read = read
        self._check = check
        self._left = b""

    def next(self) -> bytes:
        """Return the next bytes, none at the end."""
        self._check()
        data, self._left = self._left, b""
        return data or self._read(CHUNK)

    def skip_lines(self, count: int) -> None:
        """Go behind that many line feeds, or to the end."""
        while count and (data := self.next()):
            found = data.count(b"\n")
            if found < count:
                count -= found
            else:
                self._left = data[_behind_line(data, count) :]
                return


def _read_lines(chunks: _Chunks, limit: int | None, max_bytes: int) -> bytes:
    """Return that many lines at most, and some more than `max_bytes` where there is more."""
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
    """Open what must be a regular file. The look before keeps devices from being opened at all."""
    if name is None or not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise FileRefused("kind", "is not a regular file")
    fd = os.open(name, flags | _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # pragma: no cover - exchanged since the look
        os.close(fd)
        raise FileRefused("kind", "is not a regular file")
    return fd


def _replace(name: str, data: bytes, old: os.stat_result | None, folder: int) -> None:
    """Put a new file in a file's place. The name is renamed over, never opened: no link of it is followed."""
    temporary = f".thinkwell-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
    fd = os.open(temporary, flags, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if old is not None:
                with suppress(OSError):  # only the superuser may, and only where the owner is another
                    os.fchown(fd, old.st_uid, old.st_gid)
                os.fchmod(fd, old.st_mode & 0o777)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


@contextmanager
def _system_errors() -> Generator[None]:
    """Put the system's errors into words that name nothing but what was asked for."""
    try:
        yield
    except OSError as exc:
        number = exc.errno or 0
        if number == errno.ENOENT:
            raise FileRefused("missing", "does not exist") from exc
        if number in (errno.ENOTDIR, errno.ELOOP):
            raise FileRefused("kind", "leads through something that is not a folder") from exc
        if number == errno.ENAMETOOLONG:
            raise FileRefused("path", "has a name that is too long") from exc
        raise FileRefused("system", f"is refused by the system: {os.strerror(number)}") from exc


def _outside() -> FileRefused:
    return FileRefused("outside", "is outside the workspace")


def _too_large(max_bytes: int) -> FileRefused:
    return FileRefused("size", f"has more than {max_bytes} bytes; read it in parts, by line and limit")


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise FileRefused("path", "is not an absolute path")
    if "\0" in path:
        raise FileRefused("path", "has a zero character")
    try:
        size = len(path.encode())
    except UnicodeEncodeError as exc:
        raise FileRefused("path", "is no Unicode") from exc
    if size > MAX_PATH:
        raise FileRefused("path", f"has more than {MAX_PATH} bytes")


def is_below(parts: Parts, folder: Parts) -> bool:
    """Return whether a place is a folder or within it."""
    return parts[: len(folder)] == folder


def _parts(path: str) -> Parts:
    return tuple(part for part in path.split("/") if part)


def _pieces(path: str) -> list[str]:
    """Return a path's names, the first at the end; what must be a folder has a dot behind it."""
    pieces = [piece for piece in path.split("/") if piece not in ("", ".")]
    if path.endswith(("/", "/.")) or path == ".":
        pieces.append(".")
    return pieces[::-1]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
