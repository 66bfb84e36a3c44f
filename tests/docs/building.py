"""``python tests/docs/building.py FOLDER``: build the documentation as a site.

It is built from a copy: Zensical keeps pages in ``.cache`` beside its settings, shows them again though
docstrings have changed, and with ``--clean`` deletes all of that folder, where our downloads are too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def build_site(folder: Path) -> None:
    """Write the site into a folder, and raise `CalledProcessError` where anything is wrong with it."""
    with tempfile.TemporaryDirectory() as copy:
        for name in ("docs", "thinkwell", "acp"):
            shutil.copytree(ROOT / name, Path(copy, name), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "zensical.toml", copy)
        zensical = (sys.executable, "-m", "zensical", "build", "--strict")
        subprocess.run(zensical, cwd=copy, check=True)
        shutil.copytree(Path(copy, "site"), folder, dirs_exist_ok=True)


if __name__ == "__main__":
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    build_site(Path(sys.argv[1]))
