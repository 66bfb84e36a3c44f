"""The examples of the web run, and what they promise is there."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import anyio
import httpx
import pytest
from real_servers import SERVERS, ServerKind, backend_of, listening

EXAMPLES = Path(__file__).parents[2] / "examples" / "web"

TOKEN = "a-token-of-this-test"

TRIO = """
import sys, importlib, anyio
sys.path.insert(0, {folder!r})
anyio.run(importlib.import_module("watch").main, backend={backend!r})
"""


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> ServerKind:
    """The server."""
    kind: ServerKind = request.param
    return kind


@pytest.fixture
def anyio_backend(kind: ServerKind) -> str:
    """The event loop of the server."""
    return backend_of(kind)


async def test_a_run_of_an_application_is_watched(
    kind: ServerKind, anyio_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").write_text("# Sample\n\nA small project.\n", "utf-8")
    monkeypatch.setenv("HELPER_TOKEN", TOKEN)
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    monkeypatch.delitem(sys.modules, "app", raising=False)
    app = importlib.import_module("app").app
    monkeypatch.delitem(sys.modules, "app")
    async with listening(app, kind) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
            assert (await client.get("/")).text == "The helper is under /helper\n"
            assert (await client.get("/helper/api")).status_code == 401
        environment = {key: value for key, value in os.environ.items() if not key.startswith("THINKWELL_")}
        environment |= {
            "THINKWELL_URL": f"{server.url}/helper",
            "THINKWELL_TOKEN": TOKEN,
            "PYTHONIOENCODING": "utf-8",
        }
        program = TRIO.format(folder=str(EXAMPLES), backend=anyio_backend)
        with anyio.fail_after(60):
            finished = await anyio.run_process(
                [sys.executable, "-W", "error", "-c", program],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
    said = finished.stdout.decode()
    assert finished.returncode == 0, said
    assert said.count("… cut off …") == 1
    assert re.search(r"\ncompleted after \d+\.\d s and \d\d+ events\n$", said)
    assert "README.md" in said
