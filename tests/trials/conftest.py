"""Git without the settings of this machine, and a folder for worktrees."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from shutil import copytree
from typing import TYPE_CHECKING

import pytest
from trials.repositories import Repository, use_git_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def warm(warm_python: str) -> str:
    """The workers begin within milliseconds; alone, DBOS takes a second to import."""
    return warm_python


@pytest.fixture(scope="session")
def first_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that is copied for each test."""
    folder = tmp_path_factory.mktemp("first") / "api"
    with pytest.MonkeyPatch.context() as patch:
        use_git_settings(patch, folder.parent)
        return Repository.make(folder).path


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own settings of git. Worktrees are made in a folder of the test's."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return use_git_settings(monkeypatch, tmp_path)


@pytest.fixture
def repository(tmp_path: Path, first_repository: Path) -> Repository:
    """A repository with a commit."""
    return Repository(copytree(first_repository, tmp_path / "api", symlinks=True))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own with half a megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or subprocess.run(mount, check=False).returncode:
        pytest.skip("a small disk takes a root user on Linux")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
