"""Paths and globs for them, as written and with all links resolved."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from thinkwell._core.policy.globs import literal_start, path_glob

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_PATHS: Final = 200
"""Most paths of one question that are checked; each costs a few system calls. With more, none is allowed, and
rules that deny or ask match."""


LONGEST_PATH: Final = 4096
"""Most characters of a path that is resolved; systems accept no more. A longer one is never allowed."""


def absolute(path: str, folder: str) -> str:
    """Return a path that may be relative to a folder or begin with ``~``. Its ``..`` stay."""
    if "\0" not in path:  # such a text cannot name a user's folder, and raises
        path = os.path.expanduser(path)  # noqa: PTH111 - Path fails over unknown users
    return str(Path(folder, path))


def path_forms(path: str, folder: str) -> set[str]:
    """Return a path as written and with all links resolved."""
    whole = absolute(path, folder)
    written = _slashes(os.path.normpath(whole))
    if len(whole) > LONGEST_PATH:  # each part would cost as much as all before it
        return {written}
    try:
        return {written, _slashes(os.path.realpath(whole))}
    except ValueError:  # a null character
        return {written}


def path_patterns(patterns: Iterable[str], folder: str) -> list[str]:
    """Return globs as absolute ones, as written and with all links resolved."""
    found: list[str] = []
    for pattern in patterns:
        whole = _slashes(os.path.normpath(absolute(pattern, folder)))
        start = literal_start(whole)
        found += [whole, _slashes(os.path.realpath(start or "/")).rstrip("/") + whole[len(start) :]]
    return found


def any_path(globs: Iterable[str], path: str, *, fold: bool = False) -> bool:
    """Return whether one of the globs matches a path."""
    return any(path_glob(glob, fold=fold).fullmatch(path) for glob in globs)


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder or something in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def folded(path: str) -> str:
    """Return a path in the form in which file systems that ignore case and composition compare it."""
    return unicodedata.normalize("NFC", path).casefold()


def _slashes(path: str) -> str:
    return path.replace(os.sep, "/")
