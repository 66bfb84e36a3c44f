"""Runs git so that nothing an agent has written chooses what runs.

An agent may change the configuration of its worktree's repository, which is that of the user's. So hooks, the
file system monitor and every transport are off, and files are read and written with a git folder of our own
(`thinkwell.trials._checkout`), which knows nothing of the repository's configuration.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Final

from thinkwell.trials._errors import WorktreeError

if TYPE_CHECKING:
    from collections.abc import Mapping
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
    "GIT_LFS_SKIP_SMUDGE",
)
"""Variables of git that stay: who commits, where the user's own configuration is, whether LFS is used."""

VARIABLES: Final = {
    "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched: a configuration may name programs for that
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

SETTINGS: Final = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.quotePath=true",
    "core.splitIndex=false",
    "gc.auto=0",
)

ADVICE: Final = {
    "not a git repository": "it is no git repository; give a folder of one, or `git init` and commit there",
    "dubious ownership": "git refuses it, as it belongs to another user; if you trust it, do what git says",
    "No space left|Disk quota|unable to write": "git could not write; if the disk is full, make room, or "
    "set TMPDIR to a folder on another one",
    "filter lfs": "Git LFS could not fill in its files; run `git lfs fetch` there first",
    "error building trees": "it is in the middle of a merge; finish or abort that first",
    "tell me who you are|empty ident": "git does not know who commits; set user.name and user.email",
}
"""What to do, by a pattern of what git says."""


class Git:
    """Git for one repository.

    Args:
        repository: The folder that errors name.
        stop: Once it is set, a call is broken off.
    """

    def __init__(self, repository: Path, stop: threading.Event | None = None) -> None:
        self.repository = repository
        self.locks: list[int] = []
        """Open files that each process of git holds, too, so that a lock lasts until it has ended."""
        self._stop = stop or threading.Event()

    def __call__(
        self, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> str:
        """Run git, and return what it wrote, without the last line end. What is not UTF-8 is in surrogates.

        Raises:
            WorktreeError: Git is missing, has failed, or was broken off.
        """
        program = shutil.which("git")
        if program is None:
            raise self.failure("there is no program git; install it")
        if self._stop.is_set():  # pragma: no cover - between two calls
            raise self.failure("it was given up")
        settings = (word for setting in SETTINGS for word in ("-c", setting))
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name.startswith(KEPT)
        }
        # Not a pipe: where communicate() gives up for a moment, it never writes the rest.
        with tempfile.TemporaryFile() as given:
            try:
                given.write(stdin.encode(errors="surrogateescape"))
                given.seek(0)
                process = subprocess.Popen(
                    [program, *settings, *words],
                    cwd=cwd or self.repository,
                    env=kept | VARIABLES | dict(env or {}),
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=() if sys.platform == "win32" else self.locks,
                    start_new_session=True,  # Ctrl-C is for the program, which breaks it off
                )
            except OSError as exc:
                raise self.failure(f"git could not be started there: {exc}") from exc
        with process:
            try:
                out, err = self._read(process)
            except BaseException:
                _kill(process)
                raise
        if process.returncode == 0:
            return out.decode(errors="surrogateescape").removesuffix("\n")
        said = err.decode(errors="replace").strip()
        advice = (text for pattern, text in ADVICE.items() if re.search(pattern, said))
        failed = f"`git {' '.join(words)}` failed with exit code {process.returncode}; see what git says"
        raise self.failure(next(advice, failed), said)

    def failure(self, reason: str, detail: str = "") -> WorktreeError:
        """Return an error of this repository."""
        return WorktreeError(str(self.repository), reason, detail)

    def _read(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        until = time.monotonic() + LIMIT
        while True:
            try:
                return process.communicate(timeout=POLL)
            except subprocess.TimeoutExpired:
                if self._stop.is_set() or time.monotonic() > until:
                    raise self.failure(f"git was broken off; it may take {LIMIT:.0f} seconds") from None


def paths(listed: str) -> list[str]:
    """Return the paths of a listing with ``-z``."""
    return [path for path in listed.split("\0") if path]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill git with the filters that it has started."""
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
