"""Which files to read, and how: within the session's folder, and with limits."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from thinkwell.builtin._facts import LANGUAGES, FileFacts, examine

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILES: Final = 8
"""Most files that a turn reads."""

MAX_BYTES: Final = 256 * 1024
"""Most bytes of a file that are read. The rest of a longer file is skipped, and the agent says so."""

MAX_SEEN: Final = 5000
"""Most names that are looked at in a search for files."""

SKIPPED: Final = frozenset(
    {"__pycache__", "build", "dist", "node_modules", "site-packages", "target", "venv"}
)
"""Folders of generated files. Those that begin with a dot are skipped too."""

_FIRST: Final = ("readme", "pyproject.toml", "package.json", "cargo.toml", "go.mod", "makefile")
_DATA: Final = frozenset({"CSS", "HTML", "JSON", "TOML", "YAML", "text"})
_UNKNOWN: Final = len(_FIRST) + 3
_PLAIN_NAMES: Final = frozenset({"Makefile", "LICENSE", "README", "CHANGELOG", "Dockerfile"})
_PATH: Final = re.compile(r"[^\s\"'`<>|,;:()\[\]{}*?]+")
_MAX_PATHS: Final = 500


class UnreadError(Exception):
    """A file is not read; the text says why, as the end of "I do not read it: …"."""


class Source(Struct, frozen=True, kw_only=True):
    """A file that was read."""

    facts: FileFacts
    cut: bool
    """Whether it is longer than the part that was read."""


class Folder:
    """The folder of a session. Nothing outside it is read, not even through links."""

    def __init__(self, path: str) -> None:
        self.root = Path(path).resolve()

    def shown(self, path: Path) -> str:
        """Return the path to display."""
        return path.relative_to(self.root).as_posix()

    def inside(self, path: str) -> Path:
        """Return the file of a path.

        Raises:
            UnreadError: It leads out of the folder, or nowhere.
        """
        try:
            resolved = (self.root / path).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise UnreadError("there is no such file") from None
        if not resolved.is_relative_to(self.root):
            raise UnreadError("it is outside of the folder that I was started in")
        if any(_skipped(part) for part in resolved.relative_to(self.root).parts[:-1]):
            raise UnreadError("it lies in a folder of tools or of things that were installed")
        return resolved

    def named_in(self, text: str) -> list[Path]:
        """Return the existing files that a text names, and the folders that it names with a slash."""
        found: dict[Path, None] = {}
        for token in _PATH.findall(text)[:_MAX_PATHS]:
            word = token.rstrip(".!")
            if not (("." in word or "/" in word) and word.strip("./")) and word not in _PLAIN_NAMES:
                continue
            try:
                path = self.inside(word)
            except UnreadError:
                continue
            if path.is_file() or "/" in word:
                found[path] = None
        return list(found)

    def files_in(self, folder: Path) -> list[Path]:
        """Return files worth reading: those that describe the project, then the biggest sources."""
        ranked = [(_rank(path, folder), -size, path) for path, size in _walk(folder)]
        return [path for rank, _, path in sorted(ranked) if rank < _UNKNOWN][:MAX_FILES]

    def read(self, path: Path) -> Source:
        """Read a file and compute its facts.

        Raises:
            UnreadError: It cannot be read, or is no text.
        """
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
                status = os.fstat(file.fileno())
        except OSError as exc:
            raise UnreadError(exc.strerror or str(exc)) from None
        if b"\0" in data:
            raise UnreadError("it is no text")
        cut = len(data) > MAX_BYTES
        text = data[:MAX_BYTES].rpartition(b"\n")[0] if cut else data
        facts = examine(
            self.shown(path), text.decode("utf-8", "replace"), absolute=str(path), modified=status.st_mtime
        )
        return Source(facts=facts, cut=cut)


def path_of_uri(uri: str) -> str | None:
    """Return the path of a ``file`` URI or a bare path; ``None`` if it is elsewhere."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        path = unquote(parts.path)
        return path.lstrip("/") if os.name == "nt" else path  # file:///C:/folder
    return uri if len(parts.scheme) < 2 else None  # one letter is a drive of Windows


def _skipped(name: str) -> bool:
    return name.startswith(".") or name in SKIPPED


def _rank(path: Path, folder: Path) -> int:
    """Return a file's place in the order of reading.

    Files that describe a project come first, then programs, then texts.
    """
    name = path.name.lower()
    if path.parent == folder:
        for index, first in enumerate(_FIRST):
            if name == first or name.startswith(first + "."):
                return index
    language = LANGUAGES.get(path.suffix.lower())
    if language is None:
        return _UNKNOWN
    if language == "Python" and not name.startswith("test"):
        return len(_FIRST)
    return len(_FIRST) + (2 if language in _DATA else 1)


def _walk(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield files and their sizes, breadth first and without links, until enough names were seen."""
    folders, seen = [folder], 0
    for current in folders:
        for entry in _entries(current):
            seen += 1
            if seen > MAX_SEEN:
                return
            if _skipped(entry.name):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    yield Path(entry.path), entry.stat(follow_symlinks=False).st_size
            except OSError:  # pragma: no cover - it has gone since
                continue


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
