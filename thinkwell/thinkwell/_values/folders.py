"""Folders that a program names."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path


def existing_folder(path: str | os.PathLike[str], who: str) -> str:
    """Return the absolute form of a path, without ``..``.

    Raises:
        NotADirectoryError: There is no such folder.
    """
    return os.path.normpath(folder_at(path, who))


def folder_at(path: str | os.PathLike[str], who: str) -> Path:
    """Return the absolute path of a folder.

    Raises:
        NotADirectoryError: There is no such folder.
        TypeError: It is not a path, but opens one.
    """
    if isinstance(path, AbstractAsyncContextManager):
        raise TypeError(
            f"{who}: open {path!r:.100} first, with `async with … as folder:`, and give that: only "
            "open_agent does it itself"
        )
    folder = absolute_path(path, who)
    if not folder.is_dir():
        raise NotADirectoryError(f"{who}: there is no folder {folder}")
    return folder


def absolute_path(path: str | os.PathLike[str], who: str) -> Path:
    """Return the absolute form of a path.

    Raises:
        NotADirectoryError: It is relative, and the current folder has been deleted.
    """
    try:
        return Path(path).absolute()
    except FileNotFoundError:
        raise NotADirectoryError(
            f"{who}: the current folder of this program has been deleted; give the absolute path of another, "
            "or change to one that exists"
        ) from None
