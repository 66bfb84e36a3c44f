"""Every example runs, and prints what it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from suite.tiers import LOOPS

from thinkwell import AgentNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).parents[2] / "examples"

EXPECTED = {
    "quickstart": r"""\[>\] Find out what to read .*
I am thinkwell's built-in agent\. I have no model.*
  read: Read README\.md
.*
The result is a Review:
Sample: 5 of 10
4 files, mostly Python: 14 lines, 1 function, 2 headings and 0 TODOs.*
- Document run in tool\.py\.

first event after \d+\.\d\d s, all after \d+\.\d s
$""",
    "listen": r"""^> Move auth to JWT
Which algorithm signs the tokens\? 4 files, .*…
Security: how long is a token valid\? 4 files, .*…
Which tests come first\? 4 files, .*…
(?:> Doing it\nMay it\? Run make test|May it\? Run make test\n> Doing it)
May it\? Delete auth/session\.py
Done: Run make test
$""",
    "await_result": r"^4 files with 14 lines\n$",
    "tools": r"^README\.md: 5 words, looked after by the documentation team\n$",
    "both_at_once": r"""^result: README\.md, pyproject\.toml, Makefile, tool\.py
\d+ events, the last of them after the result
$""",
    "blocking": r"^(tool: completed\n)+\d+ of 10; 4 files\n$",
    "break_early": r"""^first thought: I am thinkwell's …
all thoughts: \d{2,} words
result: 1
the second run was cancelled
$""",
    "several_runs": r"pyproject\.toml: pyproject\.toml is TOML: 2 lines",
    "skills": r"activate_skill answers: # Release notes\n.*- references/style\.md \(\d+ bytes\)\n"
    r".*call_skill_tool answers: 1\.4\.0\nread_skill_file answers: # Style\n",
    "session": r"^pyproject\.toml is TOML: 2 lines, .*\nlines: 2\nlow: Leave it as it is\.\n$",
    "supervise": r"""^May I run this\? rm -rf build
  reject_once, says the supervisor: .*
May I run this\? rm -rf dist
  \w+, says the supervisor: .*
Ended: the supervisor has denied 2 questions, the last one 'rm -rf dist': .*
$""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder for the examples to work on."""
    (tmp_path / "README.md").write_text("# Sample\n\nA small project.\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "sample"\n')
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / "tool.py").write_text(
        '"""A tool."""\n\n\ndef run() -> int:\n    return 1\n\n\nprint(run())\n'
    )
    return tmp_path


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


BLOCKING = ("blocking",)
"""Those that have no event loop to choose; their agent is a process."""

ASYNC = sorted(set(EXPECTED) - set(BLOCKING))


@pytest.mark.parametrize(("name", "backend"), [*product(ASYNC, LOOPS), *((name, None) for name in BLOCKING)])
def test_an_example_prints_what_it_promises(name: str, backend: str | None, run: Callable[..., str]) -> None:
    said = run(f"{name}.py", backend=backend)
    assert re.search(EXPECTED[name], said, re.DOTALL), said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name != "quickstart" else ()) for name in EXPECTED]
)
def test_an_example_is_a_program(name: str, project: Path) -> None:
    """Run as the documentation says: a process, with the agent as another one."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("THINKWELL_")}
    finished = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        cwd=project,
        env={**environment, "THINKWELL_BUILTIN_PACE": "0", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert re.search(EXPECTED[name], finished.stdout, re.DOTALL), finished.stdout
    assert "\x1b" not in finished.stdout


@pytest.mark.parametrize("variable", ["THINKWELL_AGENT", "THINKWELL_AGENT_CMD"])
def test_the_environment_swaps_in_another_agent(variable: str, run: Callable[..., str]) -> None:
    with pytest.raises(AgentNotFound, match="no-such-agent"):
        run("await_result.py", env={variable: "no-such-agent"})
