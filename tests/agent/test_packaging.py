"""The wheel installs into an empty environment beside the official SDK, in either order, and both work."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
PROGRAM = """
import acp, anyio, thinkwell, thinkwell_acp
from thinkwell import open_agent

async def main():
    async with open_agent("builtin") as agent:
        return await agent.think(int).text("How many?").run()

assert acp.PROTOCOL_VERSION == 1
assert isinstance(anyio.run(main), int)
print(*(module.__file__ for module in (acp, thinkwell, thinkwell_acp)))
"""


def run(*command: str | Path) -> str:
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT.parent
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


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
    tag = re.search(r"^Tag: (.*)$", installed.read_text("WHEEL") or "", re.MULTILINE)
    assert tag is not None
    wheel = folder / f"{name.replace('-', '_')}-{installed.version}-{tag[1]}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in installed.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                archive.write(str(installed.locate_file(file)), str(file))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (ours,) = folder.iterdir()
    with zipfile.ZipFile(ours) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    tops = {name.split("/")[0] for name in names}
    packages = {"thinkwell", "thinkwell_acp", "_thinkwell_pytest.py"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages
    assert {"thinkwell/py.typed", "thinkwell_acp/py.typed"} <= set(names)
    requirements = [
        Requirement(line) for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    ]
    always = [one.name for one in requirements if one.marker is None]
    for name in needed_by([*always, "agent-client-protocol"]):
        repack(name, folder)
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    "order", [("thinkwell", "agent-client-protocol"), ("agent-client-protocol", "thinkwell")]
)
def test_it_stands_beside_the_official_sdk(wheels: Path, tmp_path: Path, order: tuple[str, str]) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    python = tmp_path / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    for name in order:
        pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
        run(*pip, "install", "--no-index", "--find-links", wheels, "--no-compile", name)
    run(sys.executable, "-m", "pip", "--python", python, "check")
    for file in run(python, "-I", "-c", PROGRAM).split():
        assert (tmp_path / "env").resolve() in Path(file).resolve().parents
