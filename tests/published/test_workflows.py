"""The workflows that test and publish on the forge."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from published.conftest import ROOT
from ruamel.yaml import YAML

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))


def jobs(name: str) -> dict[str, Any]:
    table: dict[str, Any] = YAML(typ="safe").load(FOLDER / name)  # pyright: ignore[reportUnknownMemberType]
    return dict(table["jobs"])


@pytest.mark.long
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_forge_can_read_them(file: Any) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", file]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_the_tests_run_on_every_system_and_every_python() -> None:
    matrix = jobs("test.yml")["test"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    minors = re.search(r"^MINORS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert minors is not None
    assert matrix["python"] == [f"3.{minor}" for minor in sorted(minors[1].split())]


def test_only_what_was_tested_and_tried_is_published_and_no_token_is_kept() -> None:
    release = jobs("release.yml")
    may_publish = [name for name, job in release.items() if "id-token" in job.get("permissions", {})]
    assert may_publish == ["publish"]
    assert set(release["publish"]["needs"]) == {"test", "build", "try"}
    assert release["test"]["uses"] == "./.github/workflows/test.yml"
    assert "secrets" not in (FOLDER / "release.yml").read_text("utf-8")
