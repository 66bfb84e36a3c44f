"""How ``thinkwell serve`` starts: with what it was given, and with what is not there."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from cli.command import run_command
from cli.serve_process import ADA, serving_web, started, watched
from cli.typing_in import home, scripted

from thinkwell.testing import script

if sys.platform == "win32":
    pytest.skip("paths of POSIX systems", allow_module_level=True)

__all__ = ("home",)


@pytest.fixture
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that ``~`` stands for, which is not the current one."""
    folder = home.parent / "ada"
    (folder / "api").mkdir(parents=True)
    (folder / "api" / "lexer.py").write_text("", "utf-8")
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_what_no_shell_has_replaced(at_home: Path) -> None:
    (at_home / "token").write_text(ADA, "utf-8")
    (at_home / "token").chmod(0o600)
    (at_home / "rules.toml").write_text('otherwise = "deny"\n', "utf-8")
    options = ("--agent", "builtin", "--cwd", "~/api", "--permissions", "~/rules.toml")
    with (
        serving_web(*options, "--journal=~/runs.db", "--token-file", "~/token") as web,
        web.client(ADA) as client,
    ):
        assert web.told[0] == f"Serving builtin. Runs are kept in {at_home}/runs.db. Ctrl-C ends it."
        (agent,) = client.get("/api").json()["agents"]
        assert agent["permissions"] == ["rules"]
        assert "lexer.py" in watched(client, started(client, "What is here?"))[-1]["result"]
    assert (at_home / "runs.db").is_file()
    assert not Path("~").exists()


def test_a_file_of_settings_at_home(at_home: Path) -> None:
    script.says("Played.").save(at_home / "script.json")
    (at_home / "agent").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', "utf-8")
    (at_home / "agent").chmod(0o755)
    (at_home / "serve.toml").write_text(
        'journal = "~/runs.db"\n[agents.reader]\nagent = "builtin"\nfolders = { api = "~/api" }\n'
        '[agents.player]\ncommand = "~/agent -m thinkwell.testing ~/script.json"\n',
        "utf-8",
    )
    with serving_web("--config", "~/serve.toml") as web, web.client() as client:
        assert len(web.told) == 2
        assert "lexer.py" in watched(client, started(client, "What is here?"))[-1]["result"]
        assert watched(client, started(client, agent="player"))[-1]["result"] == "Played."


@pytest.mark.long
def test_models_by_the_option_and_by_a_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_MODELS", "swift,large")
    Path("serve.toml").write_text(
        'journal = "memory"\n[agents.builtin]\nmodels = ["swift", "large"]\n', "utf-8"
    )
    for options, models in (
        (("--agent", "builtin", "--model", "large", "--journal", "memory"), ["large"]),
        (("--config", "serve.toml"), ["swift", "large"]),
    ):
        with serving_web(*options) as web, web.client() as client:
            assert client.get("/api").json()["agents"][0]["models"] == models
            told = watched(client, started(client, "What is here?", model="large"))
            assert [event["model"] for event in told if event.get("type") == "session"] == ["large"]


@pytest.mark.parametrize("folder", ["~/nowhere", "~nobody-of-that-name", "nowhere"])
def test_a_folder_that_is_not_there_is_told_where_it_was_looked_for(folder: str, at_home: Path) -> None:
    done = run_command("serve", "--cwd", folder)
    at = Path.cwd() / folder if folder[:2] != "~/" else at_home / "nowhere"
    assert done.code == 2
    assert f"the folder {at} does not exist" in "".join(re_joined(done.err))


def re_joined(told: str) -> str:
    """Return what is told in a box, as one line."""
    return " ".join(told.replace("│", " ").split())


