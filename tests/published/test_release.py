"""What is uploaded: it is what an index takes, and it installs with every usual tool and works."""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from published.conftest import ROOT, in_environment, run

from thinkwell import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = pytest.mark.long

CLI = "thinkwell[cli]"


def test_an_index_takes_both_files(release: Path) -> None:
    files = sorted(release.iterdir())
    assert [file.name for file in files] == [
        f"thinkwell-{__version__}-py3-none-any.whl",
        f"thinkwell-{__version__}.tar.gz",
    ]
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    run(sys.executable, "-m", "check_wheel_contents", files[0], cwd=ROOT)


def test_what_is_in_them(release: Path, wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    packages = {"thinkwell", "thinkwell_acp", "_thinkwell_pytest.py"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages
    assert {"thinkwell/py.typed", "thinkwell_acp/py.typed"} <= set(names)
    (source,) = release.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml", "Makefile"} <= files


# Installing


def installed_by_pip(index: str, folder: Path) -> Path:
    run(sys.executable, "-m", "venv", folder / "env")
    python = in_environment(folder / "env", "python")
    run(python, "-m", "pip", "install", "--no-compile", "--index-url", index, CLI)
    run(python, "-m", "pip", "check")
    return in_environment(folder / "env", "thinkwell")


def installed_by_pipx(index: str, folder: Path) -> Path:
    folders = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(folder / "bin"), "PIP_INDEX_URL": index}
    pipx = (sys.executable, "-m", "pipx", "install", "--python", sys.executable)
    run(*pipx, CLI, env={**of_uv(index, folder), **folders})  # it installs by uv where there is one
    return folder / "bin" / "thinkwell"


def installed_by_uv(index: str, folder: Path) -> Path:
    run(uv(), "tool", "install", "--python", sys.executable, CLI, env=of_uv(index, folder))
    return folder / "bin" / "thinkwell"


def uv(program: str = "uv") -> Path:
    """Return the path of a program that comes with uv."""
    found = shutil.which(program, path=str(Path(sys.executable).parent))
    assert found is not None
    return Path(found)


def of_uv(index: str, folder: Path) -> dict[str, str]:
    """Return what uv is told: an index, folders of its own, and to download no Python."""
    folders = {"UV_CACHE_DIR": "cache", "UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin"}
    told = {name: str(folder / place) for name, place in folders.items()}
    told["TMPDIR"] = str(folder)  # it leaves the files of its locks
    return {**told, "UV_DEFAULT_INDEX": index, "UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy"}


@pytest.mark.parametrize("install", [installed_by_pip, installed_by_pipx, installed_by_uv])
def test_the_command_is_installed_and_works(
    install: Callable[[str, Path], Path], index: str, tmp_path: Path
) -> None:
    thinkwell = install(index, tmp_path)
    assert run(thinkwell, "version").startswith(f"thinkwell {__version__} ")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "parser.py").write_text("def parse(text):\n    return text.split()\n", "utf-8")
    asked = run(thinkwell, "run", "--quiet", "Which files are here?", cwd=tmp_path / "notes")
    assert "parser.py" in asked


def test_uvx_runs_it_without_an_installation(index: str, tmp_path: Path) -> None:
    uvx = (uv("uvx"), "--python", sys.executable, "--from", CLI)
    told = run(*uvx, "thinkwell", "version", env=of_uv(index, tmp_path))
    assert told.startswith(f"thinkwell {__version__} ")


# New projects


def new_project(thinkwell: Path, folder: Path) -> Path:
    """Make a project, and return its folder."""
    run(thinkwell, "new", folder / "my-shop")
    return folder / "my-shop"


def test_a_new_project_installs_and_passes_with_the_wheel_of_a_checkout(
    wheels: Path, wheel: Path, tmp_path: Path
) -> None:
    """It does as its README says, and the index does not have thinkwell."""
    shutil.copytree(wheels, tmp_path / "others", ignore=shutil.ignore_patterns("thinkwell-*"))
    only = ("--no-index", "--find-links", tmp_path / "others")
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = in_environment(tmp_path / "env", "python")
    run(python, "-m", "pip", "install", "--no-compile", *only, f"{wheel}[cli]")
    project = new_project(in_environment(tmp_path / "env", "thinkwell"), tmp_path)
    run(sys.executable, "-m", "venv", ".venv", cwd=project)
    python = in_environment(project / ".venv", "python")
    run(python, "-m", "pip", "install", *only, "--upgrade", "pip")
    run(python, "-m", "pip", "install", *only, "-e", ".", "--group", "test", cwd=project)
    passes(in_environment(project / ".venv", "pytest"), cwd=project)
    assert run(in_environment(project / ".venv", "my-shop"), ".", cwd=project).startswith("# Review\n")
    told = {**of_uv("", tmp_path), "UV_PYTHON": sys.executable}
    by_uv = run(uv(), "run", *only, "my-shop", ".", cwd=project, env=told)
    assert by_uv.startswith("# Review\n")


def test_a_new_project_installs_and_passes_with_an_index(index: str, tmp_path: Path) -> None:
    project = new_project(installed_by_uv(index, tmp_path), tmp_path)
    told = {**of_uv(index, tmp_path), "UV_PYTHON": sys.executable}
    assert run(uv(), "run", "my-shop", ".", cwd=project, env=told).startswith("# Review\n")
    passes(uv(), "run", "--group", "test", "pytest", cwd=project, env=told)


def passes(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Run the tests of a project, which pass, all of them."""
    said = run(*command, "-q", cwd=cwd, env=env)
    assert " passed" in said
    assert "skipped" not in said
