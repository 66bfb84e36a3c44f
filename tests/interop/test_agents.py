"""The recipes for real agents, without installing any."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from interop.agents import AGENTS, CLAUDE, CODEX, CODEX_ASKING, OPENCODE_ASKING, NpmAgent
from interop.live import CUT_OFF
from interop.pins import PINS

if TYPE_CHECKING:
    from pathlib import Path

MODEL_URL = "http://127.0.0.1:1"


def cached(cache: Path, agent: NpmAgent) -> Path:
    """Put a program where an installation would have put it."""
    folder = cache / f"{agent.package.rpartition('/')[2]}-{agent.version}-{PINS.until[:10]}"
    program = folder / "node_modules" / ".bin" / agent.executable
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    (folder / "complete").touch()
    return program


def test_what_the_cache_has_is_not_installed_again(tmp_path: Path) -> None:
    program = cached(tmp_path / "cache", CLAUDE)
    launch = CLAUDE.launch(home=tmp_path / "home", model_url=MODEL_URL, cache=tmp_path / "cache")
    assert launch.command == (str(program),)
    assert launch.env["ANTHROPIC_BASE_URL"] == MODEL_URL
    assert launch.env["CLAUDE_CONFIG_DIR"] == f"{tmp_path}/home/.claude"


@pytest.mark.skipif(sys.platform == "win32", reason="the npm of this test is a shell script")
def test_installs_the_pinned_package_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(
        '#!/bin/sh\necho "$*" >> "$0.calls"\nmkdir -p "$3/node_modules/.bin"\n'
        'cp "$0" "$3/node_modules/.bin/codex-acp"\n'
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(npm.parent), prepend=os.pathsep)
    programs = {CODEX.install(tmp_path / "cache") for _ in range(2)}
    folder = tmp_path / "cache" / f"codex-acp-{CODEX.version}-{PINS.until[:10]}"
    assert programs == {folder / "node_modules" / ".bin" / "codex-acp"}
    (call,) = (tmp_path / "bin" / "npm.calls").read_text().splitlines()
    assert call.startswith(f"install --prefix {folder} ")
    assert call.endswith(f" --before={PINS.until} @agentclientprotocol/codex-acp@{CODEX.version}")


@pytest.mark.parametrize("agent", [*AGENTS, *CUT_OFF], ids=lambda agent: agent.name)
def test_every_agent_is_kept_to_its_home_and_to_loopback(agent: NpmAgent, tmp_path: Path) -> None:
    cached(tmp_path, agent)
    launch = agent.launch(home=tmp_path / "home", model_url=MODEL_URL, cache=tmp_path)
    assert launch.env["HOME"] == str(tmp_path / "home")
    assert launch.env["HTTPS_PROXY"] == launch.env["https_proxy"] == MODEL_URL
    assert MODEL_URL in {*launch.env.values()}


def test_settings_name_the_stand_in(tmp_path: Path) -> None:
    for agent in (OPENCODE_ASKING, CODEX):
        cached(tmp_path, agent)
        agent.launch(home=tmp_path, model_url=MODEL_URL, cache=tmp_path)
    opencode = json.loads((tmp_path / ".config/opencode/opencode.json").read_text())
    assert opencode["provider"]["standin"]["options"]["baseURL"] == f"{MODEL_URL}/v1"
    assert opencode["permission"] == {"*": "ask"}
    codex = tomllib.loads((tmp_path / ".codex/config.toml").read_text())
    assert codex["model_providers"]["standin"]["base_url"] == f"{MODEL_URL}/v1"


def test_a_missing_npm_and_a_broken_cache_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="npm is needed"):
        CLAUDE.install(tmp_path)
    cached(tmp_path, CLAUDE).unlink()
    with pytest.raises(FileNotFoundError, match="holds no program claude-agent-acp"):
        CLAUDE.install(tmp_path)


def test_a_model_can_have_a_command_run() -> None:
    assert CLAUDE.shell_call("ls $HOME") == ("Bash", {"command": "ls $HOME", "description": "A command"})
    name, args = CODEX_ASKING.shell_call("ls")
    assert (name, args["cmd"]) == ("exec_command", "ls")
