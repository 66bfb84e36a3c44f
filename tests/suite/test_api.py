"""What the comparison of the API with the last release finds."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from suite.api import breaking, last_release

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A repository of a package with two releases."""
    (tmp_path / "src" / "package").mkdir(parents=True)
    source = tmp_path / "src" / "package" / "__init__.py"
    source.write_text("def open_agent(name: str) -> None: ...\ndef close() -> None: ...\n", "utf-8")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in ("init -q", "add .", "commit -q -m first", "tag v0.9.0", "tag v0.10.0"):
        subprocess.run(["git", *who, *command.split()], cwd=tmp_path, check=True)
    return tmp_path


def test_the_last_release_is_the_newest_version(
    released: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert last_release(released) == "v0.10.0"
    assert last_release(tmp_path_factory.mktemp("none")) is None


def test_a_change_that_breaks_programs_has_to_be_in_the_changelog(released: Path) -> None:
    source = released / "src" / "package" / "__init__.py"
    source.write_text("def open_agent(name: str, folder: str) -> None: ...\n", "utf-8")

    def found(changelog: str) -> list[str]:
        return breaking(released, "package", "src", "v0.10.0", changelog)

    first, second = found("# Changelog\n\n## [Unreleased]\n\n## [0.10.0]\n\n- `close`, `open_agent`\n")
    assert "open_agent" in first
    assert "close" in second
    assert found("\n## [Unreleased]\n\n- `close()` is gone.\n") == [first]
    assert found("\n## [Unreleased]\n\n- `close` is gone.\n- `open_agent(folder=)` is needed.\n") == []
