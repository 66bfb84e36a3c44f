"""The pytest plugin, in a run of pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)
pytestmark = pytest.mark.xdist_group("testing plugin")  # one run is enough for all

GUIDE = (Path(__file__).parents[2] / "docs" / "howto" / "testing.md").read_text("utf-8")

INI = """
[pytest]
anyio_mode = auto
filterwarnings =
    error
    # The plugins are there before this run of pytest begins.
    ignore:Module already imported:pytest.PytestAssertRewriteWarning
"""

TESTS = """
import pytest

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

async def test_left_early(scripted_agent):
    from thinkwell.testing import script
    async with scripted_agent(script.says("one").stops().says("left early")).open() as agent:
        await agent.think().text("Hi").run()

async def test_other_words(scripted_agent):
    from thinkwell.testing import script
    async with scripted_agent(script.says("one")).open() as agent:
        assert await agent.think().text("Say two.").run() == "two"

async def test_failing_script(scripted_agent):
    from thinkwell.testing import script
    async with scripted_agent(script.expects("magic word")).open() as agent:
        await agent.think().text("Hi").run()

@pytest.fixture
async def opened(scripted_agent):
    from thinkwell.testing import script
    async with scripted_agent(script.says("one"), fails_at={}).open() as agent:
        yield agent

async def test_opened_by_a_fixture(opened):
    assert await opened.think().text("Hi").run() == "one"
"""


WITHOUT = """
import sys

def test_without_the_fixture():
    assert "_thinkwell_pytest" in sys.modules
    assert not {"thinkwell", "msgspec", "pydantic", "anyio"} & set(sys.modules)
"""


def run_pytest(folder: Path, *options: str) -> str:
    """Run the tests of a folder with no plugin but the named ones, and return what is printed."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "--no-header", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr


def test_the_plugin_alone_imports_nothing_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(WITHOUT, "utf-8")
    output = run_pytest(tmp_path, "-p", "thinkwell")
    assert "1 passed" in output, output


@pytest.fixture(scope="session")  # xdist mixes the cases of modules
def printed() -> list[str]:
    """What was printed by the first case that had them run."""
    return []


@pytest.fixture
def output(printed: list[str], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> str:
    """What pytest prints about these tests, as of a user of anyio's plugin with an event loop of his own."""
    if not printed:
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        make_project(pytester.path)
        ran = pytester.runpytest_inprocess("-rA", "--no-header", "-p", "anyio", "-p", "thinkwell")
        printed.append(f"{ran.stdout}\n{ran.stderr}")
    return printed[0]


def make_project(folder: Path) -> None:
    """Write the tests, those of the guide too."""
    (folder / "pytest.ini").write_text(INI, "utf-8")
    (folder / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture(params=['trio'])\n"
        "def anyio_backend(request):\n    return request.param\n",
        "utf-8",
    )
    (folder / "test_it.py").write_text(TESTS, "utf-8")
    for number, snippet in enumerate(re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)):
        if "def test_" in snippet:
            (folder / f"test_guide_{number}.py").write_text(snippet, "utf-8")


def test_the_fixture_works_and_fails_the_tests_whose_scripts_are_not_played(output: str) -> None:
    found = re.findall(r"^(PASSED|FAILED|ERROR) test_it.py::test_([\w\[\]]+)", output, re.MULTILINE)
    assert sorted(found) == [
        ("FAILED", "failing"),
        ("FAILED", "failing_script[trio]"),
        ("FAILED", "failing_without_the_fixture"),
        ("FAILED", "left_early[trio]"),
        ("FAILED", "not_played"),
        ("FAILED", "other_words[trio]"),
        ("PASSED", "as_a_process[trio]"),
        ("PASSED", "checked_before"),
        ("PASSED", "in_memory[trio]"),
        ("PASSED", "opened_by_a_fixture[trio]"),
        ("PASSED", "recorded[trio]"),
    ], output


def test_the_tests_of_the_guide_pass(output: str) -> None:
    found = re.findall(r"^(PASSED|FAILED|ERROR) test_guide_\d.py::test_([\w\[\]]+)", output, re.MULTILINE)
    assert sorted(found) == [
        ("PASSED", "a_review[trio]"),
        ("PASSED", "a_wrong_result_is_mended[trio]"),
        ("PASSED", "an_agent_that_crashes[trio]"),
        ("PASSED", "an_agent_that_takes_too_long[asyncio]"),
        ("PASSED", "an_agent_that_takes_too_long[trio]"),
    ], output


def shown(output: str, test: str) -> str:
    """What is shown of a test that fails."""
    (found,) = re.findall(
        rf"^_+ test_{re.escape(test)} _+$(.*?)^(?:_+ test_|=+ )", output, re.DOTALL | re.MULTILINE
    )
    return str(found)


def test_a_script_that_was_not_played_shows_that_and_no_code_of_the_kit(output: str) -> None:
    for test, left in (
        ("not_played", "turn 1, step 1: says('left')"),
        ("left_early[trio]", "turn 2, step 1"),
    ):
        text = shown(output, test)
        assert "thinkwell.testing.ScriptNotFinished: 1 step was not played:" in text
        assert text.count(left) == 1
        assert "def " not in text.replace("async def test_", "")
        assert len(text.splitlines()) < 30
    assert ">       async with scripted_agent(" in shown(output, "left_early[trio]")


def test_a_failed_test_shows_where_its_script_stands_and_what_was_sent(output: str) -> None:
    text = shown(output, "failing")
    assert text.count("- thinkwell: a scripted agent of this test -") == 2
    assert text.count("turn 1, step 1: says('not reached')\nThe client sent nothing.\n") == 1
    text = shown(output, "other_words[trio]")
    assert "not played" not in text
    assert re.search(r"The client sent:\n  initialize .*\n  session/new .*\n  session/prompt .*Say two", text)


def test_the_words_of_a_failing_script_are_shown_once(output: str) -> None:
    assert shown(output, "failing_script[trio]").count("the prompt does not contain it") == 1
