"""Files that are put back when git fails while it writes them: it removes all of them before."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from thinkwell.trials import _marks
from thinkwell.trials._errors import WorktreeError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from thinkwell.trials._git import Git

__all__ = ("backed_up",)


@contextmanager
def backed_up(git: Git, names: Sequence[str]) -> Generator[None]:
    """Put files back as they were if git fails in a block.

    Args:
        git: Git for their repository.
        names: The paths of the files in it. Some may not exist yet.

    Raises:
        WorktreeError: Git has failed, and the files are as they were, or the error says where they are.
    """
    # There, links take no room: it is the same file system.
    git_folder = Path(git("rev-parse", "--absolute-git-dir"))
    _sweep(git.repository, git_folder)
    own = git_folder / f"thinkwell-apply-{secrets.token_hex(4)}"
    files = own / "files"
    try:
        git.locks.append(_marks.claim(own, own))
        missing = _keep(git.repository, names, files)
    except OSError as exc:
        _forget(git, own)
        raise git.failure(f"nothing was changed: {exc}; if the disk is full, make room") from exc
    try:
        yield
    except BaseException as exc:
        try:
            _put_back(git.repository, names, files, missing)
        except OSError as failure:  # pragma: no cover - a disk that fails in both directions
            raise git.failure(
                f"only a part was changed, and cannot be put back: {failure}; the files as they were are in "
                f"{files}: copy them back; changes.save(…) writes the patch"
            ) from exc
        _forget(git, own)
        if isinstance(exc, WorktreeError):
            raise git.failure(f"nothing was changed: {exc.reason}", exc.detail) from None
        raise
    _forget(git, own)


def _forget(git: Git, own: Path) -> None:
    while git.locks:
        os.close(git.locks.pop())
    shutil.rmtree(own, ignore_errors=True)


def _sweep(root: Path, git_folder: Path) -> None:
    """Remove what dead processes have left, unless a file is missing: there, that is the only copy."""
    for left in git_folder.glob("thinkwell-apply-*"):
        with suppress(OSError):
            lock = os.open(left / "lock", os.O_RDWR)
            dead = _marks.take(lock, wait=False) and os.read(lock, 1)
            kept = (path.relative_to(left / "files") for path in left.glob("files/**/*"))
            if dead and all(os.path.lexists(root / path) for path in kept):
                _marks.forget(left, lock)
            else:
                os.close(lock)


def _keep(root: Path, names: Sequence[str], own: Path) -> list[Path]:
    """Keep files in a folder; return the folders that they need and that do not exist."""
    missing = set[Path]()
    for name in names:
        path, copy = root / name, own / name
        missing.update(folder for folder in path.parents if not folder.is_dir())
        if path.is_symlink() or path.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, copy, follow_symlinks=False)
            except (OSError, NotImplementedError):  # another file system, or one without links
                shutil.copy2(path, copy, follow_symlinks=False)
    return sorted(missing, reverse=True)


def _put_back(root: Path, names: Sequence[str], own: Path, missing: Sequence[Path]) -> None:
    paths = (root / name for name in sorted(names, reverse=True))  # what is in a folder before it
    for path in (path for path in paths if path.is_symlink() or not path.is_dir()):
        with suppress(NotADirectoryError):
            path.unlink(missing_ok=True)
    for folder in missing:
        with suppress(OSError):  # it was not made, or has other files
            folder.rmdir()
    for name in names:
        if os.path.lexists(own / name):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(own / name, root / name)
