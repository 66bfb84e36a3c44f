"""The hosts of the examples, the middleware, and an agent, all of them processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.typing_in import LIMIT, scripted

from thinkwell.testing import script

pytestmark = pytest.mark.usefixtures("warm_python")

EXAMPLES = Path(__file__).parents[2] / "examples" / "middleware"

TALK = """\
Which folder may go? build.
[execute] rm -rf build
May I run rm -rf build? Yes.
It is done.
"""

ON_TRIO = """
import sys, importlib, anyio
sys.path.insert(0, {folder!r})
anyio.run(importlib.import_module("host").main, backend="trio")
"""


def ran(*arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


ARGUMENTS = {
    "asyncio": [str(EXAMPLES / "host.py")],
    "trio": ["-c", ON_TRIO.format(folder=str(EXAMPLES))],
    "plain": [str(EXAMPLES / "plain_host.py")],
}


@pytest.mark.long
@pytest.mark.parametrize("host", ["asyncio", "trio", "plain"])
def test_all_hosts_have_the_same_talk(host: str, home: Path) -> None:
    told, talk = ran(*ARGUMENTS[host]).splitlines(), TALK.splitlines()
    assert sorted(told) == sorted(talk)  # handlers of two types work at the same time
    assert (told[0], told[-1]) == (talk[0], talk[-1])
    if host == "plain":
        assert told == talk
    assert TALK in (EXAMPLES / "README.md").read_text("utf-8")


@pytest.mark.parametrize("host", ["host.py", pytest.param("plain_host.py", marks=pytest.mark.long)])
def test_a_host_can_have_another_agent(host: str, home: Path) -> None:
    told = ran(str(EXAMPLES / host), "builtin")
    assert "[read] Read parser.py" in told
    assert "parser.py is Python" in told


def test_a_host_is_told_what_does_not_work(home: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "plain_host.py"), "nobody-at-all"]
    finished = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=LIMIT, check=False)
    assert finished.stdout.startswith("It did not work: Agent 'nobody-at-all' was not found")


def test_the_host_of_the_docs_says_no_to_what_it_does_not_know(home: Path) -> None:
    choice = {"type": "string", "enum": ["build", "dist"]}
    word = {"type": "string"}
    one = {"type": "object", "properties": {"folder": choice}, "required": ["folder"]}
    two = {"type": "object", "properties": {"a": word, "b": word}, "required": ["a", "b"]}
    told = script.asks_form("Which?", one, expect={"folder": "build"}).asks_form(
        "Who?", two, expect="decline"
    )
    for line, answer in (("git diff; rm -rf ~", "reject_once"), ("git diff", "allow_once")):
        told = told.asks("Compare", kind="execute", input={"command": line}, expect=answer)
    page = (EXAMPLES.parents[1] / "docs" / "howto" / "middleware.md").read_text("utf-8")
    (code,) = re.findall(r'title="host.py"\n(.*?)^```', page, re.DOTALL | re.MULTILINE)
    agent = scripted(home, told.says("It is done."))
    assert '"middleware"]' in code
    (home / "host.py").write_text(code.replace('"middleware"]', f'"middleware", "--command", {agent!r}]', 1))
    command = [sys.executable, "-W", "error", "host.py"]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=LIMIT, check=False)
    assert (ran.returncode, ran.stdout) == (0, "It is done.\n")
    assert "no one field of the form takes it" in ran.stderr


def test_a_plain_host_goes_on_when_its_answer_does_not_fit(home: Path) -> None:
    word = {"type": "string"}
    two = {"type": "object", "properties": {"a": word, "b": word}, "required": ["a", "b"]}
    agent = scripted(home, script.asks_form("Who?", two, expect="decline").says("It is done."))
    command = [sys.executable, "-W", "error", str(EXAMPLES / "plain_host.py"), "--command", agent]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=LIMIT, check=False)
    assert (ran.returncode, ran.stdout) == (0, "Who? as you like.\nIt is done.\n")
    assert "no one field of the form takes it" in ran.stderr
