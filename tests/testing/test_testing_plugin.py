"""The pytest plugin, in a run of pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = (Path(__file__).parents[2] / "docs" / "howto" / "testing.md").read_text("utf-8")

TESTS = """
import sys
import pytest

def test_without_the_fixture():
    assert "thinkwell.testing.plugin" in sys.modules

async def test_in_memory(scripted_agent):
    from thinkwell.testing import script
    played = scripted_agent(script.says("Hello"))
    async with played.open() as agent:
        assert await agent.think().text("Hi").run() == "Hello"
    assert played.sent.prompts[0].text == "Hi"

async def test_as_a_process(scripted_agent, tmp_path):
    from thinkwell import open_agent
    from thinkwell.testing import script
    played = scripted_agent(script.says("Hello"))
    async with open_agent(command=played.program()) as agent:
        assert await agent.think().text("Hi").run() == "Hello"
    assert str(tmp_path) in played.program()[-1]

async def test_recorded(scripted_agent, recorded_agent, tmp_path):
    from thinkwell.testing import script
    async with scripted_agent(script.says("Hello")).open(record=tmp_path / "run.ndjson") as agent:
        await agent.think().text("Hi").run()
    async with recorded_agent(tmp_path / "run.ndjson", speed=0).open() as agent:
        assert await agent.think().text("Hi").run() == "Hello"

def test_not_played(scripted_agent):
    from thinkwell.testing import script
    scripted_agent(script.says("left"))

def test_checked_before(scripted_agent):
    from thinkwell.testing import ScriptNotFinished, script
    with pytest.raises(ScriptNotFinished):
        scripted_agent(script.says("Hello")).check()
    scripted_agent(script)

def test_failing(scripted_agent):
    from thinkwell.testing import script
    scripted_agent(script.says("not reached"))
    scripted_agent(script)
    assert False

def test_failing_without_the_fixture():
    assert False
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints about these tests, as of a user of anyio's plugin with an event loop of his own."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pytest.ini").write_text("[pytest]\nanyio_mode = auto\nfilterwarnings = error\n", "utf-8")
    (folder / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture(params=['trio'])\n"
        "def anyio_backend(request):\n    return request.param\n",
        "utf-8",
    )
    (folder / "test_it.py").write_text(TESTS, "utf-8")
    for number, snippet in enumerate(re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)):
        if "def test_" in snippet:
            (folder / f"test_guide_{number}.py").write_text(snippet, "utf-8")
    options = (
        "-rA",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "anyio",
        "-p",
        "thinkwell.testing.plugin",
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr


def test_the_fixture_works_and_fails_the_tests_whose_scripts_are_not_played(output: str) -> None:
    found = re.findall(r"^(PASSED|FAILED|ERROR) test_it.py::test_([\w\[\]]+)", output, re.MULTILINE)
    assert sorted(found) == [
        ("ERROR", "not_played"),
        ("FAILED", "failing"),
        ("FAILED", "failing_without_the_fixture"),
        ("PASSED", "as_a_process[trio]"),
        ("PASSED", "checked_before"),
        ("PASSED", "in_memory[trio]"),
        ("PASSED", "not_played"),
        ("PASSED", "recorded[trio]"),
        ("PASSED", "without_the_fixture"),
    ], output


def test_the_tests_of_the_guide_pass(output: str) -> None:
    found = re.findall(r"^(PASSED|FAILED|ERROR) test_guide_\d.py::test_([\w\[\]]+)", output, re.MULTILINE)
    assert sorted(found) == [
        ("PASSED", "a_review[trio]"),
        ("PASSED", "a_wrong_result_is_mended[trio]"),
        ("PASSED", "an_agent_that_crashes[trio]"),
    ], output


def test_the_error_lists_what_was_not_played(output: str) -> None:
    assert "ScriptNotFinished: 1 step was not played:" in output
    assert "turn 1, step 1: says('left')" in output


def test_a_failed_test_shows_where_its_script_stands_and_fails_once(output: str) -> None:
    assert len(re.findall("- thinkwell: a script of this test -", output)) == 1
    assert "turn 1, step 1: says('not reached')" in output
