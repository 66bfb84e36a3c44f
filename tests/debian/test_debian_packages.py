"""What a test needs of Debian is found, or fetched."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from debian_packages import Program, find_program

STATUS = Path("/var/lib/dpkg/status")


def version_of(program: Program) -> str:
    done = subprocess.run(
        [program.path, "--version"], env=program.env, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has everything but Redis on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for programs in os.get_exec_path():
        for program in Path(programs).glob("*"):
            link = folder / program.name
            if not program.name.startswith("redis") and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(folder))


def test_what_is_on_path_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = tmp_path / "redis-server"
    there.write_text("#!/bin/sh\n", "utf-8")
    there.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    program = find_program("redis-server", cache=tmp_path / "cache")

    assert program == Program(path=str(there), env=os.environ.copy())
    assert not (tmp_path / "cache").exists()


@pytest.mark.long
@pytest.mark.usefixtures("hidden")
def test_what_is_not_on_path_is_fetched_with_its_libraries_and_only_once(tmp_path: Path) -> None:
    status = tmp_path / "status"  # a machine that has nothing of Redis
    packages = STATUS.read_text("utf-8").split("\n\n") if STATUS.exists() else []
    theirs = re.compile(r"Package: (redis|libjemalloc|liblzf|lua-|liblua)")
    status.write_text("\n\n".join(package for package in packages if not theirs.match(package)), "utf-8")
    cache = tmp_path / "cache"

    program = find_program("redis-server", cache=cache, installed=status)

    assert "Redis server v=" in version_of(program)
    fetched = Path(program.path)
    assert fetched.is_relative_to(cache)
    assert list(cache.glob("redis-server-*/**/libjemalloc.so.*"))
    assert program.env["LD_LIBRARY_PATH"].startswith(str(cache))
    assert not list(cache.glob("**/*.deb"))

    before = fetched.stat()
    assert find_program("redis-server", cache=cache, installed=status) == program
    assert fetched.stat() == before


@pytest.mark.long
@pytest.mark.usefixtures("hidden")
def test_lists_of_packages_are_fetched_where_there_are_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "apt.conf"
    settings.write_text(f'Dir::State::lists "{tmp_path}/none";\n', "utf-8")
    monkeypatch.setenv("APT_CONFIG", str(settings))

    program = find_program("redis-server", cache=tmp_path / "cache")

    assert "Redis server v=" in version_of(program)


def test_elsewhere_the_test_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(pytest.skip.Exception, match="redis-server is not on PATH"):
        find_program("redis-server", cache=tmp_path / "cache")
