"""What imports what, and what `import thinkwell` and its names cost."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LATER = (
    *("pydantic", "pydantic_core", "jsonschema", "referencing", "h11", "asyncio", "trio", "ssl", "http"),
    *("urllib.request", "email", "acp", "mcp", "httpx", "typer", "rich", "starlette", "uvicorn", "redis"),
    *("opentelemetry", "thinkwell.builtin", "thinkwell_acp.mcp._http_host", "thinkwell_acp.terminals"),
    *("difflib", "hashlib", "secrets", "shutil", "tempfile", "thinkwell_acp.mcp._shim_host"),
    *("thinkwell._display.brief", "thinkwell._recording._records", "thinkwell._core.tools.front_matter"),
)


PROGRAM = """
import json, sys
before = set(sys.modules)  # of what measures coverage, where anything does
import thinkwell
print(json.dumps([*sys.modules.keys() - before]))
thinkwell.open_agent
print(json.dumps([*sys.modules.keys() - before]))
import anyio
from thinkwell.events import Message, event_to_json
from thinkwell.testing import ScriptedAgent, script

async def main():
    async with ScriptedAgent(script.says("Hello.").stops().says("Hello.")).open() as agent:
        assert await agent.think().text("Hi").run() == await agent.think(str).text("Hi").run() == "Hello."

anyio.run(main)
event_to_json(Message(text="x"))
print(json.dumps([*sys.modules.keys() - before]))
"""


@cache
def loaded() -> tuple[set[str], set[str], set[str]]:
    """What is imported with `thinkwell`, with its names, and when two runs have had their texts."""
    ran = subprocess.run([sys.executable, "-I", "-c", PROGRAM], capture_output=True, check=True)
    first, second, third = map(json.loads, ran.stdout.splitlines())
    return set(first), set(second), set(third)


def test_names_are_loaded_when_the_first_is_used() -> None:
    at_first, _, _ = loaded()
    assert {name for name in at_first if name.startswith("thinkwell")} == {"thinkwell"}
    assert at_first & {"anyio", "msgspec"} == set()


def test_the_package_is_like_one_that_has_its_names() -> None:
    code = (
        "import thinkwell\n"
        "assert thinkwell.events.Message is thinkwell.Message\n"
        "assert {'Agent', 'open_agent', '__version__'} <= set(dir(thinkwell))\n"
        "from thinkwell import *\n"
        "assert Agent is thinkwell.Agent\n"
        "try: thinkwell.nothing\n"
        "except AttributeError as exc: assert exc.name == 'nothing'\n"
        "else: raise AssertionError\n"
        "try: from thinkwell import nothing\n"
        "except ImportError: print('yes')\n"
    )
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "yes\n"


def test_the_names_of_thinkwell_load_what_they_need_and_no_more() -> None:
    _, at_first, _ = loaded()
    assert {"anyio", "msgspec"} <= at_first
    assert at_first & set(LATER) == set()


def test_a_text_result_needs_no_pydantic() -> None:
    _, _, in_the_end = loaded()
    assert in_the_end & {"pydantic", "jsonschema"} == set()


def test_the_blocking_api_loads_trials_when_they_are_run() -> None:
    code = "import sys, thinkwell.sync; print({'thinkwell.trials', 'sqlalchemy'} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


@pytest.mark.long
def test_the_contracts_about_imports_hold() -> None:
    """As `make check` has it."""
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
