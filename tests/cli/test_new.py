"""``thinkwell new``: what it makes works, and nothing is written over."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command

from thinkwell import __version__

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {
    "pyproject.toml",
    "README.md",
    ".gitignore",
    "src/my_shop/__init__.py",
    "src/my_shop/main.py",
    "tests/test_main.py",
}


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_a_project_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_command("new", "My Shop")
    assert (done.code, done.err) == (0, "")
    assert files_in(tmp_path / "My Shop") == NAMES
    assert "cd 'My Shop'" in done.out
    assert "uv run my-shop" in done.out
    for name in NAMES:
        assert not re.search(r"@[A-Z]+@", (tmp_path / "My Shop" / name).read_text("utf-8"))
    assert 'my-shop = "my_shop.main:main"' in (tmp_path / "My Shop" / "pyproject.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("source", "requirement"),
    [
        (None, f"thinkwell[cli]>={__version__}"),
        ({"url": "file:///tmp/a%20b/thinkwell.whl"}, "thinkwell[cli] @ file:///tmp/a%20b/thinkwell.whl"),
        (
            {"url": "https://forge.test/thinkwell", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "thinkwell[cli] @ git+https://forge.test/thinkwell@c0ffee",
        ),
    ],
    ids=["index", "wheel", "repository"],
)
def test_it_requires_thinkwell_from_where_it_was_installed(
    source: dict[str, object] | None, requirement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / f"thinkwell-{__version__}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Name: thinkwell\nVersion: {__version__}\n")
    if source is not None:
        (installed / "direct_url.json").write_text(json.dumps(source))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert run_command("new", str(tmp_path / "shop")).code == 0
    settings = tomllib.loads((tmp_path / "shop" / "pyproject.toml").read_text("utf-8"))
    assert settings["project"]["dependencies"] == [requirement]
    assert ("metadata" in settings["tool"]["hatch"]) == (source is not None)


def test_it_is_made_beside_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "LICENSE").write_text("mine", "utf-8")
    (tmp_path / "src").mkdir()
    done = run_command("new", ".", "--name", "My.Shop")
    assert done.code == 0
    assert files_in(tmp_path) == {*NAMES, "LICENSE"}
    assert "  cd " not in done.out


@pytest.mark.parametrize("name", ["README.md", "tests/test_main.py"])
def test_nothing_is_written_over(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to("nowhere")  # also a link that leads nowhere
    done = run_command("new", str(tmp_path), "--name", "shop")
    assert done.code == 2
    assert f"has {name} already" in done.err
    assert files_in(tmp_path) == {name}


@pytest.mark.parametrize("name", ["", "src", "tests"])
def test_a_file_in_place_of_a_folder(name: str, tmp_path: Path) -> None:
    place = tmp_path / "shop"
    place.mkdir(exist_ok=True) if name else None
    (place / name).write_text("mine", "utf-8")
    done = run_command("new", str(place))
    assert done.code == 2
    assert "is not a folder" in done.err
    assert (place / name).read_text("utf-8") == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="paths have another limit")
def test_what_was_begun_is_taken_away_where_the_disk_refuses(tmp_path: Path) -> None:
    place = tmp_path / "shop"
    while (missing := 4070 - len(str(place))) > 0:  # there is room for pyproject.toml, and not for src
        place /= "a" * min(200, missing - 1)
    done = run_command("new", str(place), "--name", "long-name-of-a-shop")
    assert done.code == 2
    assert "File name too long" in done.err
    assert "Nothing was made" in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "begin with a letter"),
        ("3d", "begin with a letter"),
        ("shop-", "begin with a letter"),
        ("laden straße", "begin with a letter"),
        ("../shop", "begin with a letter"),
        ("shop\n", "begin with a letter"),
        ("s" * 51, "longer than 50"),
        ("json", "would be json"),
        ("Class", "would be class"),
        ("thinkwell", "would be thinkwell"),
        ("think.Well-acp", "would be think_well_acp"),
    ],
)
def test_names_that_cannot_be(name: str, why: str, tmp_path: Path) -> None:
    done = run_command("new", str(tmp_path / "place"), "--name", name)
    if "would be think_well" in why:  # that one is another
        assert done.code == 0
        return
    assert done.code == 2
    assert why in done.err
    assert "give another" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["json", "42", "日本"])
def test_folders_whose_names_no_project_can_have(folder: str, tmp_path: Path) -> None:
    done = run_command("new", str(tmp_path / folder))
    assert done.code == 2
    assert "--name" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that was made."""
    folder = tmp_path_factory.mktemp("made") / "made-here"
    assert run_command("new", str(folder)).code == 0
    return folder


def check(project: Path, *command: str, code: int = 0) -> str:
    """Run a program in the project, as a person would."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("THINKWELL_")}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={**environment, "THINKWELL_BUILTIN_PACE": "0", "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_its_tests_pass(project: Path) -> None:
    plugins = ("-p", "no:asyncio", "-p", "no:trio", "-p", "no:cacheprovider")  # those of this environment
    shown = check(project, "-W", "error", "-m", "pytest", *plugins, "-q")
    assert " passed" in shown
    assert "skipped" not in shown


@pytest.mark.long
def test_it_runs(project: Path) -> None:
    shown = check(project, "-W", "error", "-m", "made_here.main", "src", code=0)
    assert shown.startswith("# Review\n\n")


@pytest.mark.long
def test_linters_and_type_checkers_are_content(project: Path) -> None:
    check(project, "-m", "ruff", "check", "--no-cache")
    check(project, "-m", "ruff", "format", "--check", "--no-cache", "src", "tests")
    check(project, "-m", "mypy", "--strict", "--cache-dir", os.devnull)
