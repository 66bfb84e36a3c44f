"""Unpacking untrusted archives. Bytes are counted as they are unpacked; sizes in headers are not trusted."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import anyio.from_thread
import anyio.to_thread

from thinkwell.agents._safe_tree import CHUNK, Refused, Room, SafeTree, relative_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

MAX_BYTES: Final = 4 * 1024**3
"""Most bytes that may come out of an archive: ten times the size of the largest known agent."""

MAX_MEMBERS: Final = 100_000
"""Most files, folders and links in an archive."""

MAX_CONTENTS: Final = 16 * 1024**2
"""Most bytes of a zip's table of contents, which is kept in memory."""

USUAL_HEADERS: Final = 4096
"""Most bytes that the headers of one file in a tar usually have."""

MAX_HEADERS: Final = 1024**2
"""Most bytes of headers that a tar may have on top of the usual ones. They are kept in memory."""

_NATIVE: Final = (
    b"\x7fELF",
    b"MZ",
    *(
        b"\xfe\xed\xfa\xce",
        b"\xfe\xed\xfa\xcf",
        b"\xce\xfa\xed\xfe",
        b"\xcf\xfa\xed\xfe",
        b"\xca\xfe\xba\xbe",
    ),
)
"""The first bytes of programs for Linux, Windows and macOS."""

_RUN_BY_OTHERS: Final = (".cjs", ".jar", ".js", ".mjs", ".py", ".pyz")
"""Suffixes of files that an interpreter runs directly. Some of them are zips."""

