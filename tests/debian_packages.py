"""Programs that tests need and pip cannot install: from PATH, or else out of Debian's packages.

The packages are unpacked into a folder of the checkout. Nothing is installed, so no root is needed, and the
machine stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

__all__ = ("CACHE", "Program", "find_program")

CACHE: Final = Path(os.environ.get("THINKWELL_DEBIAN_CACHE", Path(__file__).parents[1] / ".cache" / "debian"))
"""Where packages are kept between runs, one folder per program and release of Debian."""

PATIENCE: Final = 600.0
"""Seconds for a download: a browser and its libraries are 100 MB."""

DOWNLOADING: Final = ("--yes", "--quiet", "--no-install-recommends", "--download-only", "--reinstall")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How to start a program."""

    path: str
    env: Mapping[str, str]
    """The variables of the environment that it is to be started with: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a program is."""

    packages: tuple[str, ...]
    """Whatever these need beside them is fetched where the machine does not have it."""
    file: str
    """Its path below the root; ``*`` stands for a version."""
    on_path: bool = True
    """Whether Debian installs it on PATH."""


_SOURCES: Final = {
    "chromium": _Source(packages=("chromium", "chromium-common"), file="usr/lib/chromium/chromium"),
    "firefox-esr": _Source(packages=("firefox-esr",), file="usr/lib/firefox-esr/firefox-esr"),
    "fonts-inter": _Source(
        packages=("fonts-inter", "fonts-jetbrains-mono", "fonts-dejavu-core"), file="usr/share/fonts"
    ),
    "git-lfs": _Source(packages=("git-lfs",), file="usr/bin/git-lfs"),
    "initdb": _Source(packages=("postgresql",), file="usr/lib/postgresql/*/bin/initdb", on_path=False),
    "nginx": _Source(packages=("nginx",), file="usr/sbin/nginx"),
    "redis-server": _Source(packages=("redis-server", "redis-tools"), file="usr/bin/redis-server"),
}


def find_program(name: str, *, cache: Path = CACHE, installed: Path | None = None) -> Program:
    """Return how to start a program, after having fetched it where it is not installed.

    Skips the test where it is neither there nor to be had.

    Args:
        name: Its name on PATH: ``chromium``, ``firefox-esr``, ``git-lfs``, ``initdb``, ``nginx`` or
            ``redis-server``.
        cache: Where to keep packages.
        installed: A file like dpkg's ``status``, which says what the machine has already. The machine's own.
    """
    source = _SOURCES[name]
    found = shutil.which(name) or (None if source.on_path else _there(Path("/"), source))
    if found is not None:
        return Program(path=found, env=os.environ.copy())
    release = _release()
    if release is None:
        pytest.skip(f"{name} is not on PATH, and only Debian's packages are known: install it")
    folder = cache / f"{name}-{release}"
    try:
        if not folder.exists():
            with _locked(cache / f"apt-{release}.lock"):
                if not folder.exists():
                    _Apt(cache / f"apt-{release}", installed).unpack(source.packages, folder)
        found = _there(folder, source)
        assert found is not None, f"{source.packages} have no {source.file}"
        return Program(path=found, env=os.environ | _surroundings(folder))
    except (AssertionError, OSError, subprocess.TimeoutExpired) as exc:
        why = str(exc).strip().splitlines()[-1]
        pytest.skip(f"{name} is not on PATH, and cannot be fetched into {cache}: {why}")


def _there(root: Path, source: _Source) -> str | None:
    return next(map(str, root.glob(source.file)), None)


def _release() -> str | None:
    """Return which Debian this is, for the name of a folder; ``None``: another system."""
    try:
        lines = Path("/etc/os-release").read_text("utf-8").splitlines()
    except OSError:
        return None
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    if facts.get("ID") != "debian" or shutil.which("apt-get") is None:
        return None
    version = facts.get("VERSION_CODENAME", "unknown").strip('"')
    return f"{version}-{os.uname().machine}"


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """Let one process after the other use apt: each empties its folder first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        if sys.platform != "win32":
            import fcntl  # is not everywhere

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(slots=True)
class _Apt:
    """apt, with folders of its own instead of the machine's."""

    folder: Path
    installed: Path | None
    options: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        (self.folder / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        self.options = [
            "Debug::NoLocking=true",  # the machine's locks are root's
            "APT::Sandbox::User=root",  # apt's own user cannot write into our folder
            "Acquire::Retries=3",
            f"Dir::Cache={self.folder}",
        ]
        if self.installed is not None:
            self.options.append(f"Dir::State::status={self.installed}")

    def unpack(self, packages: tuple[str, ...], folder: Path) -> None:
        """Put packages, and what else they need that the machine does not have, into a new folder."""
        archives = self.folder / "archives"
        for old in archives.glob("*.deb"):
            old.unlink()
        try:
            self._download(packages)
        except AssertionError:  # the machine knows of no packages, or only of old ones
            lists = self.folder / "lists"
            (lists / "partial").mkdir(parents=True, exist_ok=True)
            self.options.append(f"Dir::State::lists={lists}")
            self._run("update", "--quiet")
            self._download(packages)
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for archive in archives.glob("*.deb"):
            _run("dpkg-deb", "--extract", str(archive), str(partial))
            archive.unlink()
        partial.rename(folder)

    def _download(self, packages: tuple[str, ...]) -> None:
        # What is installed, but not on PATH, would not be downloaded without --reinstall.
        said = self._run("install", *DOWNLOADING, *packages)
        for package in packages:
            assert list((self.folder / "archives").glob(f"{package}_*.deb")), said

    def _run(self, *arguments: str) -> str:
        options = [part for option in self.options for part in ("--option", option)]
        return _run("apt-get", *options, *arguments)


def _run(*command: str) -> str:
    """Run a command, and return what it has written."""
    done = subprocess.run(
        command,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>{folder}/usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>{folder}/var/cache/fontconfig</cachedir>
  <include ignore_missing="yes">{folder}/etc/fonts/conf.d</include>
</fontconfig>
"""


def _surroundings(folder: Path) -> dict[str, str]:
    """Return what a program needs to know to find what was unpacked with it."""
    libraries = {path.parent for path in folder.glob("**/lib/*-linux-gnu*/**/lib*.so*")}
    before = os.environ.get("LD_LIBRARY_PATH")
    shared = os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share")
    variables = {
        "LD_LIBRARY_PATH": ":".join([*map(str, sorted(libraries)), *([before] if before else [])]),
        "XDG_DATA_DIRS": f"{folder}/usr/share:{shared}",
    }
    if (folder / "usr/share/fonts").exists():
        fonts, text = folder / "fonts.conf", FONTS.format(folder=folder)
        if not fonts.exists() or fonts.read_text("utf-8") != text:  # the checkout may be a copy of another
            fresh = folder / f"fonts.conf.{os.getpid()}"
            fresh.write_text(text, "utf-8")
            fresh.replace(fonts)
        variables["FONTCONFIG_FILE"] = str(fonts)
    return variables
