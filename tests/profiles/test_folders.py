"""Where settings and what can be fetched again are looked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from thinkwell.agents import find_agent, update_agents

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the variables of POSIX systems")

ENTRY = {"id": "odd", "version": "1.2.3", "distribution": {"npx": {"package": "odd"}}}

VARIABLES = {"XDG_CONFIG_HOME": ".config", "XDG_CACHE_HOME": ".cache"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


async def check(config: Path, cache: Path) -> None:
    """Check that settings are looked for in one folder, and the registry is kept in the other."""
    profile = config / "thinkwell" / "agents" / "odd.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text('title = "Quite odd"\n', "utf-8")
    Path("source.json").write_text(json.dumps({"agents": [ENTRY]}), "utf-8")
    update = await update_agents("source.json")
    assert update.path == cache / "thinkwell" / "registry.json"
    assert find_agent("odd").files == (str(update.path), str(profile))
    assert find_agent("odd").title == "Quite odd"


async def test_the_variables_say_where(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable, str(home / "else" / variable))
    await check(home / "else" / "XDG_CONFIG_HOME", home / "else" / "XDG_CACHE_HOME")


@pytest.mark.parametrize("value", [None, "", "relative/path"])
async def test_without_usable_variables_they_are_in_the_home_folder(
    value: str | None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        for variable in VARIABLES:
            monkeypatch.setenv(variable, value)
    await check(home / ".config", home / ".cache")
