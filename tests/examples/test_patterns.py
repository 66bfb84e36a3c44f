"""The examples of supervision and of agents that speak lines run, and print what they promise."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from docs.pages import DOCS, ROOT, files
from suite.tiers import LOOPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLES = ROOT / "examples"

PATTERNS = {
    "answers": r"""^> Move auth to JWT
Which algorithm signs the tokens\? RS256\.
Security: how long is a token valid\? 15 minutes\.
Which tests come first\? .+\.
> Doing it
Move auth to JWT: nothing done\.
$""",
    "specialists": r"""^security: Which algorithm signs the tokens\? RS256\.
security: Security: how long is a token valid\? 15 minutes\.
tests: Which tests come first\? .+\.
Move auth to JWT: nothing done\.
$""",
    "reviewer": r"""^Run make test: no
Delete auth/session\.py: no
Move auth to JWT: nothing done\.
$""",
    "human": r"""^Which algorithm signs the tokens\? Security: how long is a token valid\? """
    r"""Delete auth/session\.py Move auth to JWT: Run make test, Delete auth/session\.py done\.
$""",
    "audit": r"""^question: Which algorithm signs the tokens\? RS256 \(first-option, \d\.\d s\)
question: Security: how long is a token valid\? 15 minutes \(first-option, \d\.\d s\)
question: Which tests come first\? expired tokens \(first-option, \d\.\d s\)
approval: Run make test True \(low-risk-only, \d\.\d s\)
approval: Delete auth/session\.py False \(low-risk-only, \d\.\d s\)
$""",
    "stages": r"""^Plan the move of auth to JWT: nothing done\.
Do this: Run make test done\.
$""",
    "parallel": r"""^(Move (auth|billing) to JWT: Run make test done\.
){2}(run-\d+: 5 answers
){2}$""",
}
SPOKEN = "HS256\n15 minutes\nyes\n"
"""What the person says who is asked for what is left."""

LISTING = [
    "10 %: Looking around",
    "What is the list called? Files.",
    "May it Write CONTENTS.md? Yes.",
    "CONTENTS.md is written. (Listing)",
]


@pytest.mark.parametrize("backend", LOOPS)
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_prints_what_it_promises(name: str, backend: str, run: Callable[..., str]) -> None:
    said = run(f"supervision/{name}.py", backend=backend, spoken=SPOKEN)
    assert re.search(PATTERNS[name], said), said


def test_every_pattern_is_tested() -> None:
    found = {path.stem for path in (EXAMPLES / "supervision").glob("*.py")}
    assert found == {*PATTERNS, "worker"}


def test_a_person_who_is_not_there_allows_nothing(run: Callable[..., str]) -> None:
    said = run("supervision/human.py", backend="asyncio")
    assert said.endswith("Move auth to JWT: Run make test done.\n")


@pytest.mark.parametrize("backend", LOOPS)
@pytest.mark.parametrize("program", ["agent.py", "agent.sh"])
def test_an_agent_of_a_few_lines_is_heard_and_answered(
    program: str, backend: str, project: Path, run: Callable[..., str]
) -> None:
    if program == "agent.sh" and shutil.which("sh") is None:
        pytest.skip("there is no shell")
    said = run("line_agent/run.py", program, backend=backend)
    assert sorted(said.splitlines()) == sorted(LISTING)  # messages of different types keep no order
    written = (project / "CONTENTS.md").read_text("utf-8")
    assert written.startswith("# Files\n\n")
    assert {"- README.md", "- parser.py"} <= set(written.splitlines())


def test_the_page_shows_the_agents_as_they_are() -> None:
    shown = files(DOCS / "howto" / "line-agents.md")
    assert shown.keys() == {"agent.sh", "agent.py"}
    for name, text in shown.items():
        assert text == (EXAMPLES / "line_agent" / name).read_text("utf-8")
