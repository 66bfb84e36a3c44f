"""``thinkwell middleware`` as a program, with a host at its standard input and output."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cli.command import run_command
from cli.typing_in import LIMIT, program, scripted, thinkwell

from thinkwell.testing import script

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

if sys.platform == "win32":
    pytest.skip("signals and devices of POSIX systems", allow_module_level=True)

from cli.terminal import processes_with

pytestmark = pytest.mark.usefixtures("warm_python")

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Hosted:
    """A middleware that runs, seen by its host."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    def say(self, *lines: str | dict[str, Any]) -> None:
        for line in lines:
            self.stdin.write((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n")
        self.stdin.flush()

    def hear(self, *types: str) -> dict[str, Any]:
        """Return the next message of one of these types, or at all."""
        while line := self.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if not types or message["type"] in types:
                return message
        raise AssertionError(f"there is no {types} any more")

    def respond(self, asked: dict[str, Any], value: object) -> None:
        self.say({"type": "response", "in_reply_to": asked["type"], "value": value, "id": asked["id"]})

    def end(self) -> int:
        """Say no more, and return the exit code."""
        self.stdin.close()
        return self.process.wait(LIMIT)


@contextmanager
def hosted(*arguments: str) -> Generator[Hosted]:
    """Run the middleware for the time of a block."""
    process = subprocess.Popen(
        thinkwell("middleware", *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    with process:
        try:
            yield Hosted(process)
        finally:
            watchdog.cancel()
            process.kill()


def messages(ran: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    """What the middleware has written, each of which stands on a line of its own."""
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_prompts_are_turns_of_one_session(home: Path) -> None:
    ran = program("middleware", stdin=b"Say what parser.py does\nAnd what is in it?\n")
    assert (ran.returncode, ran.stderr) == (0, b"")
    told = messages(ran)
    assert [message["type"] for message in told].count("result") == 2
    assert told[-1]["text"].startswith("parser.py is Python")
    assert ran.stdout.endswith(b"\n")
    assert b'": ' not in ran.stdout.partition(b'"entries"')[0]  # compact


def test_a_host_and_an_agent_talk(home: Path) -> None:
    told = (
        script.expects("Clean up")
        .asks_form("Which folder?", FORM, expect={"name": "build"})
        .asks("rm -rf build", kind="execute", input={"command": "rm -rf build"}, expect="allow_once")
        .says("It is gone.")
    )
    with hosted("--command", scripted(home, told)) as host:
        host.say({"type": "init", "params": {}})
        assert host.hear() == {
            "type": "init_ack",
            "name": "thinkwell.testing",
            "version": version("thinkwell"),
        }
        host.say("Clean up")
        host.respond(host.hear("question"), "build")
        asked = host.hear("approval")
        assert asked["command"] == "rm -rf build"
        host.respond(asked, "yes")
        assert host.hear("result") == {"type": "result", "text": "It is gone."}
        assert host.end() == 0
        assert host.stderr.read() == b""


def test_what_the_agent_writes_to_standard_error_becomes_logs(home: Path) -> None:
    with hosted("--command", scripted(home, script.floods_stderr(80).asks("Run it").says("So."))) as host:
        host.say("go")
        told = host.hear("log")
        assert (told["level"], told["source"], len(told["message"])) == ("info", "stderr", 79)
        assert host.end() == 0


def test_a_result_of_a_schema_is_its_fields(home: Path) -> None:
    (home / "schema.json").write_text('{"type": "object", "required": ["n"]}')
    command = scripted(home, script.returns({"n": 3}))
    ran = program("middleware", "--schema", "schema.json", "--command", command, stdin=b"go\n")
    assert (ran.returncode, messages(ran)[-1]) == (0, {"type": "result", "n": 3})


@pytest.mark.parametrize(("permissions", "choice"), [("deny", "reject_once"), ("file", "allow_once")])
def test_permissions_are_decided_without_the_host_and_forms_are_not(
    permissions: str, choice: str, home: Path
) -> None:
    if permissions == "file":
        (home / "rules.toml").write_text('otherwise = "allow"\n')
        permissions = "rules.toml"
    told = (
        script.asks("rm -rf build", expect=choice).asks_form("Who?", FORM, expect={"name": "Ann"}).says("So.")
    )
    with hosted("--permissions", permissions, "--command", scripted(home, told)) as host:
        host.say("go")
        host.respond(host.hear("approval", "question"), {"name": "Ann"})
        assert host.hear("result")["text"] == "So."
        assert host.end() == 0


@pytest.mark.parametrize(
    ("told", "arguments", "code", "message"),
    [
        (script.refuses(), [], 1, "refused"),
        (script.fails(-32603, "overloaded"), [], 3, "overloaded"),
        (script.crashes(7), [], 3, "exited with code 7"),
        (script.fails(-32000, "log in"), [], 4, "log in"),
        (script.hangs(), ["--timeout", "0.3"], 5, "0.3"),
    ],
    ids=["refused", "error", "crash", "login", "timeout"],
)
def test_the_exit_code_says_why_the_last_prompt_failed(
    told: Any, arguments: Sequence[str], code: int, message: str, home: Path
) -> None:
    ran = program("middleware", *arguments, "--command", scripted(home, told), stdin=b"go\n")
    last = messages(ran)[-1]
    assert (ran.returncode, last["type"]) == (code, "error"), ran.stderr
    assert message in last["message"]
    assert ran.stderr.startswith(b"Error: ")
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nobody-at-all"], 3, "was not found"),
        (["--command", "sh -c 'echo wrong >&2; exit 3'"], 3, "exited with code 3"),
    ],
)
def test_an_agent_that_does_not_start_is_told(
    arguments: list[str], code: int, message: str, home: Path
) -> None:
    ran = program("middleware", *arguments, stdin=b'{"type":"init"}\n')
    (told,) = messages(ran)
    assert (ran.returncode, told["type"]) == (code, "error")
    assert message in told["message"]
    assert b"Traceback" not in ran.stderr


def test_a_recording_that_cannot_be_written_is_told(home: Path) -> None:
    ran = program("middleware", "--record", "x" * 300, stdin=b"go\n")
    (told,) = messages(ran)
    assert (ran.returncode, told["type"]) == (1, "error")
    assert "File name too long" in told["message"]


def test_an_init_that_cannot_be_used_is_wrong_usage(home: Path) -> None:
    ran = program("middleware", stdin=b'{"type":"init","params":{"cwd":"nowhere","colour":"red"}}\ngo\n')
    (told,) = messages(ran)
    assert (ran.returncode, told["type"]) == (2, "error")
    assert "there is no folder" in told["message"]
    assert b"Error: init: cwd: there is no folder" in ran.stderr
    assert b"Usage" not in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["claude@1", "--command", "x"],
        ["--timeout", "0"],
        ["--schema", "no-such-file"],
        ["--permissions", "perhaps"],
        ["--cwd", "no-such-folder"],
    ],
    ids=" ".join,
)
def test_wrong_usage_starts_nothing(arguments: list[str], home: Path) -> None:
    done = run_command("middleware", *arguments)
    assert (done.code, done.out) == (2, "")


def test_what_the_host_got_wrong_is_on_standard_error(home: Path) -> None:
    lines = b'{"type":"init","params":{"colour":"red\x1b[2J"}}\n{"type":"response","value":1}\n{oops\n'
    ran = program("middleware", "--command", scripted(home, script.says("Hm.")), stdin=lines)
    assert ran.returncode == 0
    warnings = ran.stderr.decode().splitlines()
    assert [line.partition(":")[0] for line in warnings] == ["Warning"] * 3
    assert "\x1b" not in ran.stderr.decode()


def test_a_session_is_recorded(home: Path) -> None:
    program("middleware", "--record", "run.ndjson", stdin=b"Say what parser.py does\n")
    ran = program("replay", "run.ndjson", "--speed", "0", "--quiet")
    assert ran.stdout.startswith(b"parser.py is Python")


# The ends


def test_a_host_that_reads_no_more(home: Path) -> None:
    command = scripted(home, script.says("ready").asks("Run it").says("more").hangs())
    with hosted("--command", command) as host:
        host.say("go")
        asked = host.hear("approval")
        host.stdout.close()
        host.respond(asked, value=True)
        assert host.process.wait(LIMIT) == 141
        assert host.stderr.read() == b""
    assert processes_with(str(home)) == []


def test_a_disk_that_is_full(home: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            thinkwell("middleware"),
            input=b"go\n",
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (1, b"Error: No space left on device\n")


@pytest.mark.parametrize(
    ("number", "deaf"),
    [
        (signal.SIGTERM, False),
        (signal.SIGINT, True),
        (signal.SIGHUP, False),
        pytest.param(signal.SIGTERM, True, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, False, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, True, marks=pytest.mark.long),
    ],
)
def test_a_signal_ends_the_agent_too(number: signal.Signals, deaf: bool, home: Path) -> None:
    command = scripted(home, script.says("ready").hangs(deaf=deaf))
    with hosted("--command", command) as host:
        host.say("go")
        host.hear("partial")
        host.process.send_signal(number)
        assert host.process.wait(LIMIT) == 128 + number
        assert b"Traceback" not in host.stderr.read()
        assert processes_with(str(home)) == []


def test_a_second_signal_kills_the_agent(home: Path) -> None:
    stubborn = home / "stubborn.py"
    stubborn.write_text(
        "import signal, sys, runpy\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "sys.argv = ['thinkwell.testing', 'script.json']\n"
        "runpy.run_module('thinkwell.testing', run_name='__main__', alter_sys=True)\n"
    )
    scripted(home, script.says("ready").hangs(deaf=True))
    with hosted("--command", shlex.join([sys.executable, str(stubborn)])) as host:
        host.say("go")
        host.hear("partial")
        host.process.send_signal(signal.SIGTERM)
        host.process.send_signal(signal.SIGINT)
        assert host.process.wait(LIMIT) in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    assert processes_with(str(home)) == []


def test_a_signal_while_the_agent_starts(home: Path) -> None:
    os.mkfifo(home / "fifo")
    waits = shlex.join(
        [sys.executable, "-c", f"open({str(home / 'fifo')!r}, 'w').close(); import time; time.sleep(600)"]
    )
    with hosted("--command", waits) as host:
        (home / "fifo").read_bytes()  # the agent runs
        host.process.send_signal(signal.SIGTERM)
        assert host.process.wait(LIMIT) == 128 + signal.SIGTERM
    assert processes_with(str(home)) == []


def test_standard_streams_are_left_as_they_were(home: Path) -> None:
    """Whoever shares them, as a shell shares its terminal, would be told that it cannot read now."""
    inner, outer = os.openpty()
    with os.fdopen(outer, "rb"), os.fdopen(inner, "r+b", buffering=0) as terminal:
        ran = subprocess.Popen(
            thinkwell("middleware"),
            stdin=outer,
            stdout=outer,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with ran:
            terminal.write(b"Say what parser.py does\n")
            shown = b""
            while b'"type":"result"' not in shown:
                shown += terminal.read(65536)
            terminal.write(b"\x04")
            assert ran.wait(LIMIT) == 0
        assert os.get_blocking(outer)
