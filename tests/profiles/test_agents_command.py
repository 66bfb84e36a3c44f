"""``python -m thinkwell.agents``: what a person sees of the agents that are known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from profiles.machine import HERE

from thinkwell.agents import known_agents
from thinkwell.agents import program as command

if TYPE_CHECKING:
    from pathlib import Path

ODD = {
    "id": "odd",
    "name": "Odd",
    "version": "1.2.3",
    "description": "An agent.",
    "distribution": {"npx": {"package": "odd-agent@1.2.3", "args": ["--acp"]}},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of a user who has set nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "config"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert command.main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("arguments", [(), ("list",)])
def test_all_agents_are_listed_with_the_command(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(capsys, *arguments).splitlines()
    names = ["builtin", *(profile.name for profile in known_agents())]
    assert [line.split()[0] for line in lines] == names
    (gemini,) = [line for line in lines if line.startswith("gemini ")]
    assert "Gemini CLI" in gemini
    assert gemini.endswith(" --acp")
    assert any("is downloaded" in line for line in lines if "npx" not in line and "uvx" not in line)


def test_all_that_is_known_of_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / "config" / "thinkwell" / "agents" / "claude.toml"
    file.parent.mkdir(parents=True)
    file.write_text('tools_via = ["stdio"]\n[env]\nstrip = ["X_*"]\n', "utf-8")
    shown = said(capsys, "show", "claude@latest")
    for part in (
        "claude: Claude Code",
        "claude-agent-acp@latest",
        "version    latest",
        "sets       ENABLE_TOOL_SEARCH=0",
        "strips     X_*",
        "tools via  stdio",
        f"           {file}",
        "quirk      ",
    ):
        assert part in shown
    assert "install    " in said(capsys, "show", "goose")
    assert "version    as you have installed it" in said(capsys, "show", "builtin")


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    everybody = json.loads(said(capsys, "list", "--json"))
    assert [agent["name"] for agent in everybody][1:] == [profile.name for profile in known_agents()]
    (codex,) = json.loads(said(capsys, "show", "codex", "--json"))
    assert codex["npx"]["package"] == "@agentclientprotocol/codex-acp"
    assert codex["ends_on_eof"] is False


def test_news_of_a_registry(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = home / "registry.json"
    source.write_text(json.dumps({"agents": [ODD, {"id": "bad"}]}), "utf-8")
    first = said(capsys, "update", str(source))
    assert first.startswith(f"1 agents of {source} are in {home}")
    assert "new      odd" in first
    assert "skipped  bad: " in first
    assert "npx --yes" in said(capsys, "show", "odd")
    target = {"archive": "https://example.com/odd.zip", "cmd": "./odd"}
    binary = {**ODD, "distribution": {"binary": {HERE: target, "plan9-mips": target}}}
    source.write_text(json.dumps({"agents": [binary]}), "utf-8")
    said(capsys, "update", str(source))
    assert "download   https://example.com/odd.zip (without a checksum)" in said(capsys, "show", "odd")
    source.write_text(
        json.dumps({"agents": [{**ODD, "distribution": {"binary": {"plan9-mips": target}}}]}), "utf-8"
    )
    said(capsys, "update", str(source))
    assert f"download   nothing for {HERE}" in said(capsys, "show", "odd")
    source.write_text(json.dumps({"agents": [ODD]}), "utf-8")
    said(capsys, "update", str(source))
    source.write_text(json.dumps({"agents": [{**ODD, "version": "1.2.4"}]}), "utf-8")
    assert "changed  odd: 1.2.3 to 1.2.4" in said(capsys, "update", str(source))
    source.write_text(json.dumps({"agents": [{**ODD, "id": "even"}]}), "utf-8")
    assert "gone     odd" in said(capsys, "update", str(source))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [(("show", "nobody"), "no known agent has that name"), (("update", "nowhere.json"), "nowhere.json")],
)
def test_what_does_not_work_is_one_line_and_an_exit_code(
    arguments: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 1
    told = capsys.readouterr()
    assert problem in told.err
    assert told.out == ""


@pytest.mark.skipif(sys.platform == "win32", reason="deletes the current folder")
@pytest.mark.usefixtures("home", "deleted_folder")
def test_a_current_folder_that_was_deleted_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 1
    assert capsys.readouterr() == ("", "the current folder has been deleted; change to one that exists\n")


def test_as_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    run = [sys.executable, "-W", "error", "-m", "thinkwell.agents"]
    listed = subprocess.run(run, env=os.environ, capture_output=True, text=True, check=True, timeout=60)
    assert "opencode" in listed.stdout
    with pytest.raises(SystemExit, match="2"):
        command.main(["shout"])
    assert "usage: python -m thinkwell.agents" in capsys.readouterr().err
