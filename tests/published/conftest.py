"""What a release has: the files that are uploaded, and an index that has them with all that they need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT: Final = Path(__file__).parents[2]

NEEDED: Final = (
    *(
        "agent-client-protocol",
        "colorama",
        "editables",
        "hatchling",
        "mypy",
        "pip",
        "prompt-toolkit",
        "pytest",
        "rich",
        "ruff",
        "typer",
    ),
)
"""What a user installs beside what thinkwell always needs: its extra `cli`, and what builds and checks a new
project; uv wants to know of what only Windows needs, too."""


def run(*command: str | Path, cwd: Path = ROOT.parent, env: Mapping[str, str] | None = None) -> str:
    """Run a program on a machine that has no settings for package managers, and return what it prints."""
    told = re.compile("PIP_|UV_|PIPX_|PYTHON|VIRTUAL_ENV|THINKWELL_")
    inherited = {name: value for name, value in os.environ.items() if not told.match(name)}
    ran = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=600,
        env={**inherited, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", **(env or {})},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def in_environment(folder: Path, program: str) -> Path:
    """Return the path of a program of a virtual environment."""
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / program


def needed_by(names: Iterable[str]) -> set[str]:
    """Return these distributions and all that they need, of those that are installed here."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name not in found:
            found.add(name)
            requirements = map(Requirement, distribution(name).requires or ())
            waiting.extend(
                one.name for one in requirements if not one.marker or one.marker.evaluate({"extra": ""})
            )
    return found


def repack(name: str, folder: Path) -> None:
    """Make a wheel of a distribution that is installed here, so that the test needs no network."""
    installed = distribution(name)
    tags = re.findall(r"^Tag: (.*)$", installed.read_text("WHEEL") or "", re.MULTILINE)
    columns = zip(*(tag.split("-") for tag in tags), strict=True)  # interpreters, interfaces, platforms
    whole = "-".join(".".join(dict.fromkeys(column)) for column in columns)
    wheel = folder / f"{name.replace('-', '_')}-{installed.version}-{whole}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in installed.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                archive.write(str(installed.locate_file(file)), str(file))


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the archive of sources, and the wheel that is built of it."""
    folder = tmp_path_factory.mktemp("release")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="session")
def wheel(release: Path) -> Path:
    """The wheel."""
    (wheel,) = release.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def wheels(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheels of all that a user may need."""
    folder = tmp_path_factory.mktemp("wheels")
    (folder / wheel.name).write_bytes(wheel.read_bytes())
    requirements = map(Requirement, distribution("thinkwell").requires or ())
    always = [one.name for one in requirements if not one.marker]
    for name in needed_by([*always, *NEEDED]):
        repack(name, folder)
    return folder


@pytest.fixture(scope="session")
def index(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of an index with these wheels, as PEP 503 has it."""
    folder = tmp_path_factory.mktemp("index") / "simple"
    for wheel in wheels.iterdir():
        place = folder / wheel.name.partition("-")[0].replace("_", "-").replace(".", "-").lower()
        place.mkdir(parents=True)
        (place / "index.html").write_text(f'<a href="{wheel.as_uri()}">{wheel.name}</a>', "utf-8")
    return folder.as_uri()
