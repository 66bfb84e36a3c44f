"""Marks of worktrees: whose process lives, and what the dead have left.

A mark is a folder in a repository's git folder, named as the worktree's own folder is. The process that made
it, and each git that it runs, hold a lock in it, which names the worktree's folder.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import stat
import sys
import time
from pathlib import Path
from typing import Final

__all__ = ("claim", "new_name", "remove", "sweep")

logger = logging.getLogger("thinkwell")

NAME: Final = re.compile(r"thinkwell-[0-9a-f]{16}")
"""A folder of another name is never removed, whatever a mark says: an agent can write in one."""

YOUNG: Final = 60.0
"""Seconds in which a mark may be without a lock: its process is about to take it."""


def new_name() -> str:
    """Return a name that no other worktree has."""
    return f"thinkwell-{secrets.token_hex(8)}"


def claim(mark: Path, folder: Path) -> int:
    """Make a mark for a folder, and return the lock: an open file."""
    mark.mkdir()
    lock = os.open(mark / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    _take(lock, wait=True)
    os.write(lock, os.fsencode(folder))
    return lock


def sweep(common: Path) -> None:
    """Remove the worktrees of processes that have died.

    Args:
        common: A repository's git folder.
    """
    for mark in common.glob("thinkwell-*"):
        if not NAME.fullmatch(mark.name):
            continue
        try:
            lock = os.open(mark / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # pragma: no cover - another process is faster
            continue
        try:
            if not _take(lock, wait=False):
                continue
            folder = Path(os.fsdecode(os.read(lock, 1 << 16)))
            if folder.name == mark.name:
                remove(mark, folder)
            elif time.time() - mark.stat().st_mtime > YOUNG:
                _remove_tree(mark)
        finally:
            os.close(lock)


def remove(mark: Path, folder: Path) -> None:
    """Remove a worktree: its folder, what git knows of it, and at last its mark.

    What cannot be removed is logged, and tried again by the next `sweep`.
    """
    for known in (mark.parent / "worktrees").glob("*/gitdir"):
        if known.parent.joinpath(os.fsdecode(known.read_bytes()).strip("\n")).is_relative_to(folder):
            _remove_tree(known.parent)
    _remove_tree(folder)
    if not folder.exists():
        _remove_tree(mark)


def _remove_tree(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for place, folders, files in os.walk(folder):  # what is in a folder that cannot be written stays
        for name in (*folders, *(files if sys.platform == "win32" else ())):
            if not (path := Path(place, name)).is_symlink():
                path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        logger.warning("%s could not be removed; the next worktree of that repository tries it again", folder)


def _take(lock: int, *, wait: bool) -> bool:
    """Take a lock, if it is free or `wait` says so. The system gives it back when the process dies."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(lock, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
