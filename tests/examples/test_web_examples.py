"""The examples of the web run, and what they promise is there."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import anyio
import httpx
import pytest
from real_servers import SERVERS, ServerKind, backend_of, listening

EXAMPLES = Path(__file__).parents[2] / "examples" / "web"

TOKEN = "a-token-of-this-test"


@pytest.fixture(
    params=[pytest.param(kind, marks=pytest.mark.long if kind != "uvicorn" else ()) for kind in SERVERS]
)
def kind(request: pytest.FixtureRequest) -> ServerKind:
    """The server."""
    kind: ServerKind = request.param
    return kind


@pytest.fixture
def anyio_backend(kind: ServerKind) -> str:
    """The event loop of the server."""
    return backend_of(kind)


# The example breaks off in the middle of a generator, on purpose, of which trio warns.
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_a_run_of_an_application_is_watched(
    kind: ServerKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("# Sample\n\nA small project.\n", "utf-8")
    for name in [name for name in os.environ if name.startswith("THINKWELL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HELPER_TOKEN", TOKEN)
    monkeypatch.setenv("THINKWELL_TOKEN", TOKEN)
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    monkeypatch.chdir(tmp_path)
    app = runpy.run_path(str(EXAMPLES / "app.py"))["app"]
    async with listening(app, kind) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=30, verify=False) as client:
            assert (await client.get("/")).text == "The helper is under /helper\n"
            assert (await client.get("/helper/api")).status_code == 401
        monkeypatch.setenv("THINKWELL_URL", f"{server.url}/helper")
        with anyio.fail_after(60):
            await runpy.run_path(str(EXAMPLES / "watch.py"))["main"]()
    said = capsys.readouterr().out
    assert said.count("… cut off …") == 1
    assert re.search(r"\ncompleted after \d+\.\d s and \d\d+ events\n$", said)
    assert "README.md" in said
