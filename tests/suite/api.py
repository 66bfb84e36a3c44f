"""``python tests/suite/api.py``: compare the public API with the last release; print what breaks.

The last release is the newest tag ``v…``. `make static` fails on a change that breaks programs unless the
"Unreleased" part of the changelog names what has changed.
"""
# ruff: noqa: T201

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import griffe

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = {"thinkwell": "thinkwell", "thinkwell_acp": "acp"}
"""The folder that each package is in."""


def main() -> int:
    """Print what is found, and return an exit status."""
    tag = last_release(ROOT)
    if tag is None:
        print("There is no tag v… in this repository: the API is compared with nothing.")
        return 0
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = [
        line
        for package, folder in PACKAGES.items()
        for line in breaking(ROOT, package, folder, tag, changelog)
    ]
    print(*found, f"{len(found)} changes since {tag} break programs and are not in the changelog.", sep="\n")
    return bool(found)


def last_release(repository: Path) -> str | None:
    """Return the newest tag of a release."""
    command = ("git", "tag", "--list", "v[0-9]*", "--sort=-version:refname")
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.split()), None)


def breaking(repository: Path, package: str, folder: str, tag: str, changelog: str) -> list[str]:
    """Return the changes of a package that break programs, without those that the changelog names."""
    old = griffe.load_git(package, ref=tag, repo=repository, search_paths=[folder])
    new = griffe.load(package, search_paths=[repository / folder])
    named = re.findall(r"[\w.]+", unreleased(changelog))
    return [
        change.explain(griffe.ExplanationStyle.ONE_LINE)
        for change in griffe.find_breaking_changes(old, new)
        if not any(change.obj.path.endswith(f".{name}") for name in named)
    ]


def unreleased(changelog: str) -> str:
    """Return what the changelog says of the next release, in backticks."""
    part = changelog.partition("\n## [Unreleased]\n")[2].partition("\n## ")[0]
    return " ".join(re.findall(r"`([^`\n]+)`", part))


if __name__ == "__main__":
    sys.exit(main())
