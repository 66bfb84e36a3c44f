"""The recipes for further agents, without installing any."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from interop.more_agents import DEEPAGENTS, HERMES, MORE_AGENTS, QUIRKS

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe

MODEL_URL = "http://127.0.0.1:1"


@pytest.mark.skipif(sys.platform == "win32", reason="the uv of this test is a shell script")
def test_installs_the_pinned_package_into_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        '#!/bin/sh\necho "$*" >> "$0.calls"\n[ "$1" = venv ] || exit 0\n'
        'for folder; do :; done\nmkdir -p "$folder/bin"\ncp "$0" "$folder/bin/hermes-acp"\n'
    )
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(uv.parent), prepend=os.pathsep)
    folder = tmp_path / "cache" / "hermes-agent-0.19.0"
    assert HERMES.install(tmp_path / "cache") == folder / "venv" / "bin" / "hermes-acp"
    made, installed = (tmp_path / "bin" / "uv.calls").read_text().splitlines()
    assert made.startswith("venv ")
    assert made.endswith(f" --python 3.12 {folder}/venv")
    assert installed.endswith(f" --python {folder}/venv/bin/python hermes-agent[acp,mcp]==0.19.0")


def test_a_missing_uv_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="uv is needed"):
        DEEPAGENTS.install(tmp_path)


@pytest.mark.parametrize("agent", MORE_AGENTS, ids=lambda agent: agent.name)
def test_every_agent_is_kept_to_its_home_and_to_loopback(agent: AgentRecipe, tmp_path: Path) -> None:
    folder = tmp_path / f"{agent.package.rpartition('/')[2]}-{agent.version}"
    program = folder / agent.programs / agent.executable
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    (folder / "complete").touch()
    home = tmp_path / "home"
    launch = agent.launch(home=home, model_url=MODEL_URL, cache=tmp_path)
    assert (launch.env["HOME"], launch.env["HTTPS_PROXY"]) == (str(home), MODEL_URL)
    settings = [*launch.env.values(), *[path.read_text() for path in home.rglob("*") if path.is_file()]]
    assert any(f"{MODEL_URL}/v1" in setting for setting in settings)


def test_what_is_explained_is_of_agents_that_are_tried() -> None:
    assert {name for name, _ in QUIRKS} <= {agent.name for agent in MORE_AGENTS}
