"""Standard streams that are closed, full, or read by nobody; and a folder that is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli.typing_in import LIMIT, home, thinkwell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform == "win32":
    pytest.skip("shells and devices of POSIX systems", allow_module_level=True)

__all__ = ("home",)


def shell(line: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of a shell in which ``"$@"`` is the command with arguments."""
    return subprocess.run(
        ["bash", "-c", line, "bash", *thinkwell(*arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "PYTHONUNBUFFERED": "", **variables},
        timeout=LIMIT,
        check=False,
    )


def second_look(*commands: list[str]) -> Iterator[object]:
    """Leave to `make test-all` what others show too."""
    return (pytest.param(command, marks=pytest.mark.long) for command in commands)


@pytest.mark.parametrize(
    ("line", "arguments", "code"),
    [
        ('"$@" >&-', ["run", "-q", "hi"], 0),
        ('"$@" >&-', ["run", "--json", "hi"], 0),
        ('"$@" >&-', ["demo"], 0),
        ('"$@" >&-', ["doctor"], 0),
        ('"$@" <&-', ["chat"], 0),
        ('"$@" <&- >&-', ["version"], 0),
        ('"$@" 2>&-', ["run", "-q", "hi", "-a", "nobody-at-all"], 3),
        ('"$@" 2>/dev/full', ["run", "-q", "hi", "-a", "nobody-at-all"], 3),
    ],
)
def test_a_stream_that_is_closed_or_full_changes_no_exit_code(
    line: str, arguments: list[str], code: int, home: Path
) -> None:
    ran = shell(line, *arguments)
    assert ran.returncode == code, ran.stderr
    assert b"Traceback" not in ran.stderr


def test_a_result_is_written_whatever_becomes_of_the_standard_error(home: Path) -> None:
    for line in ('"$@" 2>&-', '"$@" 2>/dev/full'):
        ran = shell(line, "run", "hi")
        assert (ran.returncode, b"parser.py" in ran.stdout) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [
        *(["run", "-q", "hi"], ["run", "--json", "hi"], ["--help"], ["version"]),
        *(["agents"], ["doctor", "--json"], ["new", "."]),
        *second_look(["run", "--help"], ["agents", "--json"], ["doctor"]),
    ],
    ids=" ".join,
)
def test_an_output_that_takes_nothing_is_told(arguments: list[str], home: Path) -> None:
    ran = shell('"$@" >/dev/full', *arguments)
    assert (ran.returncode, ran.stderr.decode()) == (1, "Error: No space left on device\n")


def test_an_unbuffered_output_that_takes_nothing_is_told(home: Path) -> None:
    ran = shell('"$@" >/dev/full', "agents", PYTHONUNBUFFERED="1")
    assert (ran.returncode, ran.stderr.decode()) == (1, "Error: No space left on device\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["version"],
        ["doctor"],
        *second_look(["chat", "--help"], ["agents", "--json"], ["doctor", "--json"]),
    ],
    ids=" ".join,
)
def test_a_reader_that_is_gone_is_no_error(arguments: list[str], home: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        thinkwell(*arguments),
        stdout=write,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        timeout=LIMIT,
        check=False,
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.parametrize(
    "arguments",
    [
        *(["run", "-q", "hi"], ["demo"], ["chat"], ["sessions", "builtin"], ["login", "builtin"]),
        *(["doctor"], ["new", "x"]),
        *second_look(["run", "hi", "--type", "builtins:int"], ["new", "."]),
    ],
    ids=" ".join,
)
def test_a_folder_that_is_gone(arguments: list[str], home: Path) -> None:
    ran = shell('mkdir gone && cd gone && rmdir ../gone && "$@"', *arguments)
    assert ran.returncode == 1
    told = [line for line in ran.stderr.decode().splitlines() if not line.startswith("sh: ")]
    assert told == ["Error: The current folder does not exist any more. Go to another"]


def test_a_prompt_in_a_locale_that_knows_few_characters(home: Path) -> None:
    ran = shell('"$@"', "run", "--json", "größe", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert events[-1]["type"] == "result"


def test_a_prompt_that_is_no_text(home: Path) -> None:
    ran = shell("""exec "$@" $'gr\\xf6\\xdfe'""", "run", "-q")
    assert ran.returncode == 2
    assert b"it is not UTF-8" in ran.stderr
