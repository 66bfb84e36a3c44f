"""``python -m suite.fetched``: fetch the programs that tests start, so that no case waits for a download.

A program that cannot be had is no error here: the cases that need it say so themselves.
"""
# ruff: noqa: T201

from __future__ import annotations

import subprocess

import pytest
from debian_packages import find_program
from node_packages import node_packages


def main() -> None:
    """Fetch them into ``.cache``."""
    for name in ("redis-server", "chromium", "firefox-esr", "git-lfs", "nginx", "initdb"):
        try:
            find_program(name)
        except pytest.skip.Exception as exc:
            print(exc)
    try:
        node_packages()
    except (OSError, subprocess.CalledProcessError) as exc:
        print(f"npm's packages cannot be fetched: {exc}")


if __name__ == "__main__":
    main()
