"""The matrix: collected from the outcomes of tests, shown, and written into a page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interop.agents import AGENTS, CODEX, GEMINI
from interop.matrix import (
    END,
    MAIN,
    MORE,
    SCENARIOS,
    Explanation,
    Matrix,
    Outcome,
    Table,
    Try,
    explanations,
    inserted,
)
from interop.more_agents import MORE_AGENTS

TESTS = Path(__file__).parents[1]

CELLS = """
import pytest
from interop.agents import CODEX, CODEX_ASKING, GEMINI

def parametrized(*recipes):
    return pytest.mark.parametrize("recipe", recipes, ids=lambda recipe: recipe.name)

@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param

@pytest.fixture
def leaves_something(recipe):
    yield
    assert recipe is GEMINI

@pytest.mark.scenario("typed result", "our tool called first")
@parametrized(CODEX, GEMINI)
def test_typed(recipe, anyio_backend, record_property):
    record_property("agent", f"{recipe.name} 1.0")

@pytest.mark.scenario("nested models")
@parametrized(CODEX_ASKING, GEMINI)
def test_nested(recipe, anyio_backend):
    assert (recipe, anyio_backend) != (GEMINI, "trio")

@pytest.mark.scenario("user's MCP server over sse")
@parametrized(CODEX)
def test_sse(recipe, anyio_backend, record_property):
    record_property("not offered", "mcpCapabilities.sse")

@pytest.mark.scenario("doctor")
@parametrized(CODEX, GEMINI)
def test_doctor(recipe, anyio_backend, record_property):
    record_property("shows", "works")
    assert recipe is not GEMINI

@pytest.mark.scenario("closed without a process left")
@parametrized(CODEX, GEMINI)
def test_closed(recipe, anyio_backend, leaves_something):
    pass

@parametrized(CODEX)
def test_something_else(recipe, anyio_backend):
    pass
"""


def run(folder: Path, source: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a file of its own."""
    (folder / "test_cells.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = scenario\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "interop.matrix_plugin", "test_cells.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_shows_what_its_tests_came_to(tmp_path: Path) -> None:
    page = tmp_path / "agents.md"
    page.write_text("untouched")
    result = run(tmp_path, CELLS, THINKWELL_WRITE_MATRIX=str(page))
    lines = result.stdout.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("=") and "matrix" in line)
    shown = {line[:30].strip(): line[30:].split() for line in lines[begin + 1 :]}
    assert shown[""] == f"{CODEX.column} {GEMINI.column}".split()
    assert [shown[row][0] for row in ("typed result", "our tool called first", "nested models")] == ["✓"] * 3
    assert "✗" in shown["nested models"]
    assert shown["user's MCP server over sse"][0] == "–"
    assert shown["user's MCP server over sse"][-1] == "?"
    assert shown["closed without a process left"][0] == "✗"
    assert shown["doctor"] == ["works", "✗"]
    assert f"Not written, since not all was run: {CODEX.column}: two turns" in result.stdout
    assert page.read_text() == "untouched"


def test_a_scenario_that_is_no_row_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, CELLS.replace('"nested models"', '"nestled models"'))
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no row of the matrix is for nestled models" in result.stderr


def test_a_run_of_all_cells_writes_them_into_the_page(tmp_path: Path) -> None:
    page = tmp_path / "agents.md"
    page.write_text(f"# Agents\n\n{MAIN.begin}\nwhat was there\n{END}\n\nMore.\n")
    source = CELLS.partition('@pytest.mark.scenario("nested models")')[0]
    every = ", ".join(map(repr, SCENARIOS))
    run(
        tmp_path,
        source.replace('"typed result", "our tool called first"', every),
        THINKWELL_WRITE_MATRIX=str(page),
    )
    text = page.read_text()
    assert text.startswith(
        f"# Agents\n\n{MAIN.begin}\n\n|  | {CODEX.column} | {GEMINI.column} |\n| --- | :-: | :-: |"
    )
    assert f"{CODEX.column} calls itself codex 1.0" in text
    assert f"Python {sys.version.partition(' ')[0]}" in text
    assert "what was there" not in text
    assert text.endswith(f"\n\n{END}\n\nMore.\n")


def filled(*explained: Explanation, agents: tuple[str, ...] = ("one 1.0", "two 2.0")) -> Matrix:
    """Return a matrix in which all is green, but for one cell of the first agent."""
    matrix = Matrix()
    matrix.explained = explained
    for agent in agents:
        for scenario in SCENARIOS:
            for backend in ("asyncio", "trio"):
                red = (agent, scenario, backend) == ("one 1.0", "model error", "trio")
                outcome: Outcome = "failed" if red else "passed"
                matrix.add(Try(agent=agent, scenario=scenario, backend=backend, outcome=outcome))
    return matrix


def test_explanations_are_numbered_by_row_and_stand_below_the_table() -> None:
    last = Explanation(agent="two", scenario="our tools not seen", reason="It does not tell.\n")
    first = Explanation(agent="one", scenario="model error", reason="It sulks.", wire=('→ {"id":1}', "← {}"))
    other = Explanation(agent="three", scenario="model error", reason="Who?")
    text = filled(last, first, other).markdown(date="2026-11-22", machine="Python 3.11")
    assert "| model error | ✗ [1] | ✓ |" in text
    assert "| our tools not seen | ✓ | ✓ [2] |" in text
    assert '**[1] one 1.0, model error.** It sulks.\n\n```text\n→ {"id":1}\n← {}\n```' in text
    assert text.endswith("**[2] two 2.0, our tools not seen.** It does not tell.")
    assert "Who?" not in text
    assert filled().missing == ()


def test_what_is_wrong_with_a_page_or_a_row_is_told() -> None:
    with pytest.raises(ValueError, match="the page lacks the lines"):
        inserted("# Agents", "table")
    with pytest.raises(ValueError, match="'sulking' is none of typed result"):
        Matrix().add(Try(agent="one", scenario="sulking", backend="trio", outcome="passed"))


def test_every_explanation_is_for_a_cell_that_there_is() -> None:
    columns = {recipe.heading: MAIN for recipe in AGENTS}
    columns |= {recipe.heading: MORE for recipe in MORE_AGENTS}
    for note in explanations():
        assert note.scenario in columns[note.agent].scenarios
        assert note.reason.endswith(".")


@pytest.mark.parametrize("table", [MAIN, MORE])
def test_the_page_has_a_place_for_each_matrix(table: Table) -> None:
    page = (TESTS.parent / "docs" / "reference" / "agents.md").read_text("utf-8")
    assert f"{table.begin}\n\nnew\n\n{END}" in inserted(page, "new", table)
