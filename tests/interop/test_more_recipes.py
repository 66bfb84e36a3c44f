"""The recipes for further agents, without installing any."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from interop.more_agents import DEEPAGENTS, HERMES, MORE_AGENTS
from interop.pins import PINS

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
    folder = tmp_path / "cache" / f"hermes-agent-{HERMES.version}-{PINS.until[:10]}"
    assert HERMES.install(tmp_path / "cache") == folder / "venv" / "bin" / "hermes-acp"
    made, installed = (tmp_path / "bin" / "uv.calls").read_text().splitlines()
    assert made.startswith("venv ")
    assert made.endswith(f" {folder}/venv")
    assert f" --exclude-newer {PINS.until} " in installed
    assert installed.endswith(f" --python {folder}/venv/bin/python hermes-agent[acp,mcp]=={HERMES.version}")


def test_a_missing_uv_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(FileNotFoundError, match="uv is needed"):
        DEEPAGENTS.install(tmp_path)


@pytest.mark.parametrize("agent", MORE_AGENTS, ids=lambda agent: agent.name)
def test_every_agent_is_kept_to_its_home_and_to_loopback(agent: AgentRecipe, tmp_path: Path) -> None:
    folder = tmp_path / f"{agent.package.rpartition('/')[2]}-{agent.version}-{PINS.until[:10]}"
    program = folder / agent.programs / agent.executable
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    (folder / "complete").touch()
    home = tmp_path / "home"
    launch = agent.launch(home=home, model_url=MODEL_URL, cache=tmp_path)
    assert (launch.env["HOME"], launch.env["HTTPS_PROXY"]) == (str(home), MODEL_URL)
    settings = [*launch.env.values(), *[path.read_text() for path in home.rglob("*") if path.is_file()]]
    assert any(f"{MODEL_URL}/v1" in setting for setting in settings)


@pytest.mark.skipif(sys.platform == "win32", reason="the programs of this test are shell scripts")
def test_a_shim_of_pyenv_that_does_not_run_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, status in (("bin/python3.12", 127), (".pyenv/versions/3.12.9/bin/python", 0)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    uv = tmp_path / "bin" / "uv"
    uv.write_text('#!/bin/sh\necho "$*" >> "$0.calls"\n')
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(uv.parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="holds no program"):
        HERMES.install(tmp_path / "cache")
    made, _ = (tmp_path / "bin" / "uv.calls").read_text().splitlines()
    assert f" --python {tmp_path}/.pyenv/versions/3.12.9/bin/python " in made