# Names


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("{python} -m thinkwell.testing {script}", "thinkwell.testing"),
        pytest.param(
            "{python} -X dev -m thinkwell.testing {script}", "thinkwell.testing", marks=pytest.mark.long
        ),
        ("./agent {script}", "agent"),
    ],
)
def test_what_an_agent_of_a_command_is_called(line: str, name: str, home: Path) -> None:
    scripted(home, script.says("Hi."))
    Path("agent").write_text(
        f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -m thinkwell.testing $1\n", "utf-8"
    )
    Path("agent").chmod(0o755)
    command = line.format(python=sys.executable, script=home / "script.json")
    with serving_web("--command", command, "--journal", "memory") as web, web.client() as client:
        assert web.told[0].startswith(f"Serving {name}. ")
        assert watched(client, started(client, agent=name))[-1]["result"] == "Hi."


def test_several_commands(home: Path) -> None:
    first = scripted(home, script.says("First."))
    for name in ("second", "third"):
        Path(name).write_text("#!/bin/sh\nexit 3\n", "utf-8")
        Path(name).chmod(0o755)
    options = (
        "--command",
        first,
        "--command",
        "./second --acp",
        "--command",
        "./third",
        "--agent",
        "builtin",
    )
    with serving_web(*options, "--journal", "memory") as web, web.client() as client:
        names = [agent["name"] for agent in client.get("/api").json()["agents"]]
        assert names == ["builtin", "thinkwell.testing", "second", "third"]
    done = run_command("serve", "--command", "./second --acp", "--command", "./second")
    assert done.code == 2
    assert "two agents are called second; call them something else in a file" in re_joined(done.err)


# Agents that are not there


def test_a_program_that_is_not_there_is_told_at_the_start(home: Path) -> None:
    options = ("--agent", "builtin", "--command", "no-such-agent --acp", "--journal", "memory")
    with serving_web(*options) as web, web.client() as client:
        told = web.until_told("Warning: ")
        assert told == (
            "Warning: Agent 'no-such-agent' was not found: there is no program 'no-such-agent' on the PATH; "
            "install it, or give its whole path. Until then its runs fail."
        )
        assert watched(client, started(client))[-1]["status"] == "completed"
        assert watched(client, started(client, agent="no-such-agent"))[-1]["status"] == "failed"


def test_what_fetches_an_agent_is_not_started_for_that(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether npx is there is seen, and no more."""
    npx = home / "bin" / "npx"
    npx.parent.mkdir()
    npx.write_text(f"#!/bin/sh\ntouch {home}/was-started\n", "utf-8")
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", str(npx.parent))
    config = 'journal = "memory"\n[agents.claude]\n[agents.ours]\nagent = "fast-agent"\n'
    with serving_web(config=config) as web:
        told = web.until_told("Warning: ")
        assert told.startswith(
            "Warning: Agent 'fast-agent' was not found: there is no program 'uvx' on the PATH"
        )
    assert len(web.told) == 3
    assert not (home / "was-started").exists()
    npx.unlink()
    with serving_web(config=config) as web:
        told = web.until_told("Warning: ")
        assert told.startswith("Warning: Agent 'claude' was not found: there is no program 'npx' on the PATH")
        assert "Node.js" in told


def test_a_file_that_is_no_program(home: Path) -> None:
    with serving_web("--command", "./parser.py", "--journal", "memory") as web:
        told = web.until_told("Warning: ")
        assert "./parser.py exists but is not an executable program" in told


# Exit codes


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--no-such-option"], 2),
        (["--port", "x"], 2),
        (["--host", "0.0.0.0"], 2),
        (["--config", "nowhere.toml"], 2),
        (["--command", ""], 2),
        (["--permissions", "perhaps"], 2),
        (["--agent", "nobody"], 3),
        (["--agent", "claude", "--agent", "nobody@latest"], 3),
        (["--journal", "."], 1),
    ],
)
def test_exit_codes(arguments: list[str], code: int, home: Path) -> None:
    done = run_command("serve", *arguments)
    assert (done.code, done.out) == (code, "")


def test_an_unknown_agent_in_the_file(home: Path) -> None:
    Path("serve.toml").write_text("[agents.nobody]\n", "utf-8")
    done = run_command("serve", "--config", "serve.toml")
    assert (done.code, done.out) == (3, "")
    assert "Agent 'nobody' was not found" in done.err
