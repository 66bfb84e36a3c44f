"""Access to files below some folders, and no others, for an untrusted caller.

A path is followed by hand, one name at a time from an open folder (`dir_fd`), and the system never follows a
link (`O_NOFOLLOW`): links are read and followed here. So a name that is replaced with a link between its
check and its use is refused. Nothing outside the roots is accessed, so that nothing can be learned about it.

All calls block: use a worker thread.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

SUPPORTED: Final = hasattr(os, "O_NOFOLLOW") and {os.open, os.readlink, os.rename} <= os.supports_dir_fd
"""Whether this system supports it. Windows does not."""

MAX_PATH: Final = 4096
"""The longest path that is followed, in bytes."""

MAX_LINKS: Final = 40
"""Most links in one path, as on Linux."""

MAX_STEPS: Final = 10_000
"""Most folders that one path may open. Only paths made to cost time come near it."""

_FOLDER: Final = (
    getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_PATH", 0)  # if available, a folder on the way need not be readable
)
Parts: TypeAlias = tuple[str, ...]
"""The names in an absolute path."""

Why: TypeAlias = Literal["path", "outside", "denied", "missing", "kind", "text", "size", "system"]


class FileRefused(Exception):  # noqa: N818 - says what happened
    """A file is refused.

    Attributes:
        why: ``path`` it is not a usable path, ``outside`` it leaves the roots, ``denied`` it is excluded,
            ``missing`` it does not exist, ``kind`` it is not a regular file or not a folder, ``text`` it is
            not UTF-8, ``size`` it is too large, ``system`` the system refuses it.
        reason: The same as the end of a sentence that begins with the path.
    """

    def __init__(self, why: Why, reason: str) -> None:
        super().__init__(why, reason)
        self.why = why
        self.reason = reason


class Places:
    """The places that paths may lead to.

    Args:
        roots: Folders that exist.
        deny: Patterns of excluded files (`Workspace.deny`).
    """

    def __init__(self, roots: Sequence[str | os.PathLike[str]], deny: Sequence[str] = ()) -> None:
        self._roots = tuple(_parts(os.path.realpath(root)) for root in roots)
        self._deny = tuple(_folded(pattern.rstrip("/")) for pattern in deny)
        self.aliases: dict[Parts, Parts] = {}
        """Other names of folders within the roots."""
        for root in roots:
            self.add_alias(root)

    def add_alias(self, folder: str | os.PathLike[str]) -> None:
        """Add another name of a folder within the roots, which may lead through links outside of them."""
        real = _parts(os.path.realpath(folder))
        spelled = _parts(os.path.abspath(folder))  # noqa: PTH100 - Path keeps the ".."
        if real != spelled and self.is_inside(real):
            self.aliases = {**self.aliases, spelled: real}

    def is_inside(self, parts: Parts) -> bool:
        """Return whether a place is a root or within one."""
        return any(is_below(parts, root) for root in self._roots)

    def leads_to_root(self, parts: Parts) -> bool:
        """Return whether a place outside the roots is on the way to one."""
        return any(is_below(known, parts) for known in (*self._roots, *self.aliases))

    def is_denied(self, parts: Parts) -> bool:
        """Return whether a place within the roots is excluded, ignoring those above it."""
        if not self._deny:
            return False
        names = {_folded(parts[-1])}
        names |= {
            _folded("/" + "/".join(parts[len(root) :])) for root in self._roots if is_below(parts, root)
        }
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self._deny for name in names)


class Walk:
    """The walk along one path. It holds one folder open at a time, until the end of its block.

    The block raises the system's errors as `FileRefused`.
    """

    def __init__(self, places: Places, *, make: bool = False) -> None:
        self.parts: Parts = ()
        """The current place. Within the roots, none of its names is a link."""
        self.fd = -1
        """The current folder; -1 outside the roots."""
        self._places = places
        self._make = make
        self._steps = 0

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        self._hold(-1)
        if isinstance(error, OSError):
            raise _refusal(error) from error

    def follow(self, path: str, *, folder: bool = False) -> str | None:
        """Go to the folder of a path's last name and return that name, which was no link.

        ``None``: the path ends in the folder itself, as it must if a folder is required.
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
        """Return the target of a link; ``None`` if it is not a link, or does not exist."""
        if self._places.is_denied((*self.parts, name)):
            raise FileRefused("denied", "is not open to the agent")
        try:
            return os.readlink(name, dir_fd=self.fd)
        except OSError as exc:
            if exc.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def _move(self, parts: Parts) -> None:
        """Move to a place whose names are not links."""
        self._hold(-1)
        parts = self._places.aliases.get(parts, parts)
        self.parts = ()
        if not self._places.is_inside(parts):
            if not self._places.leads_to_root(parts):
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


def _refusal(error: OSError) -> FileRefused:
    """Return an error of the system with a text that names only the requested path."""
    match error.errno:
        case errno.ENOENT:
            return FileRefused("missing", "does not exist")
        case errno.ENOTDIR | errno.ELOOP:
            return FileRefused("kind", "leads through something that is not a folder")
        case errno.ENAMETOOLONG:
            return FileRefused("path", "has a name that is too long")
        case number:
            return FileRefused("system", f"is refused by the system: {os.strerror(number or 0)}")


def _outside() -> FileRefused:
    return FileRefused("outside", "is outside the workspace")


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise FileRefused("path", "is not an absolute path")
    if "\0" in path:
        raise FileRefused("path", "has a zero character")
    try:
        size = len(path.encode())
    except UnicodeEncodeError as exc:  # pragma: no cover - the connection mends lone surrogates
        raise FileRefused("path", "is no Unicode") from exc
    if size > MAX_PATH:
        raise FileRefused("path", f"has more than {MAX_PATH} bytes")


def is_below(parts: Parts, folder: Parts) -> bool:
    """Return whether a place is a folder or within it."""
    return parts[: len(folder)] == folder


def _parts(path: str) -> Parts:
    return tuple(part for part in path.split("/") if part)


def _pieces(path: str) -> list[str]:
    """Return a path's names, the first at the end; a dot follows one that must be a folder."""
    pieces = [piece for piece in path.split("/") if piece not in ("", ".")]
    if path.endswith(("/", "/.")) or path == ".":
        pieces.append(".")
    return pieces[::-1]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
