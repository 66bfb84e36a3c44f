"""``python -m thinkwell.doctor``: what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from doctor.patients import NAMES, ODD, sick
from doctor.test_doctor_starting import program, running

from thinkwell.doctor.program import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs of POSIX systems")


OPEN = "starts and opens a session. Whether it works cannot be known without a prompt."


def command(*arguments: str) -> list[str]:
    """Return the command of the doctor's program."""
    return [sys.executable, "-W", "error", "-m", "thinkwell.doctor", *arguments]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, in which the programs are those of a folder alone."""
    for name in ("THINKWELL_AGENT_CMD", "THINKWELL_AGENT", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=60, check=False, encoding="utf-8"
    )


def write_servers(path: Path, **servers: object) -> None:
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")


def profile(home: Path, name: str, command: list[str]) -> None:
    """Have a profile of an agent in the project's settings."""
    with (home / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(f"[tool.thinkwell.agents.{name}.program]\ncommand = {json.dumps(command)}\n")


def test_a_table_for_a_person(home: Path) -> None:
    ran = doctor("--command", shlex.join([sys.executable, ODD, "login"]))
    assert ran.returncode == 3
    assert ran.stderr == ""
    first, command, empty, *rows = ran.stdout.splitlines()
    assert (first, empty) == ("odd_agent.py", "")
    assert command == f"{sys.executable} {ODD} login"
    named = [row[9:25].strip() for row in rows if row.startswith(("ok", "FAILED", "skipped"))]
    assert named == [*NAMES[:7], "6 more checks", "ends"]
    assert rows[-1] == "odd_agent.py wants a login; whether it works cannot be known before that."


def test_the_built_in_agent_is_well(home: Path) -> None:
    ran = doctor()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[0] == "The built-in agent (builtin)"
    assert ran.stdout.splitlines()[-1] == f"builtin {OPEN}"
    offer = "--prompt sends one, which costs one turn of the agent's model:"
    assert offer in " ".join(ran.stdout.split())


def test_the_built_in_agent_works(home: Path) -> None:
    ran = doctor("--prompt")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1] == "builtin works."


