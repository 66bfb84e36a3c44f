"""A journal in memory behind an HTTP server of several workers: each of them warns, and a 404 says why."""

from __future__ import annotations

import json
import logging
import multiprocessing
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from web_stage import ADA, scripted_agent

from thinkwell.journal import MemoryJournal, SqliteJournal
from thinkwell.web import RunNotFound, RunServer

if TYPE_CHECKING:
    from pathlib import Path

WARNED = "one of several workers, and keeps its runs in memory"

PROGRAM = """
from thinkwell.web import RunServer, served_agent, web_app

app = web_app(RunServer({"builtin": served_agent("builtin")}))
"""


@pytest.mark.parametrize("server", ["spawned", "gunicorn", "no worker"])
@pytest.mark.parametrize(
    ("command", "env", "several"),
    [
        ("uvicorn app:app --workers 2", {}, True),
        ("uvicorn app:app --workers=12", {}, True),
        ("hypercorn -w 2 app:app", {}, True),
        ("gunicorn -w2 app:app", {}, True),
        ("uvicorn app:app", {"WEB_CONCURRENCY": "2"}, True),
        ("gunicorn app:app", {"GUNICORN_CMD_ARGS": "--workers 3"}, True),
        ("uvicorn app:app --workers 1", {"WEB_CONCURRENCY": "2"}, False),
        ("uvicorn app:app --reload", {"WEB_CONCURRENCY": "1"}, False),
        ("serve.py --width 2 -width 3", {"WEB_CONCURRENCY": "many"}, False),
    ],
)
async def test_a_worker_that_has_siblings_warns(
    command: str,
    env: dict[str, str],
    several: bool,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(sys, "argv", command.split())
    for name in ("WEB_CONCURRENCY", "GUNICORN_CMD_ARGS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: {"spawned": object()}.get(server))
    if server == "gunicorn":
        monkeypatch.setitem(sys.modules, "gunicorn.arbiter", SimpleNamespace())
    agents = {"scripted": scripted_agent()[0]}
    with caplog.at_level(logging.WARNING, "thinkwell"):
        async with RunServer(agents, journal=SqliteJournal(tmp_path / "runs.db")):
            assert WARNED not in caplog.text
        async with RunServer(agents):
            assert (WARNED in caplog.text) is (several and server != "no worker")


async def test_what_is_said_of_an_unknown_run_depends_on_the_journal(tmp_path: Path) -> None:
    agents = {"scripted": scripted_agent()[0]}
    for journal, words in ((MemoryJournal(), True), (SqliteJournal(tmp_path / "runs.db"), False)):
        async with RunServer(agents, journal=journal) as server:
            with pytest.raises(RunNotFound, match="there is no such run") as caught:
                await server.get("x", caller=ADA)
            assert ("memory of one process" in str(caught.value)) is words


def asked(url: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    """Send a request over a connection of its own; return the status and what was answered."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def until(pattern: str, output: IO[str], lines: list[str]) -> str:
    """Read what a process prints up to something; return that."""
    for line in output:
        lines.append(line)
        if found := re.search(pattern, line):
            return found[0]
    raise AssertionError(lines)


@pytest.mark.long
def test_two_workers_of_a_server(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "uvicorn", "app:app", "--workers", "2", "--port", "0"]
    lines: list[str] = []
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = until(r"http://127\.0\.0\.1:\d+", process.stderr, lines)
            for _ in range(2):
                until("startup complete", process.stderr, lines)
            status, answered = asked(f"{url}/api/runs", {"prompt": "Hello."})
            assert status == 201
            found = [asked(f"{url}/api/runs/{answered['run']['id']}") for _ in range(60)]
        finally:
            process.terminate()
            process.stderr.read()
    assert {status for status, _ in found} == {200, 404}
    assert all("RedisJournal" in answer["error"]["message"] for status, answer in found if status == 404)
    assert "".join(lines).count(WARNED) == 2
