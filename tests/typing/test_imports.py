"""What imports what, and what `import thinkwell` costs."""

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
def loaded() -> tuple[set[str], set[str]]:
    """What is imported with `thinkwell`, and by then when two runs have had texts as their results."""
    ran = subprocess.run([sys.executable, "-I", "-c", PROGRAM], capture_output=True, check=True)
    first, second = map(json.loads, ran.stdout.splitlines())
    return set(first), set(second)


def test_importing_thinkwell_loads_what_it_needs_and_no_more() -> None:
    at_first, _ = loaded()
    assert {"anyio", "msgspec"} <= at_first
    assert at_first & set(LATER) == set()


def test_a_text_result_needs_no_pydantic() -> None:
    _, in_the_end = loaded()
    assert in_the_end & {"pydantic", "jsonschema"} == set()


@pytest.mark.long
def test_the_contracts_about_imports_hold() -> None:
    """As `make check` has it."""
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
