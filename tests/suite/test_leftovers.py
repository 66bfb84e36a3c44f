"""A case that leaves something behind fails by itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[1]

CASES = """
import socket, subprocess, sys, tempfile, threading

KEPT = []
SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]

def test_a_thread():
    stopped = threading.Event()
    KEPT.append(stopped)
    threading.Thread(target=stopped.wait, name="left thread", daemon=True).start()

def test_a_child():
    KEPT.append(subprocess.Popen(SLEEPER))

def test_an_orphan():
    orphaning = f"import subprocess; print(subprocess.Popen({SLEEPER}).pid)"
    subprocess.run([sys.executable, "-I", "-S", "-c", orphaning], check=True)

def test_an_open_port():
    KEPT.append(socket.create_server(("127.0.0.1", 0)))

def test_a_file_where_it_runs():
    open("left.txt", "w").close()

def test_a_temporary_file():
    KEPT.append(tempfile.mkstemp(prefix="left-"))

def test_nothing(tmp_path):
    (tmp_path / "own.txt").touch()
    with socket.create_server(("127.0.0.1", 0)):
        ended = threading.Thread(target=print)
        ended.start()
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    ended.join()
"""

ENDING = """
import os, signal, pytest

@pytest.fixture(scope="session", autouse=True)
def ended_at_last():
    yield
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            marked = f"SUITE_WORKER={os.getpid()}" in open(f"/proc/{name}/environ").read()
        except OSError:
            continue
        if marked and int(name) != os.getpid():
            os.kill(int(name), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run of such cases prints."""
    folder = tmp_path_factory.mktemp("leaving")
    (folder / "test_leaving.py").write_text(CASES)
    (folder / "conftest.py").write_text(ENDING)
    plugins = ("-p", "no:cacheprovider", "-p", "no:randomly", "-p", "suite.leftovers", "-p", "suite.progress")
    options = ("-W", "ignore", "--tb=short", "--patience", "0.2", "--most-cpu", "0.01")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, "test_leaving.py"],
        cwd=folder,
        env={"PYTHONPATH": str(TESTS), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1, ended
    return ended.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="processes and sockets are looked for in /proc")
@pytest.mark.xdist_group("leftovers")
def test_what_a_case_leaves_fails_it(output: str) -> None:
    found: Callable[[str], bool] = lambda what: re.search(f"The test has left .*{what}", output) is not None  # noqa: E731
    for what in (
        "thread 'left thread'",
        r"process \d+: .*time.sleep",
        "listens: .*127",
        r"/left\.txt",
        "/left-",
    ):
        assert found(what), (what, output)
    assert len(re.findall("^ERROR .*test_(?:a|an)_", output, re.MULTILINE)) == 6, output
    assert "test_nothing" not in output


@pytest.mark.xdist_group("leftovers")
def test_a_run_that_costs_more_than_it_may_fails(output: str) -> None:
    assert "more than 0 s of processor time" in output
