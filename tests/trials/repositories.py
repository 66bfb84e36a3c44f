"""Git repositories for tests, and what is left of worktrees in them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="files, links and programs of POSIX systems")

FILES: Final[Mapping[str, str | bytes]] = {
    ".gitignore": "*.log\n",
    "app.py": "one\ntwo\nthree\n",
    "docs/guide.md": "# Guide\n",
    "logo.png": bytes(range(256)),
    "old.txt": "gone soon\n",
    "run.sh": "#!/bin/sh\n",
}


class Repository:
    """A git repository.

    Args:
        path: Its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls, path: Path, files: Mapping[str, str | bytes] = FILES) -> Repository:
        """Make one with a commit."""
        path.mkdir(parents=True)
        made = cls(path)
        made.git("init", "-q", "-b", "main")
        made.write(files)
        made.commit("first")
        return made

    def git(self, *words: str, ok: bool = True) -> str:
        """Run git in it, as a user does."""
        words = ("-c", "protocol.file.allow=always", *words)
        done = subprocess.run(["git", *words], cwd=self.path, check=False, capture_output=True, text=True)
        assert not ok or done.returncode == 0, (words, done.stderr)
        return done.stdout.removesuffix("\n")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, message: str) -> str:
        """Commit everything, and return the commit."""
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def submodule(self, path: str, of: Repository) -> Repository:
        """Add a submodule."""
        self.git("submodule", "--quiet", "add", "--", str(of.path), path)
        self.commit(f"add {path}")
        return Repository(self.path / path)

    def state(self) -> tuple[str, str, str]:
        """Return what no worktree may change: what is checked out, and the state of the files."""
        refs = self.git("for-each-ref") + self.git("rev-parse", "HEAD", ok=False)
        return refs, self.git("status", "--porcelain=v2", "--branch", "--ignored"), self.git("stash", "list")


def files_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the files below a folder, with their modes and contents; nothing of git's."""
    return {
        str(path.relative_to(folder)): _content(path)
        for path in folder.rglob("*")
        if ".git" not in path.relative_to(folder).parts and (path.is_symlink() or path.is_file())
    }


def _content(path: Path) -> tuple[int, bytes]:
    if path.is_symlink():
        return 0, os.fsencode(path.readlink())
    return path.stat().st_mode & 0o111, path.read_bytes()


def left_of_worktrees(*repositories: Repository) -> list[Path]:
    """Return what worktrees have left, in the folder for temporary files and in repositories."""
    found = list(Path(tempfile.gettempdir()).glob("thinkwell-*"))
    for repository in repositories:
        git_folder = repository.path / repository.git("rev-parse", "--git-common-dir")
        found += [
            *git_folder.glob("thinkwell-*"),
            *git_folder.glob("worktrees/*"),
            *git_folder.rglob("*.lock"),
        ]
    return found


def executable(path: Path, code: str) -> Path:
    """Write a program in Python."""
    path.write_text(f"#!{sys.executable} -IS\n{code}")
    path.chmod(0o755)
    return path


def use_git_settings(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Have git use these settings, and no others."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        patch.delenv(name)
    file = folder / "settings-of-git"
    file.write_text("[user]\n name = Ada\n email = ada@example.org\n")
    patch.setenv("GIT_CONFIG_GLOBAL", str(file))
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return file