_BOUNDED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Zip compressions of which zipfile unpacks only as much as is asked for. With any other, it unpacks all of
the bytes that it reads at once: gigabytes."""

_DAMAGED: Final = (
    EOFError,
    NotImplementedError,  # a zip that needs a newer program
    OSError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    # Raised for headers that no program writes.
    ValueError,
    OverflowError,
    IndexError,
    KeyError,
    RecursionError,
)


class ArchiveError(Exception):
    """An archive could not be unpacked. Nothing of it is left.

    Attributes:
        archive: The file.
        reason: What is wrong with it.
    """

    def __init__(self, archive: str, reason: str) -> None:
        super().__init__(archive, reason)
        self.archive = archive
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.archive} was not unpacked: {self.reason}"


async def extract(
    archive: Path,
    into: Path,
    *,
    cmd: str | None = None,
    check: Callable[[Path], object] | None = None,
    max_bytes: int = MAX_BYTES,
    max_members: int = MAX_MEMBERS,
) -> None:
    """Unpack a zip or a tar (plain, gzip, bzip2 or xz), or put a single program in its place.

    The archive is unpacked beside `into` and then renamed, so `into` is complete or missing. If another
    process was faster, its `into` stays. The content decides the type, not the name; but a file that an
    interpreter runs, such as a ``.jar``, is left as it is.

    Args:
        archive: The file.
        into: The folder to create.
        cmd: Path, within the folder, of a program that is not in an archive. If it has no folder, such as
            ``node``, it may be an interpreter of the file: then only a native program gets this name, and
            anything else keeps the file's name.
        check: Called in the worker thread with the folder before it is renamed; its exceptions propagate.
        max_bytes: Most bytes that may come out of it.
        max_members: Most files, folders and links in it.

    Raises:
        ArchiveError: It is damaged, encrypted, too large or of an unknown type, or something in it would be
            outside of the folder.
    """
    unpacking = _Unpacking(archive, cmd, Room(max_bytes, max_members))
    await anyio.to_thread.run_sync(unpacking.run, into, check)


class _Unpacking:
    """Unpacks one archive, in a worker thread."""

    def __init__(self, archive: Path, cmd: str | None, room: Room) -> None:
        self._archive = archive
        self._cmd = cmd
        self._room = room

    def run(self, into: Path, check: Callable[[Path], object] | None) -> None:
        try:
            into.parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=f".{into.name}-", dir=into.parent))
        except OSError as exc:
            raise ArchiveError(str(self._archive), f"{into} cannot be created: {exc.strerror}") from exc
        try:
            self._unpack(SafeTree(folder, self._room))
            if check is not None:
                check(folder)
            anyio.from_thread.check_cancelled()
            try:
                folder.rename(into)
            except OSError as exc:
                if not into.is_dir():
                    raise ArchiveError(
                        str(self._archive), f"{into} cannot be created: {exc.strerror}"
                    ) from exc
                shutil.rmtree(folder, ignore_errors=True)  # another process was faster
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _unpack(self, tree: SafeTree) -> None:
        try:
            with self._archive.open("rb") as file:
                start = file.read(512)
                file.seek(0)
                if self._archive.suffix.lower() in _RUN_BY_OTHERS or start.startswith((*_NATIVE, b"#!")):
                    self._put(file, start, tree)
                elif start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
                    self._unpack_zip(tree)
                else:
                    self._unpack_tar(file, start, tree)
            tree.make_links()
        except Refused as exc:
            raise ArchiveError(str(self._archive), str(exc)) from exc
        except _DAMAGED as exc:
            if isinstance(exc, OSError) and exc.strerror:
                reason = f"reading or writing failed: {exc.strerror}"
            else:
                text = ascii(f"{type(exc).__name__}: {exc}")[1:-1]
                reason = f"it is damaged, or of an unknown format ({text})"
            raise ArchiveError(str(self._archive), reason) from exc

    def _put(self, file: IO[bytes], start: bytes, tree: SafeTree) -> None:
        """Move a file that is not an archive to its place."""
        parts: tuple[str, ...] = (self._archive.name,)
        if self._cmd is not None and (start.startswith(_NATIVE) or re.search(r"[/\\]", self._cmd)):
            parts = relative_parts(self._cmd)
        tree.add_file(parts, file.read, executable=True)

    def _unpack_zip(self, tree: SafeTree) -> None:
        with _CarefulFile(self._archive) as file, zipfile.ZipFile(cast("IO[bytes]", file)) as archive:
            for info in archive.infolist():
                self._room.add_member()
                mode = info.external_attr >> 16
                parts = relative_parts(info.filename)
                if info.flag_bits & 0x1:
                    raise Refused("it is encrypted")
                if info.compress_type not in _BOUNDED:
                    raise Refused(f"{info.filename!a} has an unsupported compression")
                if info.filename.endswith(("/", "\\")) or stat.S_ISDIR(mode):
                    tree.add_folder(parts)
                    continue
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFLNK):
                    raise Refused(f"{info.filename!a} is not a file, folder or link")
                with archive.open(info) as member:
                    if stat.S_ISLNK(mode):
                        tree.add_link(parts, os.fsdecode(member.read(4097)))
                    else:
                        tree.add_file(parts, member.read, executable=bool(mode & 0o111))

    def _unpack_tar(self, file: IO[bytes], start: bytes, tree: SafeTree) -> None:
        inner: IO[bytes]
        if start.startswith(b"\x1f\x8b"):
            inner = cast("IO[bytes]", gzip.GzipFile(fileobj=file))
        elif start.startswith(b"BZh"):
            inner = cast("IO[bytes]", bz2.BZ2File(file))
        elif start.startswith(b"\xfd7zXZ\x00"):
            inner = cast("IO[bytes]", lzma.LZMAFile(file))  # noqa: SIM115 - closed below
        elif start[257:262] == b"ustar":
            inner = file
        else:
            raise Refused(
                f"it is neither an archive nor a program; it begins with {ascii(start[:20])[2:-1]!r}"
            )
        with closing(inner):
            stream = _Stream(inner, self._room)
            try:
                archive = tarfile.TarFile(fileobj=cast("IO[bytes]", stream), mode="r")
            except tarfile.ReadError as exc:
                raise Refused("it is compressed, but not a tar") from exc
            with archive:
                self._add_tar_members(archive, stream, tree)
            stream.skip_to_end()  # the checksum is there

    def _add_tar_members(self, archive: tarfile.TarFile, stream: _Stream, tree: SafeTree) -> None:
        while (member := stream.next_member(archive)) is not None:
            self._room.add_member()
            self._add_tar_member(archive, member, tree)
        # tarfile takes anything but a header for the end.
        if stream.last.strip(b"\0"):
            raise Refused("it is damaged: a header is missing")

    def _add_tar_member(self, archive: tarfile.TarFile, member: tarfile.TarInfo, tree: SafeTree) -> None:
        parts = relative_parts(member.name)
        if member.isdir():
            tree.add_folder(parts)
        elif member.issym():
            tree.add_link(parts, member.linkname)
        elif member.islnk():
            tree.add_copy(parts, relative_parts(member.linkname))
        elif member.isreg():
            content = archive.extractfile(member)
            assert content is not None
            tree.add_file(parts, content.read, executable=bool(member.mode & 0o111))
        else:
            raise Refused(f"{member.name!a} is not a file, folder or link")


class _CarefulFile(io.FileIO):
    """A file that limits what is read at once: a zip's table of contents is read in one piece."""

    def read(self, size: int | None = -1, /) -> bytes:
        rest = size is None or size < 0  # only the end of the file is read so
        data = super().read(MAX_CONTENTS + 1 if rest else min(size or 0, MAX_CONTENTS + 1))
        if len(data) > MAX_CONTENTS:
            raise Refused(f"its table of contents has more than {MAX_CONTENTS} bytes")
        return data


class _Stream:
    """A tar that tarfile reads forwards only: headers that point backwards would keep it busy forever."""

    def __init__(self, inner: IO[bytes], room: Room) -> None:
        self._inner = inner
        self._room = room
        self._position = 0
        self._in_headers = True
        self._headers_left = MAX_HEADERS
        self.last = b""
        """The last bytes read."""

    def next_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        self._in_headers = True
        self._headers_left += USUAL_HEADERS
        member = archive.next()
        self._in_headers = False
        cast("Any", archive).members.clear()  # otherwise tarfile keeps them all
        return member

    def read(self, size: int) -> bytes:
        if not 0 <= size <= MAX_HEADERS:
            raise Refused(f"a header in it has more than {MAX_HEADERS} bytes")
        self.last = self._inner.read(size)
        self._position += len(self.last)
        if self._in_headers:
            self._headers_left -= len(self.last)
            if self._headers_left < 0:
                raise Refused("its headers are too long")
        return self.last

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        if position < self._position:
            raise Refused("it is damaged: a header points backwards")
        while self._position < position:
            data = self.read(min(CHUNK, position - self._position))
            self._room.take(len(data))
            if not data:
                return

    def skip_to_end(self) -> None:
        while data := self.read(CHUNK):
            self._room.take(len(data))
