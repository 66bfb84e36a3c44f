"""What imports what, and what `import thinkwell` costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

LATER = (
    *("pydantic", "pydantic_core", "jsonschema", "referencing", "h11", "asyncio", "trio", "ssl", "http"),
    *("urllib.request", "email", "acp", "mcp", "httpx", "typer", "rich", "starlette", "uvicorn", "redis"),
    *("opentelemetry", "thinkwell.builtin", "thinkwell_acp.mcp._http_host", "thinkwell_acp.terminals"),
)


def modules_after(code: str) -> set[str]:
    code = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_importing_thinkwell_loads_what_it_needs_and_no_more() -> None:
    loaded = modules_after("import thinkwell")
    assert {"anyio", "msgspec"} <= loaded
    assert loaded & set(LATER) == set()


def test_a_text_result_needs_no_pydantic() -> None:
    code = (
        "from thinkwell._output import output_of\n"
        "from thinkwell.events import Message, event_to_json\n"
        "output_of(None); output_of(str); event_to_json(Message(text='x'))"
    )
    assert modules_after(code) & {"pydantic", "jsonschema"} == set()


def test_the_contracts_about_imports_hold() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