def test_a_fault_of_ours_is_no_wrong_usage(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def at_fault(*_: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(anyio, "run", at_fault)
    with pytest.raises(TypeError, match="a bug"):
        main(["--command", "no-such-program"])


@pytest.mark.usefixtures("home", "deleted_folder")
def test_a_current_folder_that_was_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert "current folder" in told.err
    with pytest.raises(NotADirectoryError, match="current folder"):  # the command has its own words
        main([], prog="thinkwell doctor")


def test_limits_are_called_by_their_option(home: Path) -> None:
    ran = doctor("--timeout", "0.5", "--command", shlex.join([sys.executable, ODD, "silent"]))
    assert ran.returncode == 1
    told = " ".join(ran.stdout.split())
    assert "within 0.5 seconds. Raise --timeout if it needs longer" in told
    ran = doctor("--timeout", "2", "--command", shlex.join(sick("hangs")))
    assert ran.returncode == 1
    assert "session/new was not answered within 2 seconds" in " ".join(ran.stdout.split())
    assert "-> raise --timeout if it needs longer" in ran.stdout


def test_json_for_a_program(home: Path) -> None:
    ran = doctor("--json", "--command", shlex.join([sys.executable, ODD, "exit"]))
    assert ran.returncode == 1
    told = json.loads(ran.stdout)
    assert told["agent"] == "odd_agent.py"
    assert [check["name"] for check in told["checks"] if check["status"] == "failed"] == ["starts"]


def test_the_environment_names_an_agent(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_AGENT_CMD", shlex.join(sick("refuses")))
    ran = doctor()
    assert ran.returncode == 1
    assert "sick_agent.py does not work: session." in ran.stdout


def test_several_agents(home: Path) -> None:
    profile(home, "one", [sys.executable, ODD, "login"])
    profile(home, "two", sick("refuses"))
    ran = doctor("one", "two", "one")
    assert ran.returncode == 1
    assert [line for line in ran.stdout.splitlines() if line.startswith(("one", "two"))] == [
        "one",
        "one wants a login; whether it works cannot be known before that.",
        "two",
        "two does not work: session.",
    ]
    ran = doctor("no-such-agent")
    assert ran.returncode == 1
    assert ran.stdout.startswith("no-such-agent\n\nFAILED   found ")
    ran = doctor("one", "no-such-agent", "--json")
    assert ran.returncode == 1
    assert [each["agent"] for each in json.loads(ran.stdout)] == ["one", "no-such-agent"]


def test_all_that_are_there_and_nothing_is_installed(home: Path) -> None:
    program(home / "bin" / "npx", f"echo $* >> {home}/installed")
    profile(home, "one", [sys.executable, ODD, "login"])
    profile(home, "two", ["no-such-program"])
    ran = doctor("--all", "--json")
    assert ran.returncode == 3
    assert [each["agent"] for each in json.loads(ran.stdout)] == ["builtin", "one"]
    assert ran.stderr.startswith("Not there, and so not checked: ")
    missing = ran.stderr.strip().partition(": ")[2].split(", ")
    assert {"two", "claude", "codex"} <= set(missing)
    assert not (home / "installed").exists()
    ran = doctor("--all", "one", "builtin", "two", "--json")
    assert [each["agent"] for each in json.loads(ran.stdout)] == ["one", "builtin", "two"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--command", "mine", "claude", "codex"], "give one agent with --command, or none"),
        (["--command", "mine", "--all"], "give one agent with --command, or none"),
        (["--command", "'mine"], "argument --command: No closing quotation"),
        (["--command", " "], "argument --command: it names no program"),
        (["--timeout", "0"], "argument --timeout: it is 0; give a number of seconds above 0"),
        (["--timeout", "-1"], "argument --timeout: it is -1; "),
        (["--timeout", "nan"], "argument --timeout: it is nan; "),
        (["--timeout", "soon"], "argument --timeout: it is soon; "),
        (["--cwd", "/nowhere/at/all"], "argument --cwd: there is no folder /nowhere/at/all"),
        (["--mcp", "none.json"], "argument --mcp: none.json: it cannot be read: No such file or directory"),
        (["--mcp", "ours.json"], "argument --mcp: names such as 'thinkwell0123456789ab' are kept"),
        (["--nonsense"], "unrecognized arguments"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_servers(home / "ours.json", thinkwell0123456789ab={"command": sys.executable})
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 2
    out, err = capsys.readouterr()
    assert said in err
    assert out == ""


def test_wrong_settings_are_wrong_usage(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_AGENT_CMD", "'mine")
    ran = doctor()
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the environment variable THINKWELL_AGENT_CMD: No closing quotation" in ran.stderr
    monkeypatch.delenv("THINKWELL_AGENT_CMD")
    monkeypatch.setenv("THINKWELL_AGENT", "no-such-agent")
    ran = doctor()
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout.startswith("agent\n\nFAILED   found ")
    (home / "pyproject.toml").write_text("[tool.thinkwell", "utf-8")
    ran = doctor("--all")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "pyproject.toml" in ran.stderr


def test_servers_of_a_file(home: Path) -> None:
    write_servers(home / ".mcp.json", words={"command": sys.executable, "args": ["words.py"]})
    ran = doctor("--mcp", ".mcp.json", "--json", "--command", shlex.join([sys.executable, ODD, "login"]))
    assert [each["name"] for each in json.loads(ran.stdout)["checks"]][-3:] == [
        "server words",
        "mcp servers",
        "ends",
    ]
    write_servers(home / ".mcp.json", words={"command": "no-such-program"})
    ran = doctor("--mcp", ".mcp.json")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "FAILED   server words                there is no program 'no-such-program'" in ran.stdout
    assert "thinkwell_acp" not in ran.stdout
    servers = "Not all of your MCP servers work with it: server words."
    assert ran.stdout.splitlines()[-1] == f"builtin {OPEN} {servers}"


def test_what_does_not_run_is_one_line(home: Path) -> None:
    ran = doctor("--command", "no-such-program")
    assert ran.returncode == 1
    lines = ran.stdout.splitlines()
    assert lines[3].startswith("FAILED   found ")
    assert lines[-3:] == [
        "skipped  13 more checks              it does not run",
        "",
        "no-such-program does not work: found.",
    ]


def test_a_terminal_shows_what_is_waited_for(home: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command("--command", shlex.join([sys.executable, ODD, "login"])), stdout=theirs, stdin=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            shown += data
    os.close(ours)
    assert process.returncode == 3
    text = shown.decode()
    assert "…        starts\r               \r" in text
    assert "…        session\r                \r…        tools over acp\r" in text
    assert "\x1b" not in text


def test_an_interruption_ends_the_agent_too(home: Path) -> None:
    mark = f"mark-{os.getpid()}"
    with subprocess.Popen(
        command("--command", shlex.join([sys.executable, ODD, "silent", mark])),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any(line.startswith("ok       installed") for line in process.stdout)
        assert running(mark)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stderr == "\n"
    assert not running(mark)


def test_an_interruption_is_no_error(home: Path) -> None:
    assert main(["--command", shlex.join(sick("interrupts"))]) == 130


def test_a_reader_that_leaves(home: Path) -> None:
    mark = f"mark-{os.getpid()}-reader"
    with subprocess.Popen(
        command("--command", shlex.join([*sick("well"), mark])),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read()
    assert (process.returncode, stderr) == (141, "")
    assert not running(mark)


def test_a_terminal_that_knows_few_characters(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ran = doctor("--command", "no-such-prögram")
    assert ran.returncode == 1
    assert r"no-such-pr\xf6gram" in ran.stdout
