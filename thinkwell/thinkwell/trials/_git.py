"""Runs git so that nothing an agent has written chooses what runs.

An agent may change the configuration of its worktree's repository, which is that of the user's. So hooks, the
file system monitor and every transport are off, and files are read and written with an own git folder
(`thinkwell.trials._checkout`), which knows nothing of the repository's configuration.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from thinkwell.trials._errors import WorktreeError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

__all__ = ("Git", "paths")

LIMIT: Final = 600.0
"""Seconds for one call of git: a checkout of a very large repository on a slow disk takes minutes."""

POLL: Final = 0.05
"""Seconds between two looks at whether a call is still wanted."""

KEPT: Final = (
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
"""Variables of git that stay: who commits, and where the user's own configuration is."""

SETTINGS: Final = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.quotePath=true",
    "core.splitIndex=false",
    "gc.auto=0",
    "maintenance.auto=false",
)

ADVICE: Final = (
    (
        r"not a git repository",
        "it is no git repository; give a folder of one, or run `git init` and commit there",
    ),
    (
        r"dubious ownership",
        "git refuses it, since it belongs to another user; if you trust it, do what git says",
    ),
    (
        r"No space left|Disk quota|unable to write",
        "git could not write; if the disk is full, free some space, or set TMPDIR to a folder on another one",
    ),
    (r"Permission denied|Read-only", "a file or folder cannot be read or written; see what git says"),
    (r"smudge filter lfs|git-lfs", "Git LFS could not fill in its files; run `git lfs fetch` there first"),
    (r"unmerged|error building trees", "it is in the middle of a merge; finish or abort that first"),
    (r"tell me who you are|empty ident", "git does not know who commits; set user.name and user.email"),
    (r"needed a single revision|unknown revision", "there is no such commit, branch or tag"),
)


class Git:
    """Git for one repository.

    Args:
        repository: The folder that errors name.
        lock: A descriptor that each process of git holds open, so that a lock lasts until it has ended.
        stop: Once it is set, a call is broken off.
    """

    def __init__(
        self, repository: Path, lock: int | None = None, stop: threading.Event | None = None
    ) -> None:
        self.repository: Path = repository
        self.lock = lock
        self.stop: threading.Event = stop or threading.Event()

    def __call__(
        self,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        ok: Container[int] = (0,),
    ) -> str:
        """Run git, and return what it wrote, without the last line end.

        Raises:
            WorktreeError: Git is missing, has failed, or was broken off.
        """
        return os.fsdecode(self.raw(*words, cwd=cwd, env=env, stdin=stdin, ok=ok)).removesuffix("\n")

    def raw(
        self,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        ok: Container[int] = (0,),
    ) -> bytes:
        """The same, in bytes."""
        program = shutil.which("git")
        if program is None:
            raise WorktreeError(str(self.repository), "there is no program git; install it")
        if self.stop.is_set():
            raise WorktreeError(str(self.repository), "it was given up")
        settings = (word for setting in SETTINGS for word in ("-c", setting))
        with subprocess.Popen(
            [program, "--no-pager", *settings, *words],
            cwd=cwd or self.repository,
            env=_environment() | dict(env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=() if self.lock is None or sys.platform == "win32" else (self.lock,),
            start_new_session=True,  # Ctrl-C is for the program, which breaks it off
        ) as process:
            try:
                out, err = self._read(process, stdin)
            except BaseException:
                _kill(process)
                raise
        if process.returncode in ok:
            return out
        said = err.decode(errors="replace").strip()
        advice = (text for pattern, text in ADVICE if re.search(pattern, said, re.IGNORECASE))
        failed = f"`git {' '.join(words)}` failed with exit code {process.returncode}; see what git says"
        raise WorktreeError(str(self.repository), next(advice, failed), said)

    def _read(self, process: subprocess.Popen[bytes], stdin: bytes) -> tuple[bytes, bytes]:
        until, given = time.monotonic() + LIMIT, stdin or None
        while True:
            try:
                return process.communicate(given, timeout=POLL)
            except subprocess.TimeoutExpired:
                given = None  # the first call has it
                if self.stop.is_set():
                    raise WorktreeError(str(self.repository), "it was given up") from None
                if time.monotonic() > until:  # pragma: no cover - takes minutes
                    raise WorktreeError(
                        str(self.repository),
                        f"git did not end within {LIMIT:.0f} seconds; see what holds it up",
                    ) from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill git with the filters that it has started."""
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)


def paths(listed: str) -> list[str]:
    """Return the paths of a listing with ``-z``."""
    return [path for path in listed.split("\0") if path]


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(KEPT)
    }
    return kept | {
        "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched: transports are programs of a configuration
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
