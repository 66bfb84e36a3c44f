"""Collects the cells of the matrix while pytest runs, shows them at the end and writes them where asked to.

A test that is a cell is marked with its scenarios and has a recipe among its parameters. In its
`user_properties` it may say what the agent calls itself (``agent``), that it does not advertise what is
needed (``not offered``), and what its cell shows where it passes (``shows``).
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interop.agents import AgentRecipe
from interop.matrix import MAIN, MORE, SCENARIOS, Matrix, Outcome, Try, explanations, inserted

if TYPE_CHECKING:
    from collections.abc import Generator

WRITE_VARIABLE = "THINKWELL_WRITE_MATRIX"
"""The page to write the matrix to; 1 stands for that of the documentation."""

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "agents.md"

MATRICES = pytest.StashKey[tuple[Matrix, Matrix]]()
FAILED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with empty matrices."""
    config.stash[MATRICES] = (Matrix(MAIN), Matrix(MORE))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse scenarios that no row is for, before the hours of a run."""
    unknown = {scenario for item in items for scenario in _scenarios(item)} - {*SCENARIOS}
    if unknown:
        raise pytest.UsageError(f"no row of the matrix is for {', '.join(sorted(unknown))}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Take what each phase of a test came to; the last one says what all of it did."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or not report.passed
    if report.when == "teardown":
        _take(item, failed=item.stash[FAILED])
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the matrices, and write them where asked to."""
    for matrix in config.stash[MATRICES]:
        if matrix.agents:
            _summarize(terminalreporter, matrix)


def _summarize(terminalreporter: pytest.TerminalReporter, matrix: Matrix) -> None:
    matrix.explained = explanations()
    terminalreporter.section("matrix")
    terminalreporter.write_line(matrix.text())
    asked = os.environ.get(WRITE_VARIABLE)
    if not asked:
        return
    if matrix.missing:
        terminalreporter.write_line(f"Not written, since not all was run: {'; '.join(matrix.missing)}")
        return
    page = PAGE if asked == "1" else Path(asked)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    text = matrix.markdown(date=today, machine=_machine())
    page.write_text(inserted(page.read_text("utf-8"), text, matrix.table), "utf-8")
    terminalreporter.write_line(f"Written to {page}")


def _scenarios(item: pytest.Item) -> tuple[str, ...]:
    return tuple(scenario for mark in item.iter_markers("scenario") for scenario in mark.args)


def _take(item: pytest.Item, *, failed: bool) -> None:
    call = getattr(item, "callspec", None)
    recipe = None if call is None else call.params.get("recipe")
    if not isinstance(recipe, AgentRecipe):
        return
    assert call is not None
    main, more = item.config.stash[MATRICES]
    matrix = more if item.get_closest_marker("more_agents") else main
    told = dict(item.user_properties)
    if "agent" in told:
        matrix.name(recipe.column, str(told["agent"]))
    outcome: Outcome = "failed" if failed else "not offered" if "not offered" in told else "passed"
    shows = str(told.get("shows", ""))
    for scenario in _scenarios(item):
        backend = str(call.params["anyio_backend"])
        matrix.add(Try(agent=recipe.column, scenario=scenario, backend=backend, outcome=outcome, shows=shows))


def _machine() -> str:
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    python = f"Python {platform.python_version()}"
    return f"{python}, Node.js {node.stdout.strip().lstrip('v')}, {platform.system()} {platform.machine()}"
