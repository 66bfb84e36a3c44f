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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ("alone", "claim", "forget", "give_back", "new_name", "remove", "sweep", "take")

logger = logging.getLogger("thinkwell")

NAME: Final = re.compile(r"thinkwell-[0-9a-f]{16}")
"""A folder of another name is never removed, whatever a mark says: an agent can write in one."""

TRIES: Final = 1000
"""How often to try to be alone, a hundred times a second: what it is needed for takes milliseconds."""

YOUNG: Final = 60.0
"""Seconds in which a mark may be without a lock: its process is about to take it."""


def new_name() -> str:
    """Return a name that no other worktree has."""
    return f"thinkwell-{secrets.token_hex(8)}"


def claim(mark: Path, folder: Path) -> int:
    """Make a mark for a folder, and return the lock: an open file."""
    mark.mkdir()
    lock = os.open(mark / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        take(lock, wait=True)
        os.write(lock, os.fsencode(folder))
    except OSError:
        forget(mark, lock)
        raise
    return lock


@contextmanager
def alone(common: Path) -> Generator[list[int]]:
    """Be the only one that makes or removes worktrees of a repository: git fails where it finds half of one.

    Yields:
        The lock, an open file, where there is one.
    """
    if sys.platform == "win32":
        yield []
    else:
        lock = os.open(common, os.O_RDONLY)
        try:
            for _ in range(TRIES):  # pragma: no branch - a stopped process holds nothing up forever
                if take(lock, wait=False):
                    break
                time.sleep(0.01)
            yield [lock]
        finally:
            os.close(lock)


def sweep(common: Path) -> None:
    """Remove the worktrees of processes that have died.

    Args:
        common: A repository's git folder.
    """
    for mark in common.glob("thinkwell-*"):
        if NAME.fullmatch(mark.name):
            with suppress(FileNotFoundError):  # another process is faster
                _remove_dead(mark)


def _remove_dead(mark: Path) -> None:
    made = mark.stat().st_mtime
    lock = os.open(mark / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    folder = Path(os.fsdecode(os.read(lock, 1 << 16))) if take(lock, wait=False) else None
    if folder is not None and folder.name == mark.name:
        remove(mark, folder, lock)
    elif folder is not None and time.time() - made > YOUNG:
        forget(mark, lock)
    else:
        os.close(lock)


def remove(mark: Path, folder: Path, lock: int) -> None:
    """Remove a worktree: its folder, what git knows of it, and at last its mark. The lock is given back.

    What cannot be removed is logged, and tried again by the next `sweep`.
    """
    with alone(mark.parent):
        for known in (mark.parent / "worktrees").glob("*/gitdir"):
            if known.parent.joinpath(os.fsdecode(known.read_bytes())).is_relative_to(folder):
                _remove_tree(known.parent)
    _remove_tree(folder)
    if folder.exists():
        os.close(lock)
    else:
        forget(mark, lock)


def forget(mark: Path, lock: int) -> None:
    """Remove a mark, and give its lock back."""
    give_back(lock, lambda: _remove_tree(mark))


def give_back(lock: int, remove: Callable[[], object]) -> None:
    """Remove what a lock is in, and give the lock back: on Windows before, as no open file can be removed."""
    if sys.platform == "win32":
        os.close(lock)
    with suppress(OSError):  # another process has opened it meanwhile
        remove()
    if sys.platform != "win32":  # pragma: no branch - the tests run on POSIX
        os.close(lock)


def _remove_tree(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for place, folders, files in os.walk(folder):  # what is in a folder that cannot be written stays
        for name in (*folders, *(files if sys.platform == "win32" else ())):
            if not (path := Path(place, name)).is_symlink():  # pragma: no branch - most links are gone by now
                path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # pragma: no branch - for root nothing but what is in use stays
        logger.warning("%s could not be removed; the next worktree of that repository tries it again", folder)


def take(lock: int, *, wait: bool) -> bool:
    """Take a lock, if it is free or `wait` says so. The system gives it back when the process dies."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError):  # the second one on Windows
        return False
    return True
