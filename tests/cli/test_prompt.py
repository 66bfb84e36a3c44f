"""Where the prompt of `thinkwell run` comes from."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, cast

import pytest
from cli.command import run_command
from cli.typing_in import LIMIT, home, program, scripted, thinkwell

from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("home",)


def told(folder: Path, expected: str, *words: str, stdin: str = "") -> str:
    """Return what the run says whose prompt has to contain a text."""
    command = scripted(folder, script.expects(expected).says("yes"))
    done = run_command("run", "--command", command, *words, stdin=stdin)
    assert done.code == 0, done.err
    return done.out


def test_words_are_the_prompt(home: Path) -> None:
    assert told(home, "fix the bug", "fix", "the bug") == "yes\n"


def test_standard_input_is_the_prompt_where_there_are_no_words(home: Path) -> None:
    assert told(home, "fix\nthe bug", stdin="\ufefffix\r\nthe bug\n") == "yes\n"
    assert told(home, "fix", "-", stdin="fix") == "yes\n"


def test_a_dash_adds_standard_input_to_the_words(home: Path) -> None:
    expected = "Review this:\n\n<stdin>\n- a\n+ b\n</stdin>\n"
    assert told(home, expected, "Review this:", "-", stdin="- a\n+ b") == "yes\n"


@pytest.mark.parametrize("stdin", ["", " \n"])
def test_an_empty_prompt_is_wrong_usage(stdin: str, home: Path) -> None:
    for words in ([], ["-"], ["Review", "-"], [" "]):
        done = run_command("run", *words, stdin=stdin)
        assert (done.code, done.out) == (2, "")
        assert "standard input is empty" in done.err


def test_what_is_no_text_is_wrong_usage(home: Path) -> None:
    done = program("run", stdin=b"\xff\xfe")
    assert done.returncode == 2
    assert b"not UTF-8 (byte 0)" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX systems")
def test_a_standard_input_that_is_closed(home: Path) -> None:
    line = '"$@" <&-'
    for words, code in (([], 2), (["Say what parser.py does"], 0)):
        ran = subprocess.run(
            ["sh", "-c", line, "sh", *thinkwell("run", "-q", *words)],
            capture_output=True,
            check=False,
            timeout=LIMIT,
        )
        assert ran.returncode == code, ran.stderr
        assert (b"standard input is empty" in ran.stderr) is (code == 2)
        assert (b"parser.py" in ran.stdout) is (code == 0)


def test_a_standard_input_that_never_ends_is_left_alone_where_there_are_words(home: Path) -> None:
    with subprocess.Popen(
        thinkwell("run", "-q", "Say what parser.py does"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        try:
            assert run.wait(LIMIT) == 0
        finally:
            run.kill()


def test_files_are_shown_to_the_agent(home: Path) -> None:
    done = run_command("run", "-q", "Say what this does", "--file", "parser.py")
    assert "parser.py is Python" in done.out
    for name in ("nowhere.py", "."):
        wrong = run_command("run", "hi", "--file", name)
        assert (wrong.code, wrong.out) == (2, "")
        assert name in wrong.err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_a_file_that_is_none_starts_nothing(name: str, home: Path) -> None:
    os.mkfifo("pipe")
    wrong = run_command("run", "hi", "--file", name)
    assert (wrong.code, wrong.out) == (2, "")
    assert f"{name} is not a regular file" in wrong.err


def test_an_image_is_shown_as_one_where_the_agent_takes_images(home: Path) -> None:
    (home / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(8))
    takes = s.AgentCapabilities(prompt_capabilities=s.PromptCapabilities(image=True))
    for capabilities, kinds in (
        (takes, ["text", "image", "resource_link"]),
        (None, ["text", *["resource_link"] * 2]),
    ):
        agent = ScriptedAgent(script.says("yes"), capabilities=capabilities)
        folder = home / ("plain" if capabilities is None else "takes")
        folder.mkdir()
        command = shlex.join(agent.program(folder))
        done = run_command("run", "look", "-q", "--command", command, "-f", "a.png", "-f", "parser.py")
        assert (done.code, done.out) == (0, "yes\n")
        (prompt,) = agent.sent.prompts
        assert [cast("dict[str, str]", block)["type"] for block in prompt.blocks] == kinds


def test_instructions_go_to_the_agent_as_a_system_prompt(home: Path) -> None:
    flags = s.SessionCapabilities(system_prompt=s.SessionSystemPromptCapabilities())
    takes = s.AgentCapabilities(session_capabilities=flags)
    agent = ScriptedAgent(script.says("yes").stops().says("yes").stops(), capabilities=takes)
    command = shlex.join(agent.program(home))
    for text in ("Speak in rhyme.", " "):
        done = run_command("run", "go", "-q", "--system", text, "--command", command)
        assert (done.code, done.out) == (0, "yes\n")
    assert [session.system for session in agent.sent.sessions] == ["Speak in rhyme.", None]


def test_instructions_that_the_agent_does_not_take_come_before_the_prompt(home: Path) -> None:
    agent = ScriptedAgent(script.says("yes"), complete=False)
    done = run_command("run", "go", "-q", "--system", "Rhyme.", "--command", shlex.join(agent.program(home)))
    assert (done.code, done.out) == (0, "yes\n")
    assert agent.sent.prompts[0].text == "<system>\nRhyme.\n</system>\n\ngo"


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are text there")
def test_instructions_that_are_no_text_are_wrong_usage(home: Path) -> None:
    done = program("run", "go", "--system", "\udcff")
    assert done.returncode == 2
    assert b"--system" in done.stderr
