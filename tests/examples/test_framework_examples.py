"""The examples for frameworks, each run by its framework."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import venv
import zipapp
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from notebook.kernel import execute, printed
from real_servers import listening
from starlette.testclient import TestClient

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in agent works in a folder of the test's, at once."""
    for name in [name for name in os.environ if name.startswith("THINKWELL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    monkeypatch.chdir(project)


def ran(
    *arguments: object,
    code: int = 0,
    variables: dict[str, str] | None = None,
    python: str | Path = sys.executable,
) -> tuple[str, str]:
    """Run a program of Python; return what it printed, and what it said of errors."""
    finished = subprocess.run(
        [python, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES), **(variables or {})},
    )
    assert finished.returncode == code, finished.stderr
    return finished.stdout, finished.stderr


def test_the_page_names_each_program() -> None:
    page = (EXAMPLES.parents[1] / "docs" / "howto" / "frameworks.md").read_text("utf-8")
    assert sorted(re.findall(r"\| `(\w+\.py)` \|", page)) == sorted(
        file.name for file in EXAMPLES.glob("*.py")
    )


def test_fastapi() -> None:
    example = runpy.run_path(str(EXAMPLES / "fastapi_app.py"))
    with TestClient(example["app"]) as client:
        found = client.post("/reviews", json={"text": "Review this folder."})
        assert found.status_code == 200
        assert example["Review"].model_validate(found.json())
        assert client.post("/reviews", json={}).status_code == 422
        with client.stream("POST", "/answers", json={"text": "What is here?"}) as answered:
            frames = re.findall(r"^data: (.*)$", answered.read().decode(), re.MULTILINE)
    assert answered.headers["content-type"].startswith("text/event-stream")
    assert {"thought", "message", "tool_done"} <= {json.loads(frame)["type"] for frame in frames}


def test_fastapi_without_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_AGENT_CMD", f"{sys.executable} -c pass")
    with (
        pytest.raises(Exception, match="could not be started"),
        TestClient(runpy.run_path(str(EXAMPLES / "fastapi_app.py"))["app"]),
    ):
        raise AssertionError("it started")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_fastapi_and_a_client_that_leaves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "1")
    app = runpy.run_path(str(EXAMPLES / "fastapi_app.py"))["app"]
    with caplog.at_level("INFO", "thinkwell"):
        async with listening(app, "uvicorn") as server, httpx.AsyncClient(base_url=server.url) as client:
            async with client.stream("POST", "/answers", json={"text": "What is here?"}) as answered:
                await anext(answered.aiter_raw())
            with anyio.fail_after(30):
                while "cancelled" not in caplog.text:  # noqa: ASYNC110 - the log tells it, and nothing else
                    await anyio.sleep(0.01)


def test_typer() -> None:
    found, _ = ran(EXAMPLES / "typer_command.py", ".")
    assert re.match(r"\d+: \w", found)
    ran(EXAMPLES / "typer_command.py", "--least", 10**6, code=1)
    _, error = ran(EXAMPLES / "typer_command.py", code=2, variables={"THINKWELL_AGENT": "no-such-agent"})
    assert "Error: " in error
    assert "Traceback" not in error


@pytest.mark.parametrize("example", ["test_with_asyncio.py", "test_with_trio.py"])
def test_pytest(example: str, project: Path) -> None:
    copy = shutil.copy(EXAMPLES / example, project)  # away from the settings of this project
    said, _ = ran("-m", "pytest", "-W", "error", copy)
    assert "1 passed" in said


def test_celery(project: Path) -> None:
    """A worker with processes that were forked, and a client that waits for its results."""
    for name in ("data_in", "results"):
        (project / name).mkdir()
    (project / "data_out").symlink_to("data_in")  # the same queue for the client and the worker
    variables = {"CELERY_BROKER": "filesystem://", "CELERY_BACKEND": f"file://{project / 'results'}"}
    client = (
        "from celery_tasks import review\n"
        "results = [review.delay('Review this folder.') for _ in range(2)]\n"
        "print(*[result.get(timeout=60)['score'] for result in results])\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "--app", "celery_tasks", "worker", "--concurrency", "2"],
        env={**os.environ, "PYTHONPATH": str(EXAMPLES), **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said, _ = ran("-c", client, variables=variables)
    finally:
        worker.terminate()
        _, log = worker.communicate(timeout=60)
    assert re.fullmatch(r"\d+ \d+\n", said), log
    assert "ResourceWarning" not in log


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_textual() -> None:
    example = runpy.run_path(str(EXAMPLES / "textual_app.py"))
    app: Any = example["Chat"]()
    async with app.run_test() as pilot:
        await pilot.press(*"hello", "enter")
        log = app.query_one("RichLog")
        with anyio.fail_after(60):
            while not any("README.md" in line.text for line in log.lines):
                await pilot.pause(0.05)


def test_django() -> None:
    code = (
        "from django_app import application\n"
        "from django.test import Client\n"
        "client = Client(headers={'host': 'localhost'})\n"
        "print(client.get('/review', {'text': 'Review this folder.'}).json()['score'])\n"
        "print(client.get('/review', {'text': 'Review this folder.'}).status_code)\n"
    )
    said, error = ran("-W", "error", "-c", code)
    assert re.fullmatch(r"\d+\n200\n", said)
    assert error == ""


def test_a_frozen_program(project: Path) -> None:
    """As an archive that brings thinkwell along, for a Python that does not have it."""
    venv.create(project / "bare")
    (project / "app").mkdir()
    program = (EXAMPLES / "frozen_program.py").read_text("utf-8")
    (project / "app" / "__main__.py").write_text(f"import sys; sys.path += {sys.path}\n{program}", "utf-8")
    zipapp.create_archive(project / "app", project / "review.pyz")
    said, _ = ran("review.pyz", python=project / "bare" / "bin" / "python")
    assert re.match(r"\d+: \w", said)


@pytest.mark.xdist_group("kernel")
def test_a_notebook(project: Path) -> None:
    _, *cells = re.split(r"^# %%.*\n", (EXAMPLES / "notebook.py").read_text("utf-8"), flags=re.MULTILINE)
    opened, reviewed, closed = execute(cells, project)
    assert opened == closed == []
    assert "text/html" in reviewed[0]["data"]
    assert re.match(r"\d+: \w", printed(reviewed))
