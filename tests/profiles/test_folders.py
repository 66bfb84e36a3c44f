"""Where settings and what can be fetched again are looked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thinkwell.agents._folders import cache_folder, config_folder

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the variables of POSIX systems")

FOLDERS = [(config_folder, "XDG_CONFIG_HOME", ".config"), (cache_folder, "XDG_CACHE_HOME", ".cache")]


@pytest.mark.parametrize(("folder", "variable", "_default"), FOLDERS)
def test_the_variable_says_where(
    folder: Callable[[], Path], variable: str, _default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "/somewhere/else")
    assert folder() == Path("/somewhere/else/thinkwell")


@pytest.mark.parametrize(("folder", "variable", "default"), FOLDERS)
@pytest.mark.parametrize("value", [None, "", "relative/path"])
def test_without_a_usable_variable_it_is_in_the_home_folder(
    folder: Callable[[], Path],
    variable: str,
    default: str,
    value: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value)
    assert folder() == tmp_path / default / "thinkwell"
